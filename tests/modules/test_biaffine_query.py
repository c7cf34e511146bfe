from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from syncattn_fairseq.functional import biaffine_scores
from syncattn_fairseq.modules import BiaffineQuery

HEADS, WIDTH, TOKENS = 4, 3, 5


def make(biaffine_heads: int, key_bias: bool) -> BiaffineQuery:
    torch.manual_seed(0)
    query = BiaffineQuery(
        nn.Linear(HEADS * WIDTH, HEADS * WIDTH), biaffine_heads, WIDTH, key_bias
    ).double()
    if key_bias:
        nn.init.normal_(query.biaffine_bias)
    return query


@pytest.mark.parametrize("biaffine_heads", [1, 2, 4])
@pytest.mark.parametrize("key_bias", [False, True])
def test_scaled_products_with_the_folded_query_are_the_biaffine_scores(
    biaffine_heads: int, key_bias: bool
) -> None:
    query = make(biaffine_heads, key_bias)
    x, keys = torch.randn(2, TOKENS, HEADS * WIDTH).double(), torch.randn(2, TOKENS, 12).double()

    def split(t: torch.Tensor) -> torch.Tensor:
        return t.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)

    k = split(keys)
    scores = split(query(x)) @ k.transpose(-1, -2) / math.sqrt(WIDTH)
    plain = split(query.linear(x))
    h = biaffine_heads
    bias = query.biaffine_bias if key_bias else None
    expected = biaffine_scores(plain[:, :h], k[:, :h], query.biaffine_weight, bias)
    torch.testing.assert_close(scores[:, :h], expected)
    torch.testing.assert_close(
        scores[:, h:], plain[:, h:] @ k[:, h:].transpose(-1, -2) / math.sqrt(WIDTH)
    )


def test_gradients_reach_every_parameter() -> None:
    query = make(2, key_bias=True)
    query(torch.randn(3, 12).double()).square().sum().backward()
    for name, parameter in query.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_folding_for_inference_changes_nothing() -> None:
    query = make(2, key_bias=True)
    x = torch.randn(3, 12).double()
    before = query(x)
    query.make_generation_fast_()
    torch.testing.assert_close(query(x), before)
    assert query.weight is query.weight, "folded once, not at every call"


def test_initialisation_is_xavier_uniform_with_gain_of_one_over_root_two() -> None:
    query = BiaffineQuery(nn.Linear(512, 512), heads=2, head_dim=256, key_bias=True)
    limit = math.sqrt(6 / (256 + 256)) / math.sqrt(2)
    largest = query.biaffine_weight.abs().max().item()
    assert 0.99 * limit < largest <= limit
    assert query.biaffine_bias.abs().max() == 0
