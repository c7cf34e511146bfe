import sys

import pytest

from syncattn_fairseq.cli.common import command
from syncattn_fairseq.patches import fairseq_version
from tests.importing import run_program


@pytest.mark.parametrize(
    ("source", "said"),
    [
        # What the official release does on Python 3.11 and later.
        (
            "raise ValueError('mutable default')",
            "(ValueError: mutable default); uninstall",
        ),
        ("import no_such_package", "; pip install no_such_package"),
        (
            "import sys; sys.modules[__name__] = None; import fairseq",
            "and not installed; install it: pip install 'syncattn-fairseq[train]'",
        ),
    ],
    ids=["broken", "incomplete", "missing"],
)
def test_a_fairseq_that_cannot_be_imported(tmp_path, source, said):
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").write_text(source)
    done = run_program("import syncattn_fairseq.plugin", PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ") and said in last
    python = "does not work on Python {}.{} ".format(*sys.version_info)
    assert (python in last) == ("not installed" not in last)


def test_a_fairseq_that_does_not_know_the_types_of_python_3_14(monkeypatch):
    monkeypatch.setattr("fairseq.dataclass.utils.interpret_dc_type", lambda kind: kind)
    with pytest.raises(ImportError, match="does not work .*pip install fairseq-pure"):
        fairseq_version.mend()


def test_a_program_that_loads_a_model_logs_what_it_did_before():
    """fairseq sets the root logger to DEBUG; `load` gets as far as importing it."""
    program = (
        "import logging, sys, syncattn_fairseq\n"
        "root = logging.getLogger()\n"
        "before = root.level, root.handlers[:]\n"
        "try: syncattn_fairseq.load('no.pt')\n"
        "except OSError: pass\n"
        "assert 'fairseq.models.wav2vec' in sys.modules\n"
        "assert (root.level, root.handlers) == before, (root.level, root.handlers)\n"
    )
    done = run_program(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["fairseq", "fairseq_cli"])
def test_a_command_without_fairseq_is_refused_in_one_line(name, capsys):
    @command
    def run(argv: object) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    assert run([]) == 1
    assert capsys.readouterr().err == f"error: {fairseq_version.MISSING}\n"


@pytest.mark.parametrize("name", ["torch", "omegaconf"])
def test_a_command_without_torch_names_the_extra(name, capsys):
    @command
    def run(argv: object) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    assert run([]) == 1
    missing = (
        f"error: {name} is needed here and not installed; install it: pip install 'syncattn-fairseq"
    )
    assert capsys.readouterr().err == f"{missing}[train]'\n"


@pytest.mark.parametrize(
    "program",
    [
        "import syncattn_fairseq.plugin",
        "import syncattn_fairseq; syncattn_fairseq.load('no.pt')",
    ],
)
def test_python_without_torch_names_the_extra(program):
    hidden = "import sys; from importlib import util; find = util.find_spec; "
    hidden += "util.find_spec = lambda name: None if name == 'torch' else find(name); "
    done = run_program(hidden + program)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: torch is needed here") and "[train]'" in last


def test_other_imports_that_fail_keep_their_traceback():
    @command
    def run(argv: object) -> None:
        raise ModuleNotFoundError("No module named 'other'", name="other")

    with pytest.raises(ModuleNotFoundError):
        run([])
