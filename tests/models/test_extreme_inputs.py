from collections.abc import Callable
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY

from tests.criterions.test_criterion import TIED, WEIGHTS, criterion
from tests.models import build

UNKNOWN = 3
LONG_TARGET, FUTURE = "hundreds of target tokens", "every parent in the future"
NAMES = [
    name
    for name, model in ARCH_MODEL_NAME_REGISTRY.items()
    if (model == "syntax_transformer" and name.endswith("_tiny")) or model == "syntax_rnn"
]


def batch(source: list[int], target: list[int], ahead: int) -> Any:
    """Make a batch of sentences of some lengths, whose parents stand so many columns ahead."""
    sides = build.sentences(source), build.sentences(target, seed=1)
    net_input = build.net_input(*sides)
    parents = []
    for tokens in (net_input["src_tokens"], net_input["prev_output_tokens"]):
        columns = torch.arange(tokens.size(1)).expand_as(tokens)
        outside = tokens.eq(build.PAD) | tokens.eq(build.EOS)
        parents.append((columns + ahead).clamp(0, tokens.size(1) - 1).masked_fill(outside, -1))
    positions = parents[0].double().masked_fill(parents[0] < 0, float("nan"))
    net_input["src_parent_positions"] = positions
    return {
        "net_input": net_input,
        "target": torch.nn.utils.rnn.pad_sequence(sides[1], True, build.PAD),
        "ntokens": sum(target) + len(target),
        "nsentences": len(target),
        "src_parents": parents[0],
        "tgt_parents": parents[1],
    }


def all_unknown() -> Any:
    sample = batch([7, 4], [5, 5], -1)
    for tokens in (*sample["net_input"].values(), sample["target"]):
        if tokens.dtype == torch.long and tokens.dim() == 2:
            tokens[tokens > build.EOS] = UNKNOWN
    return sample


def no_parent_at_all() -> Any:
    sample = batch([6, 3], [6, 5], 0)
    for parents in (sample["src_parents"], sample["tgt_parents"]):
        parents.fill_(-1)
    sample["net_input"]["src_parent_positions"].fill_(float("nan"))
    return sample


def identical_words() -> Any:
    """All tokens and tree distances the same, and so all that is measured between them."""
    sample = batch([8, 8], [8, 8], -9)
    for tokens in (sample["net_input"]["src_tokens"], sample["net_input"]["prev_output_tokens"]):
        tokens[tokens > build.EOS] = 5
    sample["net_input"]["src_tree_distances"].zero_()
    return sample


INPUTS: dict[str, Callable[[], Any]] = {
    "one token": lambda: batch([1], [1], 0),
    "an empty sentence beside a long one": lambda: batch([0, 9], [9, 0], -1),
    "hundreds of source tokens": lambda: batch([200], [9], 1),
    LONG_TARGET: lambda: batch([9], [200], 1),
    FUTURE: lambda: batch([6, 3], [6, 5], 1),
    "all unknown": all_unknown,
    "no parent at all": no_parent_at_all,
    "identical words": identical_words,
}


def make_model(name: str, **options: Any) -> Any:
    if name == "transformer_lpsi_tiny":
        options |= {**TIED, "decoder_layers": 3}
    return build.model(name, **options).train()


def check_finite(model: Any, sample: Any) -> None:
    loss, size, log = criterion(**WEIGHTS)(model, sample)
    (loss / size).backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(torch.as_tensor(value)).all() for value in log.values()), log
    for parameter, value in model.named_parameters():
        assert value.grad is None or torch.isfinite(value.grad).all(), parameter


@pytest.mark.parametrize("name", NAMES)
def test_losses_and_gradients_are_finite(name):
    model = make_model(name, noise=0.1)
    for kind, make in INPUTS.items():
        if kind != LONG_TARGET or "rnn" not in name:  # else nothing but hundreds of steps
            model.zero_grad()
            check_finite(model, make())


@pytest.mark.parametrize("scale", [0.0, 1e3])
@pytest.mark.parametrize("name", NAMES)
def test_finite_with_extreme_weights(name, scale):
    """Weights of zero make all scores and distances the same; large ones make them extreme."""
    model = make_model(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    check_finite(model, INPUTS[FUTURE]())
