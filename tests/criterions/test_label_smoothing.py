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
    BLOCK_SCORES,
    _blocks,
    sum_smoothed_loss,
    sum_smoothed_loss_of_scores,
)
from tests.criterions.test_criterion import batch, criterion
from tests.models import build

PAD = build.PAD
Loss = Callable[[Tensor, Tensor, float, int], tuple[Tensor, Tensor]]


def draw(tokens: int = 23, size: int = 40) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    target = torch.randint(2, size, (tokens,))
    target[::4] = PAD
    return 3 * torch.randn(tokens, size), target


def of_fairseq(scores: Tensor, *args: Any) -> Any:
    return label_smoothed_nll_loss(scores.log_softmax(-1), *args)


def of_log_probs(scores: Tensor, *args: Any) -> Any:
    return sum_smoothed_loss(scores.log_softmax(-1), *args)


def check_bits(
    ours: Loss, inputs: tuple[Tensor, Tensor], smoothing: float = 0.1, of_loss: float = 1.0
) -> None:
    """Compare loss, NLL and gradient of the scores with fairseq's."""
    scores, target = inputs
    results = []
    for loss in (of_fairseq, ours):
        scores = scores.detach().clone().requires_grad_()
        value, nll = loss(scores, target, smoothing, PAD)
        (value * of_loss).backward()
        results.append([value, nll, scores.grad])
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize("ours", [of_log_probs, sum_smoothed_loss_of_scores])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("of_loss", [1.0, 0.37])
def test_values_and_gradients_are_fairseqs_bit_for_bit(ours, smoothing, of_loss):
    check_bits(ours, draw(), smoothing, of_loss)


@pytest.mark.parametrize("ours", [of_log_probs, sum_smoothed_loss_of_scores])
def test_the_nll_has_fairseqs_gradient_too(ours):
    scores, target = draw()
    gradients = []
    for loss in (of_fairseq, ours):
        scores = scores.detach().clone().requires_grad_()
        value, nll = loss(scores, target, 0.1, PAD)
        (value + 2 * nll).backward()
        gradients.append(scores.grad)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("size", [40, 41])
@pytest.mark.parametrize("tokens", [0, 1, 2, 3, 23])
@pytest.mark.parametrize("block", [1, 80, 200, 2**19])
def test_blocks_do_not_change_a_bit(block, tokens, size, monkeypatch):
    monkeypatch.setattr(label_smoothing, "BLOCK_SCORES", block)
    check_bits(sum_smoothed_loss_of_scores, draw(tokens, size))


def test_no_block_is_a_single_row_which_threads_would_add_up_in_another_order():
    for rows in range(2, 60):
        for eighths in (1, 8 / 7, 4, 8, 16):
            size = int(eighths * BLOCK_SCORES / 8)
            blocks = _blocks(rows, size)
            lengths = [block.stop - block.start for block in blocks]
            assert blocks[0].start == 0 and blocks[-1].stop == rows == sum(lengths)
            assert min(lengths) >= 2 and max(lengths) * size < 4 * max(size, BLOCK_SCORES)
    assert _blocks(1, 9) == [slice(0, 1)]


def test_without_gradients_none_is_kept():
    scores, target = draw()
    expected = of_fairseq(scores, target, 0.1, PAD)
    results = sum_smoothed_loss_of_scores(scores, target, 0.1, PAD)
    assert all(map(torch.equal, expected, results))
    assert not any(value.requires_grad for value in results)


def test_the_criterion_uses_it(monkeypatch):
    called: list[str] = []

    def watch(name: str) -> None:
        function = getattr(criterions, name)
        monkeypatch.setattr(criterions, name, lambda *a: (called.append(name), function(*a))[1])

    watch("sum_smoothed_loss")
    watch("sum_smoothed_loss_of_scores")
    model, sample, objective = build.model("transformer_dbsa_tiny"), batch(), criterion()
    plain, _, log = objective(model, sample)
    each, _, _ = objective(model, sample, reduce=False)
    monkeypatch.setattr(criterions, "has_plain_scores", lambda *args: False)
    asked, _, asked_log = objective(model, sample)
    assert called == ["sum_smoothed_loss_of_scores", "sum_smoothed_loss"]
    torch.testing.assert_close(each.sum(), plain)
    assert torch.equal(asked, plain) and torch.equal(asked_log["nll_loss"], log["nll_loss"])
    assert asked.requires_grad and plain.requires_grad


def test_models_with_another_softmax_are_asked(monkeypatch):
    scores = torch.zeros(1, 2, 3)
    for arch in ("transformer_dbsa_tiny", "transformer_tiny", "rnn_syntax_directed"):
        assert has_plain_scores(build.model(arch), scores)
    model = build.model("transformer_dbsa_tiny")
    assert not has_plain_scores(model, scores.double())
    for owner in (model, model.decoder):
        with monkeypatch.context() as patch:
            patch.setattr(type(owner), "get_normalized_probs", lambda *args: None)
            assert not has_plain_scores(model, scores)
    model.decoder.adaptive_softmax = torch.nn.Identity()
    assert not has_plain_scores(model, scores)
