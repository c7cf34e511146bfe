"""Sentences per second of beam search against fairseq's own model of the same size.

All models decode the same sentences to the same lengths, in turns, in one process. Usage:
``python benchmarks/decode.py [--family rnn] [--batch-size 32] ...``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from omegaconf import OmegaConf

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import common  # noqa: E402


def make_decoder(
    arch: str, options: dict[str, Any], args: argparse.Namespace, task: Any
) -> Callable[[], None]:
    """Return a function that decodes one batch."""
    device = torch.device(args.device)
    model = common.make_model(arch, task, device, **options).eval()
    model.prepare_for_inference_(OmegaConf.create({"generation": {"print_alignment": None}}))
    # Untrained models end sentences anywhere: all hypotheses get the same, fixed length.
    generator = SequenceGenerator(
        [model],
        task.target_dictionary,
        beam_size=args.beam,
        max_len_b=args.length,
        min_len=args.length,
    )
    tokens = args.batch_size * (args.length + 3)
    sample = common.make_batch(task, tokens, device, mean_length=args.length)
    sample["net_input"] = common.net_input(model, sample)

    def decode() -> None:
        hypotheses = generator.generate([model], sample)
        assert len(hypotheses) == args.batch_size

    return decode


def main() -> None:
    """Run the benchmark."""
    parser = common.parser(__doc__)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length", type=int, default=25)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    task = common.make_task(args.vocabulary)
    decoders = {
        name: make_decoder(arch, options, args, task)
        for name, (arch, options) in common.systems(args).items()
    }
    print(
        f"decode {args.batch_size} sentences of {args.length} tokens, beam {args.beam}, "
        f"{common.describe(args)}; a ratio above 1 is faster"
    )
    seconds = common.interleaved(decoders, args.rounds, device, warmup=1)
    common.print_ratios(seconds, invert=True)


if __name__ == "__main__":
    main()
