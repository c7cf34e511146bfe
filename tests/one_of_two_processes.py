"""Train every system with two processes; ``test_two_processes.py`` starts the first.

Usage: ``python -m tests.one_of_two_processes FILE``, with a file to meet at. The second process, a
fork, has no parse and no link at all. Both print what differs from one process with both batches,
and where they log other names than each other.
"""

import copy
import os
import sys
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from tests.criterions.test_criterion import batch, criterion
from tests.criterions.test_guided_alignment import with_links
from tests.models import build
from tests.systems import SYSTEMS, no_dropout, weights_of


def unparsed() -> dict[str, Any]:
    """The batch as a corpus without parses and links on this worker's lines would give it."""
    sample = batch()
    net_input = sample["net_input"]
    for side in ("src_parents", "tgt_parents", "source_tree_distances", "target_tree_distances"):
        sample[side].fill_(-1)
    for name in ("src_parent_positions", "src_gap_heights"):
        net_input[name].fill_(float("nan"))
    net_input["src_tree_distances"].zero_()
    labels = net_input["src_labels"]
    labels.masked_fill_(labels > build.EOS, build.dictionary().unk())
    return sample


def differences(rank: int) -> list[str]:
    """Name each parameter whose gradient is not that of one process."""
    found = []
    for name, (arch, options) in SYSTEMS.items():
        if "ignoring" in name or "shuffled" in name:
            continue  # draws at random
        model = build.model(arch, noise=0.1, **no_dropout(arch), **options).train()
        weights = weights_of(name) | {"guided_alignment_weight": 0.0 if "rnn" in arch else 0.1}
        alone, objective = copy.deepcopy(model), criterion(**weights)
        sample = unparsed() if rank else with_links()
        loss, _, log = objective(alone, sample)
        loss.backward()
        names: list[Any] = [None, None]
        distributed.all_gather_object(names, [*log])
        if names[0] != names[1]:
            found.append(f"{name}: logs {names[rank]}")
        spread = DistributedDataParallel(model)
        for _ in range(2):  # the second time, PyTorch notices parameters without a gradient
            model.zero_grad()
            objective(_Whole(spread, model), sample)[0].backward()
        whole = _gradients(alone)
        distributed.all_reduce(whole)  # one process adds up the gradients of both batches
        sizes = [p.numel() for p in model.parameters()]
        # DistributedDataParallel averages; fairseq multiplies by the number of processes.
        both = zip((2 * _gradients(model)).split(sizes), whole.split(sizes), strict=True)
        for (key, _), (ours, expected) in zip(model.named_parameters(), both, strict=True):
            if not torch.allclose(ours, expected, rtol=1e-3, atol=1e-5):
                found.append(f"{name}: {key}")
    return found


class _Whole:
    """A spread model with the attributes of the model itself, as fairseq's trainer has it."""

    def __init__(self, spread: Any, model: Any) -> None:
        self.spread, self.model = spread, model

    def __call__(self, **inputs: Any) -> Any:
        return self.spread(**inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def _gradients(model: torch.nn.Module) -> Tensor:
    """Return all gradients as one vector; that of a parameter that nothing read is 0."""
    parameters = model.parameters()
    return torch.cat([(0 * p if p.grad is None else p.grad).detach().flatten() for p in parameters])


if __name__ == "__main__":
    torch.set_num_threads(1)
    second = os.fork()  # seconds of imports, once
    rank = 0 if second else 1
    distributed.init_process_group("gloo", f"file://{sys.argv[1]}", rank=rank, world_size=2)
    print(*differences(rank), sep="\n")
    distributed.destroy_process_group()
    if second:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]))
