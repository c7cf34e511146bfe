"""Train a small model of every architecture in bfloat16: losses and gradients must be finite.

As with fairseq's ``--bf16``, the model computes everything in bfloat16, and the optimizer keeps
float32 copies. Usage: ``python benchmarks/bf16.py [--updates 500] [--device cuda]``.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import common  # noqa: E402
from syncattn_fairseq.criterions.label_smoothed_cross_entropy_with_syntax import (  # noqa: E402
    LabelSmoothedCrossEntropyWithSyntax,
    make_config,
)

RNN_SIZES = dict.fromkeys(
    ("encoder_embed_dim", "encoder_hidden_size", "decoder_embed_dim", "decoder_hidden_size"), 64
)
#: Different batches in a round; losses are averaged over the first and over the last round.
BATCHES = 8
#: Options that no architecture sets.
KINDS: dict[str, dict[str, Any]] = {
    "tree window": {"cross_attention_tree_window": 4},
    "supervised gate": {"supervised_gate_layers": "1,2"},
    "relative depth": {"relative_depth_layers": "1,2"},
}


def systems() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return architecture and options of every system."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for arch, model in ARCH_MODEL_NAME_REGISTRY.items():
        if model == "syntax_rnn":
            found[arch] = (arch, RNN_SIZES)
        elif model == "syntax_transformer" and arch.endswith("_tiny"):
            found[arch] = (arch, {})
    return found | {name: ("syntax_transformer_tiny", options) for name, options in KINDS.items()}


def train(arch: str, options: dict[str, Any], updates: int, device: torch.device) -> str:
    """Train a system, and return the outcome as text."""
    task = common.make_task(200)
    batches = [common.make_batch(task, 60, device, 6, seed) for seed in range(BATCHES)]
    model = common.make_model(arch, task, device, dropout=0.1, **options).bfloat16().train()
    cfg: Any = make_config()()
    cfg.sentence_avg, cfg.label_smoothing = False, 0.1
    cfg.sync_mse_weight = cfg.sync_rank_weight = 0.1
    criterion = LabelSmoothedCrossEntropyWithSyntax.build_criterion(cfg, task)
    narrow = list(model.parameters())
    wide = [parameter.detach().float().requires_grad_() for parameter in narrow]
    optimizer = torch.optim.Adam(wide, lr=1e-3, betas=(0.9, 0.98))
    losses = []
    for number in range(updates):
        batch = batches[number % BATCHES]
        loss, size, _ = criterion(model, batch)
        (loss / size).backward()
        for copy, parameter in zip(wide, narrow, strict=True):
            copy.grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None
        norm = float(torch.nn.utils.clip_grad_norm_(wide, 1.0))
        losses.append(float(loss.detach() / size / math.log(2)))
        if not (math.isfinite(losses[-1]) and math.isfinite(norm)):
            return f"NOT FINITE at update {number + 1}: loss {losses[-1]}, gradient {norm}"
        optimizer.step()
        with torch.no_grad():
            for copy, parameter in zip(wide, narrow, strict=True):
                parameter.copy_(copy)
    first, last = (sum(part) / len(part) for part in (losses[:BATCHES], losses[-BATCHES:]))
    return f"finite, {first:.2f} to {last:.2f}"


def main() -> None:
    """Train all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=500, help="for each system (500)")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    failed = 0
    for name, (arch, options) in systems().items():
        said = train(arch, options, args.updates, torch.device(args.device))
        failed += said.startswith("NOT")
        print(f"{name:40}{args.updates} updates in bf16: {said}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
