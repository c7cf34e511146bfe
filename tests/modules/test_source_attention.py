from __future__ import annotations

import pytest
import torch
from fairseq.modules import MultiheadAttention
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.modules import (
    BatchView,
    FlexibleAttention,
    GlobalAttention,
    LocalAttention,
    Source,
    SyntaxDirectedAttention,
    TreeCrossAttention,
    gru_step,
)


def source(seed: int, left: bool) -> Source:
    torch.manual_seed(seed)
    lengths = torch.randint(1, 9, (3, 1))
    columns = torch.arange(8)
    padding = columns < 8 - lengths if left else columns >= lengths
    return Source(padding, torch.randint(0, 7, (3, 8, 8)))


@given(st.integers(0, 1000), st.booleans())
def test_weights_of_every_attention(seed: int, left: bool) -> None:
    where = source(seed, left)
    padding = where.padding_mask.unsqueeze(1).expand(3, 4, 8)
    scores, state = torch.randn(3, 4, 8).masked_fill(padding, -torch.inf), torch.randn(3, 4, 5)
    for attention in (
        GlobalAttention(),
        LocalAttention(5, 2),
        FlexibleAttention(5, 2),
        SyntaxDirectedAttention(5, 2),
    ):
        weights = attention(scores, state, where)
        assert (weights[padding] == 0).all()
        total = weights.sum(-1)
        if isinstance(attention, LocalAttention):
            place = attention.position(state, where)
            outside = (torch.arange(8) - place.unsqueeze(-1)).abs() > 2
            assert (weights[outside] == 0).all() and (total < 1 + 1e-6).all()
            continue
        if isinstance(attention, SyntaxDirectedAttention):
            place = attention.position(state, where).round().long()
            rows = where.tree_distances.gather(1, place.unsqueeze(-1).expand(3, 4, 8))
            assert (weights[rows > 2] == 0).all()
            # The random distances may put the expected word itself out of its window.
            total = total[((rows <= 2) & ~padding).any(-1)]
        torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("left", [False, True])
def test_a_position_is_a_column_of_its_sentence(left: bool) -> None:
    where = source(3, left)
    attention = LocalAttention(5)
    with torch.no_grad():
        for scale in (-1000.0, 1000.0):  # far to either end
            attention.position.output.weight.fill_(scale)
            attention.position.hidden.weight.fill_(1.0)
            place = attention.position(torch.ones(3, 1, 5), where)[:, 0]
            end = where.first if scale < 0 else where.first + where.lengths - 1
            torch.testing.assert_close(place, end.float())


def test_a_gru_step_is_that_of_pytorchs_cell() -> None:
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(3, 4)
    x, state = torch.randn(2, 3), torch.randn(2, 4)
    inputs = x @ cell.weight_ih.T + cell.bias_ih
    recurrent = state @ cell.weight_hh.T + cell.bias_hh
    torch.testing.assert_close(gru_step(inputs, recurrent, state), cell(x, state))


def show_trees(attention: TreeCrossAttention, distances: torch.Tensor) -> None:
    tokens = torch.zeros_like(distances[:, 0])
    attention.view.fill(tokens, tokens.bool(), {"src_tree_distances": distances})


def tree_attention(heads: int) -> TreeCrossAttention:
    torch.manual_seed(0)
    options = {"view": BatchView(), "tree_heads": heads, "tree_window": 2}
    made = TreeCrossAttention(8, 4, encoder_decoder_attention=True, **options)
    distances = torch.randint(0, 5, (2, 6, 6))
    columns = torch.arange(6)
    distances[:, columns, columns] = 0
    show_trees(made, distances)
    return made.eval()


def test_tree_heads_of_a_transformer_see_their_window_and_the_others_everything() -> None:
    attention = tree_attention(heads=3)
    query, key = torch.randn(5, 2, 8), torch.randn(6, 2, 8)
    padding = torch.tensor([[False] * 6, [True, True] + [False] * 4])
    _, weights = attention(query, key, key, key_padding_mask=padding, need_head_weights=True)
    place = attention.position(query.transpose(0, 1), Source(padding)).round().long()
    distances = attention.view.require("src_tree_distances", "")
    rows = distances.gather(1, place.unsqueeze(-1).expand(2, 5, 6))
    outside = (rows > 2) | padding.unsqueeze(1)
    for head in range(4):
        zero = weights[head] == 0
        assert torch.equal(zero, outside if head < 3 else padding.unsqueeze(1).expand_as(zero))
    torch.testing.assert_close(weights.sum(-1), torch.ones(4, 2, 5))


def test_without_a_parse_tree_heads_are_ordinary() -> None:
    attention = tree_attention(heads=2)
    show_trees(attention, torch.zeros_like(attention.view.require("src_tree_distances", "")))
    query, key = torch.randn(5, 2, 8), torch.randn(6, 2, 8)
    theirs = MultiheadAttention(8, 4, encoder_decoder_attention=True).eval()
    theirs.load_state_dict(attention.state_dict(), strict=False)
    torch.testing.assert_close(attention(query, key, key)[0], theirs(query, key, key)[0])
