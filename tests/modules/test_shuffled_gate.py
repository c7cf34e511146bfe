import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules.heads import Scope, ShuffledGateHeads
from tests.functional import reference

sentences = st.lists(st.integers(4, 30), min_size=1, max_size=8)
PAD = 1


def shuffled(tokens: Tensor) -> ShuffledGateHeads:
    torch.manual_seed(0)
    heads = ShuffledGateHeads(2, 4, BatchView(), look_back=1).double()
    heads.view.fill(tokens, tokens.eq(PAD), {})
    return heads


def scope(tokens: Tensor, causal: bool, state: dict[str, Tensor] | None = None) -> Scope:
    return Scope(None, tokens.eq(PAD), causal, torch.nn.Dropout(0.0), state)


def reorder(tokens: Tensor, causal: bool) -> list[list[list[int]]]:
    heads = shuffled(tokens)
    order = heads._shuffle_prefixes(tokens.size(1)) if causal else heads._shuffle_sentences()
    rows: list[list[list[int]]] = order.tolist()
    return rows


@given(sentences, st.integers(0, 3), st.booleans())
def test_each_sentence_has_one_order_in_every_batch(sentence, pads, left):
    alone = reorder(torch.tensor([sentence]), causal=False)[0][0]
    assert sorted(alone) == [*range(len(sentence))]
    padding = [PAD] * pads
    row = padding + sentence if left else sentence + padding
    other = [5] * len(row)
    first = pads if left else 0
    result = reorder(torch.tensor([other, row]), causal=False)[1][0]
    inside = result[first : first + len(sentence)]
    assert [column - first for column in inside] == alone


@given(sentences, st.integers(4, 30))
def test_a_decoders_orders_are_those_of_what_was_read(sentence, more):
    orders = reorder(torch.tensor([sentence]), causal=True)[0]
    longer = reorder(torch.tensor([[*sentence, more]]), causal=True)[0]
    for row, order in enumerate(orders):
        seen = order[: row + 1]
        assert sorted(seen) == [*range(row + 1)]
        assert longer[row][: row + 1] == seen
    last = shuffled(torch.tensor([sentence]))._shuffle_prefixes(1).tolist()[0][0]
    assert last == orders[-1]
    padded = reorder(torch.tensor([[PAD, *sentence], [5, *sentence]]), causal=True)[0][1:]
    assert [[column - 1 for column in row[1:]] for row in padded] == orders


def test_orders_are_random():
    sentence = [*range(4, 24)]
    changed = [*sentence[:-1], 25]
    orders = [reorder(torch.tensor([tokens]), False)[0][0] for tokens in (sentence, changed)]
    assert orders[0] != orders[1]
    for order in orders:
        assert sum(number == column for number, column in enumerate(order)) < 6
    prefixes = reorder(torch.tensor([sentence]), True)[0]
    assert prefixes[18][:18] != prefixes[17][:18], "each row has an order of its own"


@pytest.mark.parametrize("causal", [False, True])
def test_gates_are_lpsis_of_the_shuffled_distances(causal):
    tokens = torch.tensor([[7, 9, 4, 12, 8, 2], [5, 6, 2, PAD, PAD, PAD]])
    heads, keys = shuffled(tokens), torch.randn(2, 2, 6, 4).double()
    gates = heads.bias(keys, keys, scope(tokens, causal)).exp()
    distances = heads.measure(keys, tokens.eq(PAD))
    orders = reorder(tokens, causal)
    for b, length in enumerate((6, 3)):
        for h in range(2):
            for t in range(length):
                order = orders[b][t if causal else 0][: t + 1 if causal else length]
                moved = distances[b, h, order].tolist()
                expected = reference.distance_gates(moved, 1.0, causal)[t]
                result = gates[b, h, t, : len(order)].tolist()
                assert result == pytest.approx(expected, abs=1e-6)
            if causal:
                assert gates[b, h].triu(1).max() < 1e-30


def test_steps_of_decoding_are_the_rows():
    tokens = torch.tensor([[7, 9, 4, 12, 8], [5, 6, 7, 8, 2]])
    heads, keys = shuffled(tokens), torch.randn(2, 2, 5, 4).double()
    whole = heads.bias(keys, keys, scope(tokens, causal=True))
    state: dict[str, Tensor] = {}
    for step in range(5):
        seen = tokens[:, : step + 1]
        heads.view.fill(seen, seen.eq(PAD), {})
        row = heads.bias(
            keys[:, :, step : step + 1], keys[:, :, : step + 1], scope(seen, True, state)
        )
        torch.testing.assert_close(row[:, :, 0], whole[:, :, step, : step + 1])
