from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import fairseq
import pytest
from fairseq import utils
from hypothesis import given
from hypothesis import strategies as st

import syncattn_fairseq.plugin  # noqa: F401  (fairseq evaluates only literals)
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.literals import LONGEST, evaluate
from syncattn_fairseq.checkpoint_options import EVALUATED

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
def test_literals_are_what_python_says(value: object) -> None:
    assert evaluate(repr(value)) == value


@pytest.mark.parametrize("code", CODE)
def test_anything_else_is_refused_in_one_line(code: str) -> None:
    with pytest.raises(DataError, match="fairseq would run it as code") as error:
        evaluate(code)
    assert "\n" not in str(error.value) and "\0" not in str(error.value)
    assert len(str(error.value)) < 400


def test_sums_and_multiples_are_those_of_convolutions() -> None:
    for text in ("[(512, 3)] * 20", "[(9, 5)] + [(8, 3)] * 2 + [(1, 1)]", "3 * (1,)", "2 * 3 + 1"):
        assert evaluate(text) == eval(text)
    assert evaluate(" 1,2 ") == (1, 2)


def test_what_is_no_string_is_no_literal() -> None:
    with pytest.raises(TypeError):
        evaluate(True)
    assert utils.eval_bool(True) is False  # as fairseq does, strange as it is
    assert utils.eval_bool("True") is True


def calls() -> Iterator[tuple[str, str, ast.expr]]:
    """Yield all that fairseq evaluates: the module, the function, and its argument."""
    root = Path(fairseq.__file__).parent
    for path in root.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "eval" not in source or "examples" in path.parts:
            continue
        module = ".".join(["fairseq", *path.relative_to(root).with_suffix("").parts])
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and node.args:
                by_name = isinstance(node.func, ast.Name)
                name = ast.unparse(node.func).rpartition(".")[2]
                if name in ("eval_str_list", "eval_str_dict", "eval_bool") or (
                    name == "eval" and by_name
                ):
                    yield module, name, node.args[0]


def test_fairseq_evaluates_nothing_else() -> None:
    found = list(calls())
    assert len(found) > 40
    for module, name, _ in found:
        if name == "eval":
            assert vars(sys.modules[module])["eval"] is evaluate, module
    with pytest.raises(DataError, match="would run it as code"):
        utils.eval_str_list("__import__('os').getpid()", int)


def test_all_evaluated_options_are_known() -> None:
    options = {node.attr for _, _, node in calls() if isinstance(node, ast.Attribute)}
    assert options <= EVALUATED
    named = {ast.unparse(node) for _, _, node in calls() if isinstance(node, ast.Name)}
    # Of functions that are themselves called with options, or of the command line.
    assert named <= {"x", "uf", "xformers_att_config", "feature_encoder_spec"}
