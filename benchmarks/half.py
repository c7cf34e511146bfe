"""Train a small model of every system in half precision beside one in float32.

As in fairseq's trainings, the model computes in half precision, and the optimizer keeps float32
copies. Losses must be finite and end where those of float32 do.
Usage: ``python benchmarks/half.py [--precision fp16] [--updates 500] [--device cuda] ...``.
"""

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import common, train_step  # noqa: E402

RNN_SIZES = dict.fromkeys(
    ("encoder_embed_dim", "encoder_hidden_size", "decoder_embed_dim", "decoder_hidden_size"), 64
)
#: Different batches in a round; losses are averaged over the first and over the last round.
BATCHES = 8
#: How much higher than float32's the last losses may be.
TOLERANCE = 1.1
#: Options that no architecture sets.
KINDS: dict[str, dict[str, Any]] = {
    **common.KINDS,
    "tree window": {"cross_attention_tree_window": 4},
    "supervised gate": {"supervised_gate_layers": "1,2"},
}


def systems() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the architecture and options of every system, by name."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for arch, model in ARCH_MODEL_NAME_REGISTRY.items():
        if model == "syntax_rnn":
            found[arch] = (arch, RNN_SIZES)
        elif model == "syntax_transformer" and arch.endswith("_tiny"):
            found[arch] = (arch, {})
    return found | {name: ("syntax_transformer_tiny", options) for name, options in KINDS.items()}


def train(
    arch: str, options: dict[str, Any], updates: int, device: torch.device, precision: str
) -> list[float]:
    """Train a system; return each update's loss in nats per token, NaN after an overflow.

    Args:
        arch: the architecture's name.
        options: the options of the model.
        updates: the number of updates.
        device: the device of the training.
        precision: a key of ``PRECISIONS`` in ``common.py``.
    """
    task = common.make_task(200)
    batches = [common.make_batch(task, 60, device, 6, seed) for seed in range(BATCHES)]
    args = argparse.Namespace(device=device, precision=precision)
    update = train_step.make_update(arch, options, args, task, batches)
    nothing = torch.tensor(float("nan"), device=device)
    losses = [update() for _ in range(updates)]
    return torch.stack([nothing if x is None else x.float() for x in losses]).tolist()


def compare(exact: list[float], half: list[float]) -> str:
    """Report how the last losses in half precision compare with those in float32."""
    first, last, aim = (mean(part) for part in (half[:BATCHES], half[-BATCHES:], exact[-BATCHES:]))
    overflown = sum(math.isnan(x) for x in half)
    said = f"{first:.2f} to {last:.2f}, float32 to {aim:.2f}, {overflown} updates left out"
    if math.isfinite(last) and last <= TOLERANCE * aim and overflown <= len(half) / 10:
        return said
    return f"FAILED: {said}"


def mean(losses: list[float]) -> float:
    """Return the mean of the losses that are not NaN; NaN if there are none."""
    numbers = [loss for loss in losses if not math.isnan(loss)]
    return sum(numbers) / len(numbers) if numbers else float("nan")


def main() -> None:
    """Train every system in half precision and in float32, and print how the losses compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=500, help="for each system (500)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="bf16", choices=["bf16", "fp16"])
    parser.add_argument("--systems", nargs="+", choices=systems(), help="(all)")
    args = parser.parse_args()
    failed, device = 0, torch.device(args.device)
    torch.set_num_threads(1)
    for name in args.systems or systems():
        trained = [
            train(*systems()[name], args.updates, device, precision)
            for precision in ("fp32", args.precision)
        ]
        said = compare(*trained)
        failed += said.startswith("FAILED")
        print(f"{name} | {args.updates} updates in {args.precision} | {said}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
