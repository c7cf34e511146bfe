"""Measure how strong each loss's gradient is, and whether losses oppose each other.

    python -m study.gradients data-bin/multi30k_tiny_en_de_3625 \
        checkpoints/multi30k_tiny_en_de_3625/syncattn/1/checkpoint_*.pt

For each checkpoint of one training and each loss, weighted as in training: the norm of its
gradient, on the same batches without dropout, and the cosines of the angles between it and the
losses above it.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from torch import Tensor

import syncattn_fairseq.plugin  # noqa: F401  (registers the models)
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.checkpoints.checkpoint_file import read_checkpoint


def flatten_gradient(model: torch.nn.Module, loss: Tensor) -> Tensor:
    """Return the gradient of a loss with respect to all parameters, as one vector."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    pairs = zip(gradients, parameters, strict=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs])


def measure(path: Path, data: str, batches: int, max_tokens: int) -> list[list[str]]:
    """Return the table of a checkpoint: a header, then a row for each of its weighted losses.

    Args:
        path: the checkpoint.
        data: the folder of the binarised corpus.
        batches: the number of batches of the validation text.
        max_tokens: the largest number of tokens in a batch.
    """
    [model], cfg, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(path)], arg_overrides={"data": data}
    )
    criterion: Any = task.build_criterion(cfg.criterion)
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(task.dataset("valid"), max_tokens=max_tokens, seed=1)
    samples = [s for _, s in zip(range(batches), iterator.next_epoch_itr(), strict=False)]
    model.train()
    for module in model.modules():  # no dropout
        if hasattr(module, "p"):
            module.p = 0.0
    gradients: dict[str, Tensor] = {}
    values: dict[str, float] = {}
    tokens = sum(s["ntokens"] for s in samples)
    for sample in samples:
        output = model(**sample["net_input"])
        losses = {"translation": criterion.compute_loss(model, output, sample)[0]}
        for term in criterion.terms:
            if term.weight and term.applies(output[1], sample):
                losses[term.name] = term.weight * term(output[1], sample)[0]
        for name, loss in losses.items():
            share = flatten_gradient(model, loss / tokens)
            gradients[name] = gradients.get(name, 0) + share
            values[name] = values.get(name, 0.0) + float(loss.detach()) / tokens
    number = read_checkpoint(path)["optimizer_history"][-1]["num_updates"]
    rows = []
    for place, (name, gradient) in enumerate(gradients.items()):
        above = list(gradients.values())[:place]
        cosines = [f"{torch.cosine_similarity(gradient, g, dim=0):+.2f}" for g in above]
        measured = [str(number), name, f"{values[name]:.3f}", f"{gradient.norm():.3f}"]
        rows.append([*measured, *cosines, *[""] * (len(gradients) - 1 - place)])
    return [["update", "loss", "nats per token", "norm", *list(gradients)[:-1]], *rows]


def main() -> None:
    """Print the norms and cosines of the losses' gradients at each checkpoint."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("data", help="the binarised corpus")
    made.add_argument("checkpoints", nargs="+", type=Path)
    made.add_argument("--batches", type=int, default=8)
    made.add_argument("--max-tokens", type=int, default=1024)
    args = made.parse_args()
    rows: list[list[str]] = []
    for path in args.checkpoints:
        header, *measured = measure(path, args.data, args.batches, args.max_tokens)
        rows += measured if rows else [header, *measured]
    print(format_table(rows))


if __name__ == "__main__":
    main()
