import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.data.analysis_lines import (
    DistancesOf,
    HeadsOf,
    LinksOf,
    read_line,
    write_line,
)

SIDES = st.sampled_from(["source", "hypothesis"])
NUMBERS = st.integers(0, 300)
HEADS = st.tuples(
    st.builds(HeadsOf, SIDES, st.sampled_from(["word", "subword"])), st.lists(NUMBERS)
)
DISTANCES = st.tuples(
    st.builds(DistancesOf, SIDES, st.integers(1, 12)),
    st.lists(st.integers(-99999, 99999).map(lambda number: number / 10000)),
)
LINKS = st.tuples(
    st.builds(LinksOf, st.integers(1, 12), st.integers(0, 16)),
    st.lists(st.tuples(NUMBERS, NUMBERS)),
)


@given(NUMBERS, HEADS | DISTANCES | LINKS)
def test_what_is_written_is_read(sentence, said):
    assert read_line(write_line(sentence, *said)) == (sentence, *said)


@pytest.mark.parametrize(
    ("topic", "values", "line"),
    [
        (HeadsOf("source", "word"), [2, 0], "X-12\tsource\tword\t2 0"),
        (DistancesOf("hypothesis", 2), [0.2, -0.1], "X-12\thypothesis\tdistance-2\t0.2000 -0.1000"),
        (LinksOf(6), [(0, 0), (1, 0)], "L-12\t6\t0-0 1-0"),
        (LinksOf(6, 3), [(0, 0)], "L-12\t6.3\t0-0"),
    ],
)
def test_lines_look_like_this(topic, values, line):
    assert write_line(12, topic, values) == line


@pytest.mark.parametrize("line", ["", "H-0\t-1\ta", "X-0\tother\tword\t1", "L-0\tx\t0-0", "L-0\t1"])
def test_other_lines_are_none_of_ours(line):
    assert read_line(line) is None
