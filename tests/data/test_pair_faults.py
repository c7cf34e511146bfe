import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.data.parallel_text import EMPTY, LONG, UNEVEN, find_fault

lengths = st.integers(0, 12)


@given(lengths, lengths, st.none() | st.integers(1, 10), st.none() | st.floats(1, 4))
def test_pairs_are_kept_as_defined(source, target, max_words, ratio):
    kept = min(source, target) > 0
    if max_words is not None:
        kept = kept and max(source, target) <= max_words
    if kept and ratio is not None:
        kept = source / target <= ratio and target / source <= ratio
    assert (find_fault(source, target, max_words, ratio) is None) == kept


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        (2, 3, None),
        (3, 2, None),
        (2, 4, UNEVEN),
        (4, 2, UNEVEN),
        (5, 1, LONG),
        (4, 5, LONG),
        (5, 0, EMPTY),
        (0, 0, EMPTY),
    ],
)
def test_the_first_fault_counts(source, target, fault):
    assert find_fault(source, target, 4, 1.5) == fault
