from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch import Tensor

from syncattn_fairseq.criterions import label_smoothed_cross_entropy_with_syntax as criterions
from syncattn_fairseq.criterions import label_smoothing
from syncattn_fairseq.criterions.label_smoothed_cross_entropy_with_syntax import has_plain_scores
from syncattn_fairseq.criterions.label_smoothing import (
    sum_smoothed_loss,
    sum_smoothed_loss_of_scores,
)
from tests.criterions.test_criterion import batch, criterion
from tests.models import build

PAD = 1
Loss = Callable[[Tensor, Tensor, float, int], tuple[Tensor, Tensor]]


def draw(tokens: int = 23, size: int = 40) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    target = torch.randint(2, size, (tokens,))
    target[::4] = PAD
    return 3 * torch.randn(tokens, size), target


def run(loss: Loss, scores: Tensor, smoothing: float, target: Tensor) -> list[Tensor]:
    """Return loss, NLL and gradient of the scores, with a factor as a loss scale is one."""
    scores = scores.clone().requires_grad_()
    value, nll = loss(scores, target, smoothing, PAD)
    (value * 0.37).backward()
    assert scores.grad is not None
    return [value.detach(), nll.detach(), scores.grad]


def of_fairseq(scores: Tensor, *args: Any) -> Any:
    return label_smoothed_nll_loss(scores.log_softmax(-1), *args)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_values_and_gradients_are_fairseqs_bit_for_bit(smoothing: float) -> None:
    scores, target = draw()

    def ours(scores: Tensor, *args: Any) -> Any:
        return sum_smoothed_loss(scores.log_softmax(-1), *args)

    expected, found = (run(f, scores, smoothing, target) for f in (of_fairseq, ours))
    assert all(map(torch.equal, expected, found))


def test_the_nll_has_fairseqs_gradient_too() -> None:
    scores, target = draw()
    gradients = []
    for loss in (label_smoothed_nll_loss, sum_smoothed_loss):
        log_probs = scores.log_softmax(-1).requires_grad_()
        value, nll = loss(log_probs, target, 0.1, PAD)
        (value + 2 * nll).backward()
        gradients.append(log_probs.grad)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("block", [1, 200, 2**19])
def test_from_scores_only_rounding_differs(
    smoothing: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_smoothing, "BLOCK", block)
    scores, target = draw()
    scores = scores.double()
    expected, found = (
        run(f, scores, smoothing, target) for f in (of_fairseq, sum_smoothed_loss_of_scores)
    )
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    with torch.no_grad():
        value, nll = sum_smoothed_loss_of_scores(scores, target, smoothing, PAD)
    torch.testing.assert_close([value, nll], expected[:2], rtol=1e-10, atol=1e-12)


def test_from_scores_the_gradient_is_that_of_the_loss() -> None:
    scores, target = draw(tokens=5, size=9)
    scores = scores.double().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: sum_smoothed_loss_of_scores(x, target, 0.1, PAD)[0], scores
    )


def test_scores_far_from_zero_are_finite() -> None:
    scores, target = draw()
    for shift in (-1e4, 1e4):
        value, nll, gradient = run(sum_smoothed_loss_of_scores, scores * 30 + shift, 0.1, target)
        assert value.isfinite() and nll.isfinite() and gradient.isfinite().all()


def test_the_criterion_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def watch(name: str) -> None:
        function = getattr(criterions, name)
        monkeypatch.setattr(criterions, name, lambda *a: (called.append(name), function(*a))[1])

    watch("sum_smoothed_loss")
    watch("sum_smoothed_loss_of_scores")
    model, sample, objective = build.model("transformer_dbsa"), batch(), criterion()
    plain, _, log = objective(model, sample)
    each, _, _ = objective(model, sample, reduce=False)
    objective.fast = True
    fast, _, fast_log = objective(model, sample)
    assert called == ["sum_smoothed_loss", "sum_smoothed_loss_of_scores"]
    torch.testing.assert_close([each.sum(), fast], [plain, plain])
    torch.testing.assert_close(fast_log["nll_loss"], log["nll_loss"])
    assert fast.requires_grad


def test_models_with_another_softmax_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.zeros(1, 2, 3)
    for arch in ("transformer_dbsa", "transformer_tiny", "rnn_syntax_directed"):
        assert has_plain_scores(build.model(arch), scores)
    model = build.model("transformer_dbsa")
    assert not has_plain_scores(model, scores.double())
    for owner in (model, model.decoder):
        with monkeypatch.context() as patch:
            patch.setattr(type(owner), "get_normalized_probs", lambda *args: None)
            assert not has_plain_scores(model, scores)
    model.decoder.adaptive_softmax = torch.nn.Identity()
    assert not has_plain_scores(model, scores)
