"""Commands do the same with files of every kind, and never harm a file or show a traceback.

``FUZZ_CASES`` says how often; see :mod:`tests.fuzz.mutation`.
"""

import bz2
import codecs
import gzip
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from lab.tests.fuzz.test_readers import DECODED, RECORDS
from lab.tests.printed.making import line
from syncattn_fairseq.cli import (
    average,
    bpe,
    clean,
    multitask,
    parse,
    preprocess,
    tokenise,
    translate,
)
from syncattn_fairseq.inference.answers import Sentence, Translation
from syncattn_lab.cli import score, show
from syncattn_lab.recipes import collect
from tests.fuzz.mutation import fuzzed, mutate
from tests.fuzz.test_readers import HEADS, TEXT

WORDS = "der Mann schläft\n\nja\nes regnet im Haus\n"
TREES = "(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))\n\n(X (X yes))\n\n"
LABELS = "det nsubj root\n\nroot\nnsubj root case obl\n"
CONLLU = "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tman\t_\t_\t_\t_\t3\tnsubj\t_\t_\n"
CONLLU += "3\tsleeps\t_\t_\t_\t_\t0\troot\t_\t_\n\n1\tyes\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
LINKS = "0-0 1-1\n\n0-0\n1-0 2-3\n"
DISTANCES = "".join(
    line(words, target_distances={1: [0.5] * len(words.split())}) for words in WORDS.splitlines()
)


@dataclass(frozen=True)
class Call:
    """A command with its arguments, and the files that it reads.

    Attributes:
        inputs: the content of each.
        plain: those that must be plain files.
    """

    main: Callable[[Sequence[str]], int]
    line: str
    inputs: dict[str, str]
    outputs: Sequence[str]
    plain: Sequence[str] = ()
    runs: bool = field(default=True)


CALLS = {
    "score links": Call(
        score.main,
        "links --forward a f --backward a b --gold g --output a union o --json j",
        {"f": LINKS, "b": LINKS, "g": LINKS},
        ["o", "j"],
    ),
    "score links of fairseq": Call(
        score.main,
        "links --forward a f --gold g --output a forward o",
        {"f": "".join(DECODED.splitlines(True)[:5]).replace("-1\t", "-0\t"), "g": "0-0 1-1\n"},
        ["o"],
    ),
    "average": Call(average.main, "a b --output o", {"a": "x", "b": "x"}, ["o"], runs=False),
    "bpe learn": Call(
        bpe.main, "learn --vocab-size 25 --model m --input a b", {"a": TEXT, "b": TEXT}, ["m.model"]
    ),
    "bpe apply": Call(
        bpe.main,
        "apply --model m --input a b --output o p",
        {"a": TEXT, "b": WORDS, "m": ""},
        ["o", "p"],
        plain=["m"],
    ),
    "clean": Call(
        clean.main,
        "--languages en de --input p --output o --exclude e --every 2 --held-out h",
        {"p.en": TEXT, "p.de": WORDS, "e.en": "a\n", "e.de": "b\n"},
        ["o.en", "o.de", "h.en", "h.de"],
    ),
    "collect": Call(
        collect.main,
        "plain=p.{language} --archives . --languages en de --output o",
        {"p.en": TEXT, "p.de": WORDS},
        ["o.en", "o.de"],
        plain=["p.en", "p.de"],
    ),
    "mix trees": Call(
        multitask.main,
        "mix --source a --target b --trees t --output o p",
        {"a": TEXT, "b": WORDS, "t": TREES},
        ["o", "p"],
    ),
    "mix heads": Call(
        multitask.main,
        "mix --source a --target b --heads h --labels l --on-bad-parse drop --output o p",
        {"a": TEXT, "b": WORDS, "h": HEADS, "l": LABELS},
        ["o", "p"],
    ),
    "tag": Call(multitask.main, "tag --input a b --output o p", {"a": TEXT, "b": ""}, ["o", "p"]),
    "parse": Call(
        parse.main,
        "--input a --parsed c --format conllu --output o --labels l",
        {"a": TEXT, "c": CONLLU},
        ["o", "l"],
    ),
    "preprocess": Call(
        preprocess.main,
        "-s en -t de --trainpref p --trainheads h --destdir bin --on-bad-parse drop --min-parsed 0",
        {
            **{"p.en": TEXT, "p.de": WORDS, "h.en": TEXT},
            **{"h.heads.en": HEADS, "h.labels.en": LABELS, "h.heads.de": HEADS},
        },
        ["bin/train.heads.en-de.en.bin", "bin/train.labels.en-de.en.idx", "bin/train.en-de.de.bin"],
        plain=["p.en", "p.de"],
    ),
    "page": Call(
        show.main,
        "--references r --system a f --log a l --html o",
        {"r": WORDS, "f": WORDS, "l": "x"},
        ["o"],
        runs=False,
    ),
    "score": Call(
        score.main,
        "--references r --system a f d --source s --source-heads h --source-labels l "
        "--alignments g --source-trees t --json j --latex x --text o --tokenize none",
        {
            **{"r": WORDS, "f": WORDS, "d": WORDS, "s": TEXT},
            **{"h": HEADS, "l": LABELS, "g": LINKS, "t": TREES},
        },
        ["j", "x", "o"],
    ),
    "score words": Call(
        score.main,
        "--references r --system a f --system b d --baseline a --source-parses c --links g "
        "--by all --translation-links a m --target-training t --source-training t --json j "
        "--tokenize none",
        {
            **{"r": "der Mann schläft\nja\n", "f": "der Mann\nja\n", "d": "ein Mann\n\n"},
            **{"c": CONLLU, "g": "0-0 1-1\n0-0\n", "m": "0-0\n0-0\n", "t": TEXT},
        },
        ["j"],
    ),
    "tokenise": Call(
        tokenise.main, "--lang en --input a b --output o p", {"a": TEXT, "b": WORDS}, ["o", "p"]
    ),
    "translate": Call(translate.main, "--path checkpoint --input a", {"a": TEXT}, []),
    "score trees": Call(
        score.main, "trees --gold g --system a t --json j", {"g": TREES, "t": TREES}, ["j"]
    ),
    "score induced trees": Call(
        score.main, "trees --gold g --system a t --json j", {"g": TREES, "t": DISTANCES}, ["j"]
    ),
    "show analyses": Call(show.main, "--analyses a --number 1 2", {"a": RECORDS}, []),
}
#: A command takes longer than a reader, and there are three tests of each.
FEW = 0.05
WRITING = [name for name, call in CALLS.items() if call.outputs]
RUNNING = [name for name, call in CALLS.items() if call.runs]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("model")
    (folder / "text").write_text(TEXT)
    argv = ["learn", "--vocab-size=25", f"--model={folder}/m", "--input", f"{folder}/text"]
    assert bpe.main(argv) == 0
    return (folder / "m.model").read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "folder"
    place.mkdir()
    monkeypatch.chdir(place)
    methods = {
        "translate": lambda lines, **how: [Translation(Sentence([x], "none")) for x in lines],
        "list_warnings": lambda *_: {},
    }
    knows = SimpleNamespace(describe_unknown=lambda: "")
    methods |= {"source_segmenter": knows, "target_segmenter": knows}
    methods |= {"max_len": 9, "tokenised": True}
    translator = SimpleNamespace(**methods)
    monkeypatch.setattr("syncattn_fairseq.inference.load", lambda *args, **options: translator)
    return place


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "preprocess.log"
    }


def lay_out(folder: Path, inputs: dict[str, bytes]) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, content in inputs.items():
        (folder / name).write_bytes(content)


def written(call: Call, model: bytes, random: Random | None = None) -> dict[str, bytes]:
    """Return a call's inputs; if there is a generator, every second time one is damaged."""
    inputs = {name: content.encode() for name, content in call.inputs.items()}
    inputs |= {"m": model} if "m" in inputs else {}
    if random and random.random() < 0.5:
        damaged = random.choice([*inputs])
        inputs[damaged] = mutate(inputs[damaged], random)
    return inputs


def run(call: Call, line: str | None = None) -> tuple[int, str, str]:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with mock.patch.multiple(sys, stdout=streams[0], stderr=streams[1]):
        try:
            status = call.main((line or call.line).split())
        except SystemExit as end:  # of argparse
            status = end.code if isinstance(end.code, int) else 1
    printed = []
    for stream in streams:
        stream.flush()
        printed.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    # The speed of syncattn-parse is not always the same.
    return status, re.sub(r", [\d,]+ words/s", "", printed[0]), printed[1]


@contextmanager
def pipe(path: Path, content: bytes) -> Iterator[None]:
    """A path that gives its contents once."""
    reader, writer = os.pipe()
    os.write(writer, content)  # a few hundred bytes, which fit
    os.close(writer)
    path.symlink_to(f"/dev/fd/{reader}")
    try:
        yield
    finally:
        os.close(reader)


#: What may become of an input without changing what it says.
KINDS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "marked": lambda content: codecs.BOM_UTF8 + content,
    "marked gzip": lambda content: gzip.compress(codecs.BOM_UTF8 + content),
}


@pytest.mark.parametrize("name", RUNNING)
def test_input_of_all_kinds_gives_the_same(folder, model, name):
    call = CALLS[name]

    def check(seed: int) -> None:
        random = Random(seed)
        inputs = written(call, model, random)
        lay_out(folder, inputs)
        expected = run(call), contents(folder)
        assert "Traceback" not in expected[0][2]
        lay_out(folder, {})
        with ExitStack() as stack:
            for file, content in inputs.items():
                kinds = ["plain"] if file in call.plain else [*KINDS]
                if content.startswith((codecs.BOM_UTF8, b"\x1f\x8b", b"BZh")):
                    kinds = ["plain"]
                content = KINDS[random.choice(kinds)](content)
                if random.random() < 0.5 and file not in call.plain:
                    stack.enter_context(pipe(folder / file, content))
                else:
                    (folder / file).write_bytes(content)
            found = run(call), contents(folder)
        assert found[0] == expected[0]
        for _, after in (expected, found):
            for file in inputs:
                after.pop(str(folder / file), None)
        assert found[1] == expected[1]

    fuzzed(check, FEW)()


@pytest.mark.parametrize("name", WRITING)
def test_an_output_never_replaces_an_input(folder, model, name):
    call = CALLS[name]

    def check(seed: int) -> None:
        random = Random(seed)
        lay_out(folder, written(call, model))
        (folder / "bin").mkdir()
        source, output = random.choice([*call.inputs]), random.choice(call.outputs)
        line = call.line
        words = line.split()
        match random.randrange(5 if output in words else 3):
            case 0:
                (folder / output).symlink_to(folder / source)
            case 1:
                (folder / output).hardlink_to(folder / source)
            case 2:
                (folder / "link").symlink_to(source)
                (folder / output).symlink_to(folder / "link")
            case spelling:
                path = f"bin/../{source}" if spelling == 3 else str(folder / source)
                line = " ".join(path if word == output else word for word in words)
        before = contents(folder)
        status, _, error = run(call, line)
        assert status == 1 and ": this output is also an input (" in error.splitlines()[-1]
        assert contents(folder) == before

    fuzzed(check, FEW)()


@pytest.mark.parametrize("name", RUNNING)
def test_closed_streams_are_no_traceback(folder, model, name):
    call = CALLS[name]

    def check(seed: int) -> None:
        random = Random(seed)
        lay_out(folder, written(call, model, random))
        closed = random.sample(["stdin", "stdout", "stderr"], random.randint(1, 3))
        streams: dict[str, Any] = {
            name: None if name in closed else io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
            for name in ("stdin", "stdout", "stderr")
        }
        before = contents(folder)
        line = call.line
        if random.random() < 0.3 and name in ("tokenise", "tag"):
            line = line.partition(" --input")[0]
        with mock.patch.multiple(sys, **streams):
            status = call.main(line.split())
        if "stdout" in closed:
            assert status == 1 and contents(folder) == before
        else:
            assert status in (0, 1)

    fuzzed(check, FEW)()
