import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from syncattn_fairseq.functional import alibi_slopes, relative_buckets, supervised_log_gates
from syncattn_fairseq.functional._gates import SHUT
from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules.heads import (
    ConstantGateHeads,
    DistanceBiasHeads,
    ForgetGateHeads,
    Scope,
    SupervisedGateHeads,
)
from syncattn_fairseq.modules.positions import (
    POSITIONS,
    AlibiPositions,
    BiasPositions,
    MarianEmbedding,
    RotaryPositions,
    marian_table,
    register_positions,
)
from syncattn_fairseq.modules.positions.positions import Order

CPU = torch.device("cpu")


def view(tokens: int = 6, **fields: Tensor) -> BatchView:
    filled = BatchView()
    filled.fill(torch.full((1, tokens), 7), torch.zeros(1, tokens).bool(), fields)
    return filled


def scope(x: Tensor | None = None) -> Scope:
    return Scope(None, None, False, torch.nn.Dropout(0.0), x=x)


def states(heads: int = 3, rows: int = 6) -> Tensor:
    return torch.zeros(1, heads, rows, 4)


@pytest.mark.parametrize("rows", [6, 1])
def test_alibi_falls_on_both_sides(rows):
    bias = AlibiPositions(3, 4, view(), causal=False, scale=2.0).bias(rows, 6, CPU)
    for h, slope in enumerate(alibi_slopes(3).tolist()):
        expected = [[-2 * slope * abs(i - j) for j in range(6)] for i in range(6 - rows, 6)]
        torch.testing.assert_close(bias[h], torch.tensor(expected))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [6, 1])
def test_learnt_biases_are_looked_up_by_bucket(rows, causal):
    positions = BiasPositions(3, 4, view(), causal)
    assert positions.weight.eq(0).all(), "they start at 0"
    positions.weight.data = torch.randn(32, 3)
    bias = positions.bias(rows, 6, CPU)
    for row, i in enumerate(range(6 - rows, 6)):
        for j in range(6):
            bucket = int(relative_buckets(torch.tensor(j - i), causal))
            assert bias[:, row, j].equal(positions.weight[bucket])


def test_turned_states_know_how_many_came_before():
    positions, x = RotaryPositions(3, 4, view(), causal=True), torch.randn(2, 3, 6, 4)
    whole = positions.rotate(x, 0)
    assert whole[:, :, 0].equal(x[:, :, 0])
    torch.testing.assert_close(positions.rotate(x[:, :, 4:], 4), whole[:, :, 4:])
    assert not torch.allclose(whole[:, :, 1:], x[:, :, 1:])


def test_masks_are_laid_out_as_cudas_kernels_want_them(monkeypatch):
    strides = []

    def record(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor, **_: object) -> Tensor:
        strides.append(attn_mask.stride(-1))
        return q

    monkeypatch.setattr(F, "scaled_dot_product_attention", record)
    learnt = DistanceBiasHeads(3, 4, view()).bias(states(), states(), scope())
    order = Order(bias=BiasPositions(3, 4, view(), causal=False).bias(6, 6, CPU))
    replace(scope(), order=order).attend(states(), states(), states(), None)
    for positions in (order, Order()):
        replace(scope(), order=positions).attend(states(), states(), states(), learnt)
    assert strides == [1, 1, 1]


def test_positions_with_other_settings_may_share_a_batch():
    shared, x = view(), torch.randn(1, 2, 6, 8)
    for scale in (1.0, 2.0):
        alone, here = (AlibiPositions(2, 8, v, False, scale) for v in (view(), shared))
        assert here.bias(6, 6, CPU).equal(alone.bias(6, 6, CPU))
    for width in (4, 8):
        alone, here = (RotaryPositions(2, width, v, False) for v in (view(), shared))
        assert here.rotate(x[..., :width], 0).equal(alone.rotate(x[..., :width], 0))


def test_a_name_is_given_once():
    with pytest.raises(
        ValueError, match="already a kind of positions named rotary: choose another"
    ):
        register_positions("rotary")(RotaryPositions)
    assert POSITIONS["rotary"] is RotaryPositions


@pytest.mark.parametrize("rows", [6, 1])
def test_distance_heads_look_up_what_was_learnt(rows):
    heads = DistanceBiasHeads(3, 4, view(), "linear", limit=2)
    assert heads.weight is not None and heads.weight.eq(0).all(), "they start at 0"
    heads.weight.data = torch.randn(3, 3)
    bias = heads.bias(states(rows=rows), states(), scope())
    for row, i in enumerate(range(6 - rows, 6)):
        for j in range(6):
            assert bias[:, row, j].equal(heads.weight[min(abs(i - j), 2)])


def test_one_equation_has_several_distances():
    between = torch.randint(0, 9, (1, 6, 6)).short()
    seen = view(src_tree_distances=between)
    slopes = torch.tensor([0.5, 0.25, 2.0])
    bias = DistanceBiasHeads(3, 4, seen, "tree", slopes=slopes).bias(states(), states(), scope())
    torch.testing.assert_close(bias, -slopes.view(1, 3, 1, 1) * between.unsqueeze(1))
    learnt = DistanceBiasHeads(3, 4, seen, "tree", limit=4)
    assert learnt.weight is not None
    learnt.weight.data = torch.arange(15).view(5, 3).float()
    bias = learnt.bias(states(), states(), scope())
    expected = torch.stack([3 * between.clamp_max(4) + h for h in range(3)], dim=1)
    assert bias.equal(expected.float())


def test_forget_gates_read_the_layers_input():
    heads, x = ForgetGateHeads(3, 4, view(), embed_dim=5), torch.randn(6, 1, 5)
    bias = heads.bias(states(), states(), scope(x))
    steps = (torch.arange(6) - torch.arange(6).unsqueeze(1)).abs()
    torch.testing.assert_close(bias, (-math.log(2) * steps).expand(1, 3, 6, 6))
    heads.weight.data, heads.forget_bias.data = torch.randn(3, 5), torch.randn(3)
    bias = heads.bias(states(), states(), scope(x))
    for h in range(3):
        gates = F.logsigmoid(x[:, 0] @ heads.weight[h] + heads.forget_bias[h])
        for i in range(6):
            for j in range(i + 1):
                expected = gates[j + 1 : i + 1].sum()
                torch.testing.assert_close(bias[0, h, i, j], expected)
                torch.testing.assert_close(bias[0, h, j, i], expected)


@pytest.mark.parametrize("rows", [6, 1])
def test_constant_gates_halve_from_token_to_token(rows):
    query, key = states(rows=rows).double(), states().double()
    gates = ConstantGateHeads(3, 4, view()).bias(query, key, scope()).exp()
    expected = [[0.5 ** max(0, abs(i - j) - 1) for j in range(6)] for i in range(6 - rows, 6)]
    torch.testing.assert_close(gates, torch.tensor(expected).double(), atol=1e-15, rtol=1e-14)
    assert gates.log().min() > SHUT


def test_supervised_gates_have_the_temperature_of_their_paper():
    heights = torch.tensor([[0.0, 1, 3, 1, 2, 1]])
    heads = SupervisedGateHeads(3, 4, view(src_gap_heights=heights))
    bias = heads.bias(states(), states(), scope())
    torch.testing.assert_close(bias[:, 0], supervised_log_gates(heights, 10.0))


def test_marian_embeds_by_its_formula():
    table = MarianEmbedding(6, padding_idx=1)
    tokens = torch.tensor([[1, 1, 5, 6, 7], [5, 6, 7, 8, 9]])
    for row, padded in zip(table(tokens), (2, 0), strict=True):
        for column, vector in enumerate(row.tolist()):
            t = column - padded
            angles = [t / 10000 ** (2 * k / 6) for k in range(3)]
            expected = [*map(math.sin, angles), *map(math.cos, angles)] if t >= 0 else [0.0] * 6
            assert vector == pytest.approx(expected, abs=1e-6), (column, padded)


def test_marians_table_grows_by_its_own_formula():
    table = MarianEmbedding(6, padding_idx=1)
    long = torch.full((1, 1500), 7)
    assert table(long)[0].tolist() == marian_table(1500, 6).tolist()
    assert table.state_dict() == {}, "it is not trained"


@pytest.mark.parametrize("length", [1, 3, 1400])
def test_marian_counts_one_step_as_a_whole_sentence(length):
    tokens, table = torch.full((2, length), 7), MarianEmbedding(6, padding_idx=1)
    step = table(tokens, incremental_state={})
    torch.testing.assert_close(step, table(tokens)[:, -1:])
