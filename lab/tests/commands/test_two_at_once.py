"""Of two commands that write the same file or folder at once, one is refused in one line."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab.tests.commands.parsing import COMMANDS, main_of, split_call
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.folders import filling
from syncattn_fairseq.base.locks import claiming, locked
from tests.cli.errors import read_error

#: Calls whose output is o; and those that write into it, by what the first writer holds meanwhile.
FILES = [
    "syncattn-score links --forward x links --gold links --json o",
    "syncattn-score links --forward x links --output x forward o",
    "syncattn-average a --output o",
    "syncattn-bpe learn --input a --vocab-size 9 --model o",
    "syncattn-bpe apply --model m --input a --output o",
    "syncattn-export --path m --data-bin p --format fairseq --output o",
    "syncattn-import p --output o",
    "syncattn-clean --languages en de --input p --output o",
    "python -m syncattn_lab.recipes.collect plain=a --archives . --languages en de --output o",
    "syncattn-show x --path m --figure o.svg",
    "syncattn-multitask mix --source a --target a --trees a --output o p",
    "syncattn-multitask tag --input a --output o",
    "syncattn-show --references a --system s a --html o",
    "syncattn-score --references a --system s a --json o",
    "syncattn-score --references a --system s a --text o",
    "syncattn-tokenise --lang en --input a --output o",
    "syncattn-score trees --gold a --system x a --json o",
    "syncattn-parse --input a --output h --labels o --parser random",
]
FOLDERS = {
    "python -m syncattn_lab.recipes.generate o": lambda: replacing(Path("o/test.de")),
    "syncattn-preprocess -s en -t de --trainpref p --destdir o": lambda: filling(Path("o")),
    "syncattn-parse --input a --output o/a --parser random": lambda: locked(
        Path("o/a.shards/lock"), ""
    ),
}
#: What writes no file of the user's, or leaves claiming it to others, see its own tests.
WITHOUT = {
    *("syncattn-translate", "syncattn-options", "syncattn-recipe", "syncattn-serve"),
    "python -m syncattn_lab.recipes.fetch",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "m", "p.en", "p.de", "p.heads.en"):
        Path(name).write_text("0\n")
    Path("links").write_text("0-0\n")


@pytest.mark.parametrize("call", FILES)
def test_the_second_writer_of_a_file_is_refused(capsys, call):
    name, words = split_call(call)
    with ExitStack() as stack:
        for output in ("o", "o.en", "o.de", "o.model", "o.svg"):
            stack.enter_context(claiming(Path(output)))
        main = main_of(name)
        assert "another process is writing this file; wait" in read_error(capsys, main(words))
    assert not [*Path().glob("o*"), *Path().glob(".*")]


@pytest.mark.parametrize("call", FOLDERS)
def test_the_second_writer_of_a_folder_is_refused(capsys, call):
    Path("o").mkdir()
    name, words = split_call(call)
    with FOLDERS[call]():
        before = {*Path().rglob("*")}
        assert main_of(name)(words) == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert re.match(
            "error: .*: another process is writing (to )?this (file|folder); wait", error
        )
        assert {*Path().rglob("*")} == before


def test_all_commands_that_write_are_known():
    writing = {split_call(call)[0] for call in [*FILES, *FOLDERS]}
    assert {*COMMANDS} - writing == WITHOUT
