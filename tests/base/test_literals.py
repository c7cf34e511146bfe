import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.literals import LONGEST, evaluate

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LITERALS = st.recursive(
    NUMBERS | st.booleans() | st.none() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)
CODE = [
    "[__import__('os').system('id'), None][1]",
    *("x", "x.y", "f()", "lambda: 1", "[x for x in (1,)]", "(y := 1)", "1 if 1 else 2", "f'{1}'"),
    *("", " ", "import os", "1; 2", "1\n2", "\0", "'a", "{**{}}", "[*(1,)]", "2 ** 9", "9 - 1"),
    *("'a' * 99999", "99999 * [1]", "[1] * 1.5", "1 + 'a'", "{1: 2} * 2", "9" * 5000),
    *("(" * 5000, "[" * 150 + "]" * 150 + "x", "-" * 9000 + "1", "1" * (LONGEST + 1)),
]


@given(LITERALS)
def test_literals_are_what_python_says(value):
    assert evaluate(repr(value)) == value


@pytest.mark.parametrize("code", CODE)
def test_anything_else_is_refused_in_one_line(code):
    with pytest.raises(DataError, match="fairseq would run this text as code") as error:
        evaluate(code)
    assert "\n" not in str(error.value) and "\0" not in str(error.value)
    assert len(str(error.value)) < 400


def test_sums_and_multiples_are_those_of_convolutions():
    for text in ("[(512, 3)] * 20", "[(9, 5)] + [(8, 3)] * 2 + [(1, 1)]", "3 * (1,)", "2 * 3 + 1"):
        assert evaluate(text) == eval(text)
    assert evaluate(" 1,2 ") == (1, 2)


def test_what_is_no_string_is_no_literal():
    with pytest.raises(TypeError):
        evaluate(True)
