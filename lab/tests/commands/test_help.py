"""What ``--help`` says: every argument, in plain words, and at the end an example that is right.

It comes soon; ``--version`` and a wrong option are a line.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from unittest import mock

import pytest

import syncattn_fairseq
from lab.tests.commands.parsing import COMMANDS, main_of, refusal
from syncattn_lab.cli import score
from tests.importing import run_program


def parsers(name: str) -> Iterator[argparse.ArgumentParser]:
    kinds = score.KINDS if name == "syncattn-score" else ()
    for words in ([], *([kind] for kind in kinds)):
        with (
            mock.patch.object(argparse.ArgumentParser, "print_help", autospec=True) as shown,
            pytest.raises(SystemExit),
        ):
            main_of(name)([*words, "--help"])
        parser = shown.call_args.args[0]
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.values()


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name):
    for parser in parsers(name):
        text = parser.format_help()
        assert not re.search(r"[`*]|:\w+:`", text), "no markup"
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, f"{parser.prog} {action.option_strings or action.dest}"
            else:
                assert all(choice.help for choice in action._choices_actions)
        _, _, example = text.rpartition("\n\nexample:\n  ")
        assert example.startswith(f"{parser.prog} ")
        assert max(map(len, example.splitlines())) <= 98
        for call in example.replace("\\\n", " ").splitlines():
            assert not refusal(call)


HELP = """
import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
heavy = {"fairseq", "numpy", "sacrebleu", "stanza", "torch"}
for module in sys.argv[1:]:
    with redirect_stdout(StringIO()) as told:
        try:
            import_module(module).main(["--help"])
        except SystemExit as end:
            assert end.code == 0, module
    assert told.getvalue().startswith(("usage: syncattn-", f"usage: python -m {module}")), module
    assert not heavy & set(sys.modules), (module, heavy & set(sys.modules))
"""


def test_help_imports_nothing_heavy():
    done = run_program(HELP, *COMMANDS.values())
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_version_and_a_wrong_option_are_one_line(name, capsys):
    with pytest.raises(SystemExit) as end:
        main_of(name)(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"{name} {syncattn_fairseq.__version__}\n"
    with pytest.raises(SystemExit) as end:
        main_of(name)(["--no-such-option", "--other"])
    told = capsys.readouterr()
    assert end.value.code == 2 and told.out == ""
    assert told.err.startswith("error: ") and told.err.count("\n") == 1
    assert told.err.endswith(f"; see {name} --help\n")


@pytest.mark.parametrize("module", COMMANDS.values())
def test_a_module_is_run_as_its_command_is(module):
    done = subprocess.run([sys.executable, "-m", module, b"\xff"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: argument '\\udcff': not UTF-8; if it is a file, rename it\n"
