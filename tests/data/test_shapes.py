import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.data import shapes
from syncattn_fairseq.data.shapes import MOST_SHAPES, ROW_COUNTS, make_plan, measure_batches

BATCHES = st.lists(
    st.tuples(st.integers(1, 300), st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=60
)


def count_tokens(batches: np.ndarray) -> int:
    return int((batches[:, 0] * (batches[:, 1] + batches[:, 2])).sum())


def batch_lengths(source: np.ndarray, target: np.ndarray, tokens: int) -> np.ndarray:
    """Batch sentences as fairseq does: sorted, and filled up to a number of tokens."""
    found, begin = [], 0
    order = np.lexsort((target, source))
    longest = np.maximum(source, target)[order]
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - begin) * longest[begin : end + 1].max() > tokens:
            inside = order[begin:end]
            found.append((len(inside), source[inside].max(), target[inside].max()))
            begin = end
    return np.array(found)


@given(BATCHES, st.integers(1, 12), st.floats(0, 0.5))
def test_every_batch_fits_a_shape_of_the_plan_which_is_bounded(batches, most, added):
    plan = make_plan(np.array(batches), added, most)
    assert len(plan) <= most
    padded = []
    for rows, source, target in batches:
        shape = plan.fit(rows, source, target)
        assert shape is not None
        assert shape.rows >= rows and shape.source >= source and shape.target >= target
        cheaper = plan.shapes[count_each(plan.shapes) < count_each(np.array([shape]))[0]]
        assert not (cheaper >= (rows, source, target)).all(1).any()
        padded.append(shape)
    costs = count_tokens(np.array(padded)) / count_tokens(np.array(batches)) - 1
    assert plan.added == pytest.approx(costs)
    if len(set(batches)) <= most or len(plan) < most:
        assert plan.added <= added + 1e-9


def count_each(batches: np.ndarray) -> np.ndarray:
    return batches[:, 0] * (batches[:, 1] + batches[:, 2])


@pytest.mark.parametrize(("tokens", "mean", "pairs"), [(1024, 12, 20_000), (4096, 26, 60_000)])
def test_a_texts_batches_need_few_shapes_and_a_tenth_more_tokens_at_most(tokens, mean, pairs):
    generator = np.random.default_rng(1)
    source = np.clip(generator.gamma(3, mean / 3, pairs), 1, 250).astype(int) + 1
    target = np.clip(source + generator.normal(0, 0.2 * source), 2, 251).astype(int)
    batches = batch_lengths(source, target, tokens)
    plan = make_plan(batches)
    assert len(np.unique(batches, axis=0)) > 2 * len(plan)
    assert 20 < len(plan) < MOST_SHAPES
    assert plan.added <= 0.10


def test_many_different_batches_are_thinned_out_before_they_are_compared(monkeypatch):
    monkeypatch.setattr(shapes, "_COMPARED", 40)
    generator = np.random.default_rng(1)
    batches = generator.integers(1, 200, size=(300, 3))
    plan = make_plan(batches, most=25)
    assert len(plan) <= 25
    assert all(plan.fit(*map(int, batch)) is not None for batch in batches)
    assert plan.shapes.max(0).tolist() == batches.max(0).tolist(), "nothing is larger than it was"


def test_what_fits_nowhere_has_no_shape():
    plan = make_plan(np.array([[4, 9, 3], [2, 3, 9]]))
    assert plan.fit(4, 9, 3) == (4, 9, 3)
    assert plan.fit(5, 1, 1) is None and plan.fit(1, 10, 1) is None
    empty = make_plan(np.zeros((0, 3)))
    assert len(empty) == 0 and empty.fit(1, 1, 1) is None and empty.round_rows(5) == 5


@given(BATCHES, st.integers(1, 300 * 90))
def test_products_have_few_numbers_of_rows(batches, rows):
    plan = make_plan(np.array(batches))
    largest = max(n * max(source, target) for n, source, target in batches)
    rounded = plan.round_rows(rows)
    assert rows <= rounded < rows + largest / ROW_COUNTS + 1
    assert plan.round_rows(rounded) == rounded
    counts = {plan.round_rows(n) for n in range(1, largest + 1, max(1, largest // 100))}
    assert len(counts) <= ROW_COUNTS


def test_batches_are_measured_in_parts(monkeypatch):
    sizes = np.array([3, 9, 4, 4, 1]), np.array([5, 2, 8, 1, 1])
    batches = [[0, 1], np.array([2]), [], [3, 4, 0]]
    expected = [[2, 9, 5], [1, 4, 8], [3, 4, 5]]
    assert measure_batches(batches, *sizes).tolist() == expected
    monkeypatch.setattr(shapes, "_CHUNK", 1)
    assert measure_batches(batches, *sizes).tolist() == expected
    assert measure_batches([], *sizes).shape == (0, 3)
