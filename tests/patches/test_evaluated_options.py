import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import fairseq
import pytest
from fairseq import utils

import syncattn_fairseq.plugin  # noqa: F401  (fairseq evaluates only literals)
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.literals import evaluate
from syncattn_fairseq.checkpoints.option_checks import EVALUATED


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


def test_fairseq_evaluates_nothing_else():
    found = list(calls())
    assert len(found) > 40
    for module, name, _ in found:
        if name == "eval":
            assert vars(sys.modules[module])["eval"] is evaluate, module
    with pytest.raises(DataError, match="would run it as code"):
        utils.eval_str_list("__import__('os').getpid()", int)


def test_all_evaluated_options_are_known():
    options = {node.attr for _, _, node in calls() if isinstance(node, ast.Attribute)}
    assert options <= EVALUATED
    named = {ast.unparse(node) for _, _, node in calls() if isinstance(node, ast.Name)}
    # Of functions that are themselves called with options, or of the command line.
    assert named <= {"x", "uf", "xformers_att_config", "feature_encoder_spec"}


def test_booleans_are_read_as_before():
    assert utils.eval_bool(True) is False  # as fairseq does, strange as it is
    assert utils.eval_bool("True") is True
