"""Measure the time of a training update against fairseq's own model of the same size.

All models take turns on the same batches in one process; fairseq's own is there twice, to show how
much of a ratio is noise. Usage: ``python benchmarks/train_step.py [--family rnn] ...``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import common  # noqa: E402
from syncattn_fairseq.criterions.label_smoothed_cross_entropy_with_syntax import (  # noqa: E402
    LabelSmoothedCrossEntropyWithSyntax,
    make_config,
)


def make_criterion(model: Any, task: Any, **options: Any) -> Any:
    """Make the criterion of a model: ours if the model is, or else fairseq's."""
    if not hasattr(model, "source_fields"):
        return LabelSmoothedCrossEntropyCriterion(task, False, 0.1)
    cfg: Any = make_config()()
    vars(cfg).update(sentence_avg=False, label_smoothing=0.1, **options)
    return LabelSmoothedCrossEntropyWithSyntax.build_criterion(cfg, task)


def make_update(
    arch: str,
    options: dict[str, Any],
    args: argparse.Namespace,
    task: Any,
    batches: list[dict[str, Any]],
) -> Callable[[], None]:
    """Return a function that makes one update on the next batch."""
    device = torch.device(args.device)
    dropout = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.1)
    dtype = common.PRECISIONS[args.precision]
    model = common.make_model(arch, task, device, **dropout, **options).to(dtype).train()
    criterion = make_criterion(model, task, sync_mse_weight=0.01, sync_rank_weight=0.01)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), foreach=True)
    state = {"n": 0}

    def update() -> None:
        batch = dict(batches[state["n"] % len(batches)])
        batch["net_input"] = common.net_input(model, batch)
        state["n"] += 1
        loss, sample_size, _ = criterion(model, batch)
        (loss / sample_size).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return update


def main() -> None:
    """Run the benchmark."""
    parser = common.parser(__doc__)
    parser.add_argument("--max-tokens", type=int, default=2048)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    task = common.make_task(args.vocabulary)
    batches = [common.make_batch(task, args.max_tokens, device, seed=s) for s in range(4)]
    updates = {
        name: make_update(arch, options, args, task, batches)
        for name, (arch, options) in common.systems(args).items()
    }
    print(f"one update, {args.max_tokens} tokens, {common.describe(args)}, {args.precision}")
    memory = common.measure_memory(updates, device)
    common.print_ratios(common.interleaved(updates, args.rounds, device), memory=memory)


if __name__ == "__main__":
    main()
