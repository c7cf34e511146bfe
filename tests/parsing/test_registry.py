from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.cli import parse as command
from syncattn_fairseq.data.parses import check_tree
from syncattn_fairseq.parsing.external import Eda, ExternalParser
from syncattn_fairseq.parsing.parser import Parse, Parser, ParserSource, Sentences
from syncattn_fairseq.parsing.parsers import PARSERS, open_parser
from tests.parsing.chain import CONLLU


class Star(Parser, ParserSource):
    about, specs, needs = "a star", ("CENTRE",), ("centre",)
    options: ClassVar = {"centre": {"type": int}}

    def __init__(self, centre: int) -> None:
        self.centre = centre

    @classmethod
    def from_options(cls, options: Namespace) -> Star:
        return cls(options.centre)

    @classmethod
    def from_spec(cls, spec: str) -> Star | None:
        return cls(int(spec)) if spec.isdecimal() else None

    def describe(self) -> dict[str, str]:
        return {"parser": f"star of {self.centre}"}

    def open(self, worker: int | None = None) -> Parser:
        return self

    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        for index, words in enumerate(sentences):
            heads = [0 if n == self.centre else self.centre for n in range(1, len(words) + 1)]
            yield index, Parse(heads, ["dep"] * len(words))


def test_a_new_parser_needs_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(PARSERS, "star", Star)
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("the man sleeps\n")
    arguments = ["--parser=star", "--input=text", "--output=heads"]
    assert command.main([*arguments, "--centre=3"]) == 0
    assert Path("heads").read_text() == "3 3 0\n"
    [parse] = open_parser("star:2")([["the", "man", "sleeps"]])
    assert parse is not None and parse.heads == [2, 0, 2]
    for wrong, message in (
        (arguments, "--parser star needs --centre"),
        ([*arguments, "--parser=stanza", "--lang=en", "--centre=3"], "--centre does not go with"),
    ):
        with pytest.raises(SystemExit):
            command.main(wrong)
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert "a control), star (a star" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "spec", ["", "stanza", "stanza:", "spacy:", "eda:", "command:eda:", "random:", "random:-1"]
)
def test_what_names_no_parser_is_told_what_does(spec):
    with pytest.raises(DataError) as error:
        open_parser(spec)
    assert str(error.value) == (
        f"{spec!r} is not a parser; give stanza:LANG, stanza:LANG:DIR, spacy:MODEL, "
        "eda:MODEL, command:FORMAT:COMMAND or random:SEED, such as stanza:en"
    )


def test_commands_have_specs_too(tmp_path):
    program = tmp_path / "a program: mine.py"
    program.write_text(CONLLU)
    parser = open_parser(f"command:conllu:{sys.executable} {shlex.quote(str(program))}")
    [parse] = parser([["the", "man"]])
    assert parse is not None and parse.heads == [0, 1]
    eda = open_parser("eda:model")
    assert isinstance(eda, ExternalParser) and eda.command == Eda.from_model("model")


def test_random_trees_depend_on_the_sentence_and_the_seed_alone():
    sentences = [["word"] * 9, ["the", "man"], ["word"] * 9]
    found = [parse for parse in open_parser("random:1")(sentences) if parse is not None]
    assert len(found) == 3 and found[0] == found[2]
    for parse in found:
        check_tree(parse.heads)
    assert [len(parse.labels) for parse in found] == [9, 2, 9]
    others = open_parser("random:2")(sentences)
    assert others[0] != found[0]
    assert open_parser("random:1")(sentences[:1]) == found[:1]
