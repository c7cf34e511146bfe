import ast
import re
from pathlib import Path

import pytest

from tests.importing import ROOT, run_program


def run(program: str, *arguments: object) -> str:
    done = run_program(program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


WITHOUT_FAIRSEQ = """
import pkgutil, sys
from importlib import import_module
for name in ("fairseq", "jaxtyping", "beartype"):
    sys.modules[name] = None
ROOMS = ("base", "trees", "parsing", "functional", "modules", "criterions.terms")
for room in ROOMS:
    package = import_module(f"syncattn_fairseq.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    print(room, *(name for name in ("torch", "numpy", "sacrebleu") if name in sys.modules))
import torch
from syncattn_fairseq.data.subwords import subword_parents
from syncattn_fairseq.functional import dependency_loss
from syncattn_fairseq.parsing.parsers import open_parser
from syncattn_fairseq.trees.brackets import parse_tree
print(subword_parents([2, 0], [2, 1], "chain"))
print(dependency_loss(torch.full((1, 2, 2), 0.5), torch.tensor([[1, 1]]))[0].item())
print(*parse_tree("(S (NP (DT the) (NN man)) (VP (V sleeps)))").leaves())
try:
    open_parser("stanza")
except ValueError as error:
    print(error)
"""


def test_rooms_work_where_fairseq_and_jaxtyping_are_not_installed():
    *rooms, parents, loss, leaves, error = run(WITHOUT_FAIRSEQ).splitlines()
    assert rooms[:2] == ["base", "trees"]  # and load nothing heavy
    others = ["parsing", "functional", "modules", "criterions.terms"]
    assert [line.split()[0] for line in rooms[2:]] == others
    assert "torch" not in rooms[2]
    assert parents == "[1, 2, 2]"
    assert float(loss) == pytest.approx(1.386294)
    assert leaves == "the man sleeps"
    assert error.startswith("'stanza' is not a parser")


def list_imports(path: Path, root: Path) -> set[str]:
    """What a file imports, wherever in it: whole names, of modules or of what is in them."""
    package = path.relative_to(root).parent.parts
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


ONLY_FOR_THE_LABORATORY = re.compile(r"(syncattn_lab|scipy|altair|jinja2|requests)\b")


def find_breaches(root: Path) -> list[str]:
    """Imports of the laboratory, or of what only it needs, in the plugin."""
    return [
        f"{path.relative_to(root)} imports {name}"
        for path in (root / "syncattn_fairseq").rglob("*.py")
        for name in list_imports(path, root)
        if ONLY_FOR_THE_LABORATORY.match(name)
    ]


def test_the_plugin_does_not_import_the_laboratory():
    assert find_breaches(ROOT) == []


#: What tests of the plugin take from the laboratory: the corpus that it generates.
OF_THE_LABORATORY = "syncattn_lab.synthetic"


def test_tests_of_the_plugin_need_nothing_of_the_laboratory_but_its_corpus():
    imports = {
        (path.name, name)
        for path in (ROOT / "tests").rglob("*.py")
        for name in list_imports(path, ROOT)
        if name.startswith(("syncattn_lab", "lab.tests")) and not name.startswith(OF_THE_LABORATORY)
    }
    assert imports == set()


@pytest.mark.parametrize(
    "line",
    ["import syncattn_lab.report", "def f():\n    from scipy import stats"],
)
def test_a_planted_import_is_found(line, tmp_path):
    planted = tmp_path / "syncattn_fairseq" / "planted.py"
    planted.parent.mkdir()
    planted.write_text(line)
    assert len(find_breaches(tmp_path)) == 1


#: A user's own --user-dir is trained with in tests/end_to_end/test_training.py.
ORDERS = [
    "import syncattn_fairseq.functional, syncattn_fairseq.plugin",
    "import fairseq, syncattn_fairseq",
    "import syncattn_fairseq.plugin, fairseq",
    "from fairseq.utils import import_user_module; import_user_module(plugin)",
]

# What fairseq imports takes most of the time. It is imported once, and each order has a fork.
REGISTER = """
import argparse, os, sys
import hydra, numpy, omegaconf, sacrebleu, torch
plugin = argparse.Namespace(user_dir="syncattn_fairseq")
for order in sys.argv[1:]:
    if not os.fork():
        assert "fairseq" not in sys.modules
        exec(order)
        from fairseq.criterions import CRITERION_REGISTRY
        from fairseq.models import ARCH_MODEL_REGISTRY
        from fairseq.tasks import TASK_REGISTRY
        assert "translation_with_syntax" in TASK_REGISTRY, order
        assert "label_smoothed_cross_entropy_with_syntax" in CRITERION_REGISTRY, order
        assert ARCH_MODEL_REGISTRY["transformer_dbsa"].__module__.startswith("syncattn_fairseq.")
        import fairseq_cli.hydra_train
        assert not {"sklearn", "scipy.stats"} & sys.modules.keys(), "fairseq starts without"
        os._exit(0)
    assert os.wait()[1] == 0, order
    print(order)
"""


def test_the_plugin_registers_in_every_order():
    assert run(REGISTER, *ORDERS).splitlines() == ORDERS
