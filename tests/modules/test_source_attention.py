import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.modules import (
    FlexibleAttention,
    GlobalAttention,
    LocalAttention,
    PositionPredictor,
    Source,
    SyntaxDirectedAttention,
    gru_step,
)


def source(seed: int, left: bool) -> Source:
    torch.manual_seed(seed)
    lengths = torch.randint(1, 9, (3, 1))
    columns = torch.arange(8)
    padding = columns < 8 - lengths if left else columns >= lengths
    return Source(padding, torch.randint(0, 7, (3, 8, 8)))


@given(st.integers(0, 1000), st.booleans())
def test_weights_of_every_attention(seed, left):
    where = source(seed, left)
    padding = where.padding_mask.unsqueeze(1).expand(3, 4, 8)
    scores, state = torch.randn(3, 4, 8).masked_fill(padding, -torch.inf), torch.randn(3, 4, 5)
    for attention in (
        GlobalAttention(),
        LocalAttention(5, 2),
        LocalAttention(5, 2, renormalise=True),
        FlexibleAttention(5, 2),
        SyntaxDirectedAttention(5, 2),
        SyntaxDirectedAttention(5, 2, "expected"),
    ):
        weights, position = attention(scores, state, where)
        assert (weights[padding] == 0).all()
        total = weights.sum(-1)
        if isinstance(attention, LocalAttention):
            outside = (torch.arange(8) - where.columns(position).unsqueeze(-1)).abs() > 2
            assert (weights[outside] == 0).all() and (total < 1 + 1e-6).all()
            if not attention.renormalise:
                continue
        if isinstance(attention, SyntaxDirectedAttention):
            assert where.tree_distances is not None
            rows = scores.softmax(-1) @ where.tree_distances.float()
            if position is not None:
                column = where.columns(position).round().long().unsqueeze(-1)
                rows = where.tree_distances.gather(1, column.expand_as(scores))
            # The random distances may put the expected word itself out of its window.
            nearest = rows.masked_fill(padding, 99).amin(-1, keepdim=True)
            assert (weights[rows > nearest.clamp_min(2)] == 0).all()
        torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("left", [False, True])
def test_a_position_is_a_column_of_its_sentence(left):
    where = source(3, left)
    predictor = PositionPredictor(5)
    with torch.no_grad():
        for scale in (-1000.0, 1000.0):  # far to either end
            predictor.output.weight.fill_(scale)
            predictor.hidden.weight.fill_(1.0)
            column = where.columns(predictor(torch.ones(3, 1, 5), where))[:, 0]
            end = where.first if scale < 0 else where.first + where.lengths - 1
            torch.testing.assert_close(column, end.float())


@pytest.mark.parametrize("width", [64, 1024])
def test_a_common_gradient_does_not_throw_every_state_to_an_end(width):
    """Adam turns the smallest gradient into full steps of all the weights."""
    torch.manual_seed(0)
    predictor = PositionPredictor(width)
    where = Source(torch.zeros(8, 15, dtype=torch.bool))
    state = torch.rand(8, 1, width)  # alike, as the states of an untrained decoder are
    optimiser = torch.optim.Adam(predictor.parameters(), lr=1e-3)
    for _ in range(200):
        optimiser.zero_grad()
        (1e-6 * predictor(state, where).sum()).backward()
        optimiser.step()
    assert (predictor(state, where) > 0.5).all()


def test_it_learns_where_a_state_is():
    torch.manual_seed(0)
    predictor = PositionPredictor(64)
    where, clock = Source(torch.zeros(1, 15, dtype=torch.bool)), torch.arange(15.0)
    state = torch.sin(clock[:, None] / 15 * torch.randn(64) + torch.randn(64)).unsqueeze(0)
    optimiser = torch.optim.Adam(predictor.parameters(), lr=1e-2)
    for _ in range(200):
        optimiser.zero_grad()
        ((predictor(state, where) - clock) ** 2).mean().backward()
        optimiser.step()
    assert (predictor(state, where) - clock).abs().mean() < 0.5


def test_a_gru_step_is_that_of_pytorchs_cell():
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(3, 4)
    x, state = torch.randn(2, 3), torch.randn(2, 4)
    inputs = x @ cell.weight_ih.T + cell.bias_ih
    recurrent = state @ cell.weight_hh.T + cell.bias_hh
    torch.testing.assert_close(gru_step(inputs, recurrent, state), cell(x, state))
