"""Measure the time of a training update against fairseq's own model of the same size.

All models take turns on the same batches in one process, with fairseq's Adam and, on a CPU, the
allocator as the plugin sets it. fairseq's own model is there twice, to show how much of a ratio is
noise. On a CPU, CPU time is printed too, which other programs disturb less.
Usage: ``python benchmarks/train_step.py [--family rnn] ...``.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import optim
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.dataclass.configs import FairseqConfig
from fairseq.optim.adam import FairseqAdamConfig
from fairseq.optim.fp16_optimizer import FP16Optimizer
from omegaconf import OmegaConf
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import common  # noqa: E402
from syncattn_fairseq.criterions.label_smoothed_cross_entropy_with_syntax import (  # noqa: E402
    LabelSmoothedCrossEntropyWithSyntax,
    make_config,
)
from syncattn_fairseq.data.shapes import make_plan  # noqa: E402
from syncattn_fairseq.patches.returned_memory import set_allocator  # noqa: E402
from syncattn_fairseq.tasks.fast import fuse_optimizer, replace_dropout  # noqa: E402
from syncattn_fairseq.tasks.graphs import GraphedTraining, Recorder  # noqa: E402
from syncattn_fairseq.tasks.products import (  # noqa: E402
    bf16_products,
    multiplies_bf16,
    tf32_products,
)


def make_criterion(model: Any, task: Any, **options: Any) -> Any:
    """Make the training criterion of a model: ours for our models, fairseq's for fairseq's."""
    if not hasattr(model, "source_fields"):
        return LabelSmoothedCrossEntropyCriterion(task, False, 0.1)
    cfg: Any = make_config()()
    vars(cfg).update(sentence_avg=False, label_smoothing=0.1, **options)
    return LabelSmoothedCrossEntropyWithSyntax.build_criterion(cfg, task)


def make_optimizer(model: Any, precision: str, flat: bool = False) -> Any:
    """Make fairseq's Adam; in half precision, with float32 copies of the parameters.

    Args:
        model: whose parameters it moves.
        precision: of :data:`.common.PRECISIONS`.
        flat: in fp16, keep the copies in one tensor, as fairseq does on a GPU.
    """
    options = {
        "fp16": precision == "fp16",
        "bf16": precision == "bf16",
        "fp16_scale_window": 128,
        "fp16_no_flatten_grads": not (flat or next(model.parameters()).is_cuda),
    }
    cfg = OmegaConf.merge(OmegaConf.structured(FairseqConfig), {"common": options})
    OmegaConf.set_struct(cfg, False)
    cfg.optimizer = OmegaConf.structured(FairseqAdamConfig(adam_betas="(0.9, 0.98)"))
    cfg.optimizer._name, cfg.optimizer.lr = "adam", [1e-3]
    parameters = [p for p in model.parameters() if p.requires_grad]
    if precision == "fp32":
        return optim.build_optimizer(cfg.optimizer, parameters)
    return FP16Optimizer.build_optimizer(cfg, parameters)


def make_update(
    arch: str,
    options: dict[str, Any],
    args: argparse.Namespace,
    task: Any,
    batches: list[dict[str, Any]],
    fast: bool = False,
    moved: bool = False,
    recorder: Recorder | None = None,
) -> Callable[[], Tensor | None]:
    """Return a function that trains on the next batch and returns the loss per token.

    It returns None, and changes nothing, if half precision overflows.

    Args:
        arch, options, args, task, batches: what to train, and on what.
        fast: as with ``--fast`` on a CPU.
        moved: with one weight moved by one rounding.
        recorder: of the passes of a GPU, with ``--fast``; None for passes as they are.

    Raises:
        RuntimeError: the passes cannot be recorded.
    """
    device = torch.device(args.device)
    dropout = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.1)
    options = {**dropout, **options}
    dtype = common.PRECISIONS[args.precision]
    model = common.make_model(arch, task, device, **options).to(dtype).train()
    if moved:
        with torch.no_grad():
            model.encoder.layers[0].fc1.weight[0, 0] *= 1 + torch.finfo(dtype).eps
    tied = getattr(model.decoder, "distance_sync_layers", ())
    losses = {"sync_mse_weight": 0.01, "sync_rank_weight": 0.01} if tied else {}
    criterion = make_criterion(model, task, **losses)
    optimizer = make_optimizer(model, args.precision)
    products: Callable[[], Any] = nullcontext
    if hasattr(model, "source_fields"):
        replace_dropout(model, fast)
        fuse_optimizer(optimizer, fast)
        criterion.fast = fast
        if fast and multiplies_bf16():
            shapes = [(*b["net_input"]["src_tokens"].shape, b["target"].size(1)) for b in batches]
            products = partial(bf16_products, make_plan(np.array(shapes)).round_rows)
    graphs = None
    if recorder is not None:
        graphs, products = GraphedTraining(model, criterion, optimizer, recorder), tf32_products
    state = {"n": 0}

    def update() -> Tensor | None:
        batch = dict(batches[state["n"] % len(batches)])
        batch["net_input"] = common.net_input(model, batch)
        state["n"] += 1
        with products():
            if graphs is not None:
                trained = graphs.step(batch, state["n"])
                if trained is None:
                    raise RuntimeError(graphs.obstacle)
                loss, sample_size, _ = trained
            else:
                loss, sample_size, _ = criterion(model, batch)
                optimizer.backward(loss)
        optimizer.multiply_grads(1 / sample_size)
        try:
            optimizer.clip_grad_norm(1.0)
        except OverflowError:  # of the scaled loss; the scale is lower from now on
            optimizer.zero_grad()
            return None
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach() / sample_size

    return update


def main() -> None:
    """Measure a training update of every system, and print its time relative to fairseq's."""
    parser = common.parser(__doc__)
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument("--mean-length", type=int, default=26, help="subwords of a sentence")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    task = common.make_task(args.vocabulary)
    if device.type == "cpu":
        set_allocator()
    batches = [
        common.make_batch(task, args.max_tokens, device, args.mean_length, seed)
        for seed in range(4)
    ]
    updates = {
        name: make_update(arch, options, args, task, batches)
        for name, (arch, options) in common.systems(args).items()
    }
    print(f"one update, {args.max_tokens} tokens, {common.describe(args)}, {args.precision}")
    memory = common.measure_memory(updates, device)
    seconds, cpu = common.interleaved_twice(updates, args.rounds, device)
    common.print_ratios(seconds, memory=memory)
    if device.type == "cpu":
        print("CPU time")
        common.print_ratios(cpu)


if __name__ == "__main__":
    main()
