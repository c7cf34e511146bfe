import argparse
import os
import re
from contextlib import suppress
from pathlib import Path

import pytest

from lab.tests.commands.parsing import COMMANDS
from lab.tests.commands.test_help import parsers
from syncattn_fairseq.base.clashes import check_files
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import average, bpe, clean, multitask, parse, tokenise, translate
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_lab.cli import score, show
from syncattn_lab.recipes import collect
from tests.cli.errors import read_error

TWICE = r"/\S+/[a-z.]+: two outputs of this command have this name; give each \w+ a different name"
READ = r"\S+: this output is also an input \(\S+\); choose another name"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "h", "o", "p.en", "p.de"):
        Path(name).write_text("1\n")
    Path("link").symlink_to("o")
    for name in ("hard", "x.hard", "o.model", "o.svg"):
        Path(name).hardlink_to("o")
    Path("folder").mkdir()
    return tmp_path


#: What is wrong with calls; lab/tests/fuzz/test_commands.py has more of those that read an output.
CALLS = {
    TWICE: [
        (bpe, "apply --model m --input a b --output o ./o"),
        (multitask, "mix --source a --target b --heads h --output o o"),
        (parse, "--input a --output h --labels o --conllu o --parsed a --format conllu"),
        (parse, "--input a --output h --labels h.manifest.json --lang en"),
        (score, "links --forward s a --output s forward o --output s forward o"),
        (score, "--system s a --references b --text link --json o"),
        (score, "--system s a --references b --text hard --json o"),
        (clean, "--languages en de --input p --every 2 --output o --held-out folder/../o"),
    ],
    READ: [
        (average, "a link b --output o"),
        (bpe, "learn --input o.model --vocab-size 9 --model o"),
        (clean, "--languages en de --input p --output folder/../p"),
        (clean, "--languages en de --input q --output r --exclude p --every 2 --held-out p"),
        (collect, "plain=p.{language} --archives . --languages en de --output p"),
        (collect, "plain=o --archives . --languages hard de --output ./x"),
        (show, "x --path o.svg --figure o.svg"),
        (parse, "--input a --output h --conllu link --parser eda --model o"),
        (parse, "--input h.manifest.json --output h --lang en"),
        (show, "--references b --system s a --log s o --html o"),
        (score, "--system s a --references b --target-trees o --json hard"),
        (score, "trees --gold a --system x o --json link"),
    ],
}


@pytest.mark.parametrize(
    ("fault", "command", "argv"),
    [(fault, *call) for fault, calls in CALLS.items() for call in calls],
)
def test_a_file_of_two_uses_is_refused_before_anything_is_written(
    folder, capsys, fault, command, argv
):
    before = contents(folder)
    error = read_error(capsys, command.main(argv.split()))
    assert re.fullmatch(f"error: {fault}\n", error)
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_devices_are_not_files():
    check_files(["/dev/null", "in"], [], ["/dev/null", Path("/dev/null"), "-", "-", "out"])


def test_a_pipe_is_not_read_and_written(folder):
    os.mkfifo("pipe")
    check_files(["pipe"], [], ["o"])
    check_files(["a"], [], ["pipe"])
    with pytest.raises(DataError, match="this output is also an input"):
        check_files(["pipe"], [], ["pipe"])


@pytest.mark.parametrize("command", [bpe, translate])
def test_what_must_be_a_file_is_no_pipe(folder, capsys, command):
    os.mkfifo("pipe")
    argv = ["apply", "--model", "pipe"] if command is bpe else ["--path", "a:pipe"]
    assert command.main(argv) == 1  # type: ignore[attr-defined]
    told = (
        "error: pipe: not a regular file (a pipe or a device), which this option needs; "
        "save the content to a file first\n"
    )
    assert capsys.readouterr().err == told


def test_outputs_are_not_compressed(folder, capsys):
    assert tokenise.main(["--lang", "en", "--input", "a", "--output", "b.gz"]) == 1
    assert (
        capsys.readouterr().err
        == "error: b.gz: this command does not compress its output; leave out the ending .gz\n"
    )


#: What is not a file of its own: a name in a folder, a folder or package, and test sets, whose
#: files no picture can replace, since its name ends in .svg, .png or .pdf.
OTHERS = {"python -m syncattn_lab.recipes.fetch name", "syncattn-show gold"}
OWN_PARSERS = [name for name in COMMANDS if name != "syncattn-preprocess"]


@pytest.mark.parametrize("name", OWN_PARSERS)
def test_every_argument_that_is_a_file_is_checked(name):
    for parser in parsers(name):
        assert isinstance(parser, CommandLine)
        for action in parser._actions:
            shown = action.metavar if isinstance(action.metavar, tuple) else (action.metavar,)
            if any(re.match("FILE|PREFIX|CHECKPOINT|MODEL|SOURCE$", part or "") for part in shown):
                argument = f"{parser.prog} {action.dest}"
                assert is_checked(parser, action) != (argument in OTHERS), argument


def is_checked(parser: CommandLine, action: argparse.Action) -> bool:
    """Tell whether a parser checks what is given for an argument."""
    value = ["given"] * 3 if isinstance(action.nargs, int) or action.nargs == "+" else "given"
    args = argparse.Namespace(**{each.dest: None for each in parser._actions})
    args.languages = ["en", "de"]
    setattr(args, action.dest, Path("given") if action.type is Path else value)
    found: list[str] = []
    for names in parser._files.values():
        for each in names:
            with suppress(AttributeError, TypeError):  # other arguments are missing
                found += map(str, parser._list_paths(each, args))
    return any(path.startswith("given") for path in found)
