"""What is missing is listed at once; a rehearsal has a corpus of a few sentences."""

import json
import re
import shutil
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.parses import SPLITS
from syncattn_lab.cli.recipe import main
from syncattn_lab.evaluation.findings_file import load_findings
from syncattn_lab.recipes import examine as examining
from syncattn_lab.recipes import missing
from syncattn_lab.recipes.cell import make_cells
from syncattn_lab.recipes.corpus_facts import Corpus, load_corpus
from syncattn_lab.recipes.corpus_texts import Here
from syncattn_lab.recipes.grid import Grid
from syncattn_lab.recipes.launch import Machines
from syncattn_lab.recipes.missing import (
    examine_corpus,
    list_missing_parsers,
    list_missing_texts,
    list_scarce,
    list_vocabulary_faults,
)
from syncattn_lab.recipes.new_corpus import write_corpus
from syncattn_lab.recipes.prepare import list_preparation
from syncattn_lab.recipes.rehearsal import SENTENCES, shorten_corpus, shorten_row
from syncattn_lab.recipes.request import read_row
from syncattn_lab.recipes.run import hash_files
from syncattn_lab.recipes.stages import Stage
from syncattn_lab.recipes.systems import SHARED
from syncattn_lab.recipes.text_formats import collect
from syncattn_lab.synthetic.generated_corpus import generate as synthetic

Pairs = list[list[str]]
"""The lines of source and target."""
HEADS = {"heads.en", "heads.de", "heads.ja"}


def fail(url: str, size: int | None = None) -> int:
    raise DataError(f"{url}: 404")


def write_texts(folder: Path, lines: int) -> Corpus:
    """Return Multi30k with text of one's own."""
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            (folder / f"{split}.{language}").write_text(f"{split} {language} ab.\n" * lines)
    here = Here(
        *(f"{x}.{{language}}" for x in ("train", "test")), None, str(folder), "valid.{language}"
    )
    return replace(load_corpus(SHARED / "multi30k_en_de"), here=here, archives=[])


@pytest.mark.parametrize("place", ["aspec.tgz", "folder/ASPEC-JE.zip", "folder"])
@pytest.mark.parametrize("name", ["aspec_ja_en", "aspec_ja_en_lpsi", "aspec_en_ja"])
def test_a_licensed_text_may_be_anywhere(name, place, tmp_path, monkeypatch):
    corpus = load_corpus(SHARED / name)
    said = [*list_missing_texts(corpus, tmp_path, {})]
    assert len(said) == 1 and "ASPEC.tar.gz: ASPEC is free" in said[0] and "ASPEC_JE" in said[0]
    path = tmp_path / place
    unpacked = tmp_path / "unpacked"
    for text in ("train/train-1", "train/train-2", "train/train-3", "dev/dev", "test/test"):
        target = (path if place == "folder" else unpacked) / "ASPEC-JE" / f"{text}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("1 ||| 2 ||| 本 ||| book\n" * 3)
    if place != "folder":
        path.parent.mkdir(exist_ok=True)
        kind = "zip" if path.suffix == ".zip" else "gztar"
        shutil.move(shutil.make_archive(str(tmp_path / "packed"), kind, unpacked), path)
    monkeypatch.setenv("ASPEC_JE", str(path.parent if "/" in place else path))
    assert [*list_missing_texts(corpus, tmp_path, {})] == []
    texts = [
        text.partition("=") for split in ("train", "test") for text in corpus.list_texts(split)
    ]
    for form, _, address in texts:
        assert len([*collect(tmp_path, form, address, corpus.languages)]) == 3
    commands = [str(step) for s in list_preparation(corpus, 1, 1, set()) for step in s.steps]
    assert not any("recipes.fetch" in command for command in commands)
    monkeypatch.setenv("ASPEC_JE", "/nowhere")
    with pytest.raises(DataError, match="^ASPEC_JE=/nowhere: no such file or folder$"):
        corpus.list_texts("train")


def test_every_address_is_asked(monkeypatch, tmp_path):
    corpus = load_corpus(SHARED / "multi30k_en_de")
    monkeypatch.setattr(missing, "probe", fail)
    assert [x.partition(":")[0] for x in list_missing_texts(corpus, tmp_path, {"test": "x"})] == [
        archive.name for archive in corpus.archives
    ]
    download = tmp_path / "corpora" / corpus.name / "download"
    download.mkdir(parents=True)
    for archive in corpus.archives:
        (download / archive.name).touch()
    assert [*list_missing_texts(corpus, tmp_path, {"test": "damaged"})] == ["damaged"]
    own = replace(corpus, archives=[], here=Here("t", "e", "MINE"))
    assert [*list_missing_texts(own, tmp_path, {})] == [
        "MINE: set this variable to the folder of the texts"
    ]


def test_parsers(monkeypatch, tmp_path):
    corpus = load_corpus(SHARED / "wmt14_en_de")
    monkeypatch.setenv("STANZA_DIR", str(tmp_path))
    assert {*list_missing_parsers(corpus, HEADS)} == {"en", "de"}
    for name in ("en_tagger", "en_parser"):
        (tmp_path / f"{name}.pt").touch()
    assert {*list_missing_parsers(corpus, HEADS)} == {"de"}
    monkeypatch.delenv("STANZA_DIR")
    monkeypatch.setattr("stanza.resources.common.DEFAULT_MODEL_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(missing, "probe", lambda url: 9)
    assert list_missing_parsers(corpus, HEADS) == {}, "they are downloaded"
    monkeypatch.setattr(missing, "probe", fail)
    faults = list_missing_parsers(corpus, HEADS)
    assert "stanza.download('en')" in faults["en"] and "/resources_" in faults["en"]
    parses = {"en": "--parser random", "de": "--parser spacy:no_such_model"}
    assert {*list_missing_parsers(replace(corpus, parses=parses), HEADS)} == {"de"}


def test_disk_memory_and_subwords(monkeypatch, tmp_path):
    corpus = write_texts(tmp_path, 30)
    cells = make_cells(corpus, Machines(cpu=True), {}, [(None, read_row("transformer"))])
    assert [*list_scarce(corpus, cells, tmp_path)] == []
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(missing.shutil, "disk_usage", lambda path: usage(10**6))
    monkeypatch.setattr(missing.os, "sysconf", lambda name: 1)
    disk, memory = list_scarce(corpus, cells, tmp_path)
    assert disk.startswith("disk: about ") and memory.startswith("memory: about 1 GB are needed")
    [fault] = list_vocabulary_faults(corpus, tmp_path)
    # train, en, de, ab and a full stop: 9 characters, and 4 + 1 + 1 + 1 more.
    assert fault.startswith(
        "subwords: size: 8,000: the training text has at most 16 different subwords"
    )
    small = replace(corpus, subwords=replace(corpus.subwords, size=16))
    assert [*list_vocabulary_faults(small, tmp_path)] == []


def test_a_rehearsal_has_the_first_sentences(tmp_path):
    corpus = write_texts(tmp_path, 30)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    short, faults = shorten_corpus(replace(corpus, checkpoint=10), tmp_path, scratch)
    assert faults == {} and short.checkpoint == 1 and short.here
    assert (scratch / "texts" / "train.de").read_text() == "train de ab.\n" * SENTENCES
    (tmp_path / "valid.de").write_text("uneven\n")
    shutil.rmtree(scratch / "texts")
    _, faults = shorten_corpus(corpus, tmp_path, scratch)
    assert faults.keys() == {"valid"} and "the sides differ in length" in faults["valid"]


def test_a_rehearsal_without_a_text_keeps_its_form(tmp_path):
    """A treebank keeps heads for each word."""
    short, faults = shorten_corpus(load_corpus(SHARED / "atis_en_tr"), tmp_path, tmp_path)
    assert faults.keys() == {"train", "valid", "test"} and short.here and short.here.heads
    for split in ("train", "valid", "test"):
        for kind in ("heads", "labels"):
            words, parses = (
                (tmp_path / "texts" / name).read_text().splitlines()
                for name in (f"{split}.tr", f"{split}.{kind}.tr")
            )
            assert [len(x.split()) for x in words] == [len(x.split()) for x in parses]
    assert short.list_parses("heads", "test") == ["plain=test.heads.{language}"]
    row = read_row("a=dbsa:optimization.max_update=9:model.dropout=0")
    assert shorten_row(row).changes == ("model.dropout=0",) and shorten_row(row).label == "a"


def test_all_is_listed_and_the_rest_rehearsed(monkeypatch, tmp_path, capsys):
    rehearsed = {}

    def run_after(grid: Grid, preparation: list[Stage], corpus: Corpus) -> None:
        stages = [*preparation, *(stage for each in grid.cells.values() for stage in each)]
        rehearsed.update({stage.title: " ".join(map(str, stage.steps)) for stage in stages})

    monkeypatch.setattr(Grid, "run_after", run_after)
    monkeypatch.setattr(missing, "probe", fail)
    monkeypatch.setattr("stanza.resources.common.DEFAULT_MODEL_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # without KyTea
    row = "syncattn:optimization.max_update=9"
    words = ["aspec_ja_en", row, "transformer", "--seeds", "3", "4", "--cpu", "--check"]
    assert main([*words, f"--work={tmp_path}"]) == 1
    captured = capsys.readouterr()
    first, *faults = captured.out.splitlines()
    assert first == "aspec_ja_en: missing: 4"
    assert [x.split(":")[0] for x in faults[:4]] == [
        *("- kytea", "- parser of ja", "- parser of en", "- ASPEC.tar.gz")
    ]
    assert "(invented: train, valid, test), 2 updates" in faults[4]
    assert captured.err == (
        "error: aspec_ja_en: the rehearsal succeeded, but the things listed above are missing; "
        "supply them first\n"
    )
    trained = [title for title in rehearsed if "seed" in title]
    assert trained == [
        f"{name}, seed 3: {stage}"
        for name in (row, "transformer")
        for stage in ("train", "decode", "score")
    ]
    text = "\n".join(rehearsed.values())
    assert "kytea" not in text and text.count("--parser random") == 6
    assert text.count("++optimization.max_update=2") == 2
    assert [*tmp_path.iterdir()] == [], "the scratch folder is gone"


def own_corpus(folder: Path) -> Callable[[str], Pairs]:
    """Write a corpus of one's own, of sentences of eight words; return what reads its texts."""
    for n, split in enumerate(SPLITS):
        pairs = [*synthetic(120 if split == "train" else 8, seed=n)]
        for side, language in enumerate(("en", "de")):
            lines = ((p.source if side == 0 else p.target).words for p in pairs)
            text = "".join(f"{' '.join(words)} {n}{m} .\n" for m, words in enumerate(lines))
            (folder / f"{split}.{language}").write_text(text)
    files = [str(folder / f"{split}.{x}") for split in SPLITS for x in ("en", "de")]
    write_corpus(folder / "mine", files, gpu=False)
    data = folder / "mine" / "_data.yaml"
    data.write_text(re.sub("^(clean|words:).*\n(  .*\n)*", "", data.read_text(), flags=re.M))
    return lambda split: [(folder / f"{split}.{x}").read_text().splitlines() for x in ("en", "de")]


def overwrite(folder: Path, split: str, sides: Pairs) -> None:
    for language, lines in zip(("en", "de"), sides, strict=True):
        (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))


SPOILT: dict[str, Callable[[Path, Callable[[str], Pairs]], None]] = {
    "test: test sentences are in the training text": lambda folder, read: overwrite(
        folder, "test", [read("test")[0], [*read("test")[1][:-1], read("train")[1][3]]]
    ),
    "valid: the same file is given twice": lambda folder, read: overwrite(
        folder, "valid", read("train")
    ),
    "test: source and target are swapped": lambda folder, read: overwrite(
        folder, "test", read("test")[::-1]
    ),
    "train: pairs have the same text on both sides": lambda folder, read: overwrite(
        folder, "train", [read("train")[0], [*read("train")[0][:60], *read("train")[1][60:]]]
    ),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_a_check_refuses_a_text_that_would_give_wrong_numbers(fault, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Grid, "run_after", lambda *_: None)
    read = own_corpus(tmp_path)
    words = ["./mine", "transformer", "--check", "--cpu", "--work", "work"]
    assert main(words) == 0
    assert "mine: text: nothing to check\n" in capsys.readouterr().out
    SPOILT[fault](tmp_path, read)
    assert main(words) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(
        f"error: mine: the text would give wrong numbers: {fault}; correct"
    )
    assert "allow these faults in _data.yaml under examine" in captured.err
    shown = [line for line in captured.out.splitlines() if line.startswith(f"- {fault} (")]
    assert len(shown) == 1 and ", such as " in shown[0] and "rehearsal" not in captured.out
    assert [*(tmp_path / "work").iterdir()] == [], "the scratch folder is gone"
    names = ("test_in_training", "twice", "swapped", "untranslated")
    declared = "{" + ", ".join(f"{name}: null" for name in names) + "}"
    data = tmp_path / "mine/_data.yaml"
    written = data.read_text()
    data.write_text(f"{written}examine: {declared}\n")
    assert main(words) == 0
    captured = capsys.readouterr()
    assert shown[0] in captured.out.splitlines() and "rehearsal: " in captured.out
    data.write_text(f"{written}clean: {{exclude: test}}\n")
    assert main(words) == ("test sentences" not in fault), "clean leaves these out"
    data.write_text(f"{written}examine: {{twise: 1}}\n")
    assert main(words) == 1
    assert "_data.yaml: examine: twise: no such kind of fault" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "0.2", "null"])
def test_a_run_says_what_is_severe(limit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Grid, "run_after", lambda *_: None)
    read = own_corpus(tmp_path)
    SPOILT["test: test sentences are in the training text"](tmp_path, read)
    found = tmp_path / "corpora/mine/examined.json"
    found.parent.mkdir(parents=True)
    assert examining.main([".", "--languages", "en", "de", "--output", str(found)]) == 0
    data = tmp_path / "mine/_data.yaml"
    data.write_text(f"{data.read_text()}examine: {{test_in_training: {limit}}}\n")
    assert main(["./mine", "--to", "clean"]) == 0
    assert capsys.readouterr().err == "", "it is not about this text, perhaps"
    assert main(["./mine", "--to", "examine"]) == 0
    error = capsys.readouterr().err
    assert error.startswith("warning: test: test sentences are in the training text (1 of 8") == (
        limit == "0"
    )
    assert bool(error) == (limit == "0")


def test_a_text_that_changed_is_noticed_with_from_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Grid, "run_after", lambda *_: None)
    read = own_corpus(tmp_path)
    done = tmp_path / "logs/mine/collect.done"
    done.parent.mkdir(parents=True)
    text = tmp_path / "test.de"
    mark = {"after": {}, "read": hash_files([text], tmp_path)}
    done.write_text(json.dumps(mark))
    assert main(["./mine", "transformer", "--from", "train", "--cpu"]) == 0
    overwrite(tmp_path, "test", [*read("test")[:1], read("train")[1][:8]])
    assert main(["./mine", "transformer", "--from", "train", "--cpu"]) == 1
    assert capsys.readouterr().err.startswith(
        f"error: {text}: has changed since the recipe read this file ("
    )
    assert main(["./mine", "transformer", "--from", "collect", "--cpu"]) == 0


def test_a_check_names_a_text_that_cannot_be_read_to_its_end(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Grid, "run_after", lambda *_: None)
    read = own_corpus(tmp_path)
    overwrite(tmp_path, "train", [read("train")[0], read("train")[1][:-1]])
    assert main(["./mine", "transformer", "--check", "--cpu", "--work", "work"]) == 1
    assert "- the sides differ in length: 120 in train.en but 119 in" in capsys.readouterr().out


def test_parts_of_a_text_are_examined_together(tmp_path):
    own_corpus(tmp_path)
    loaded = load_corpus(tmp_path / "mine")
    corpus = replace(loaded, here=None, train=["plain=train.{language}"] * 2, archives=[])
    corpus = replace(corpus, valid=[], test=["plain=test.{language}"])
    folder = tmp_path / "corpora/mine"
    folder.mkdir(parents=True)
    (folder / "download").symlink_to(tmp_path)
    kinds = {f.kind: f for f in examine_corpus(corpus, tmp_path, ())}
    assert kinds["repeated"].count == 120 and kinds["repeated"].total == 240
    found = examine_corpus(replace(corpus, first=150), tmp_path, ())
    assert {f.kind: (f.count, f.total) for f in found} == {"repeated": (30, 150)}
    assert examine_corpus(corpus, tmp_path, ("train",)) == []
    tokenised = [*(tmp_path / f"train.{x}" for x in ("en", "de"))]
    for path in tokenised:
        path.write_text(path.read_text().replace(" .", "."))
    forms = examine_corpus(replace(corpus, first=120), tmp_path, ())
    assert [f.kind for f in forms] == ["forms"]
    assert examine_corpus(replace(corpus, first=120, tokenised=["test"]), tmp_path, ()) == []


def test_the_stage_stores_what_it_finds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    read = own_corpus(tmp_path)
    SPOILT["test: test sentences are in the training text"](tmp_path, read)
    arguments = [".", "--languages", "en", "de", "--output", "found.json"]
    assert examining.main(arguments) == 0
    assert "test: test sentences are in the training text (1 of 8" in capsys.readouterr().out
    [found] = load_findings(tmp_path / "found.json")
    assert (found.kind, found.count, found.severe) == ("test_in_training", 1, True)
    document = json.loads((tmp_path / "found.json").read_text())
    wrong = [
        *({}, [[]], [{}], [{**document[0], "kind": "x"}], [{**document[0], "count": -1}]),
        *([{**document[0], "severe": 1}], [{**document[0], "example": "a\nb"}]),
        *([{**document[0], "more": 1}], [{**document[0], "total": True}]),
    ]
    for content in wrong:
        (tmp_path / "found.json").write_text(json.dumps(content))
        with pytest.raises(DataError, match="found.json: was not written by the stage examine"):
            load_findings(tmp_path / "found.json")
