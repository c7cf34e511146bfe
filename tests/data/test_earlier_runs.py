"""What an earlier run left in a folder is checked, kept or removed by the next run."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from syncattn_fairseq.cli import bpe, preprocess
from syncattn_fairseq.data.fingerprint import NAME, read_stored
from tests.checkpoints import Corpus

COMMANDS = ["syncattn-tokenise --lang en", "syncattn-tokenise --lang de"]
RECORD = ("preparation.json", "subwords.en", "subwords.de")


@pytest.fixture(scope="module", autouse=True)
def _moses() -> None:
    pytest.importorskip("sacremoses", reason="needs the extra moses")


@pytest.fixture(scope="module")
def other_model(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A subword model that splits the small corpus differently."""
    prefix = tmp_path_factory.mktemp("other") / "other"
    words = str(small_corpus.folder / "words" / "test.en")
    assert bpe.main(["learn", "--vocab-size=80", f"--model={prefix}", f"--input={words}"]) == 0
    return prefix.with_suffix(".model")


def run(data: Path, *more: object) -> int:
    return preprocess.main(["-s=en", "-t=de", f"--destdir={data}", *map(str, more)])


def add_record(corpus: Corpus, data: Path, *more: object, model: Path | None = None) -> int:
    return run(data, "--subwords", model or corpus.subwords, "--truecased", *more,
               "--words-by", *COMMANDS)  # fmt: skip


def name_text(corpus: Corpus, split: str, kind: str = "pref") -> str:
    room = "pieces" if kind == "pref" else "words"
    return f"--{split}{kind}={corpus.folder / room / split}"


def reuse(data: Path) -> list[str]:
    return [f"--srcdict={data}/dict.en.txt", f"--tgtdict={data}/dict.de.txt"]


def hold(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def fails(capsys: Any, told: str, folder: Path, call: Any, *args: object, **more: Any) -> None:
    """Check that a run is refused in one line, and leaves a folder as it was."""
    before = hold(folder)
    capsys.readouterr()
    assert call(*args, **more) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and told in error, error
    assert hold(folder) == before


def test_a_record_is_added_to_the_fingerprint(small_corpus, own_data, capsys):
    before = read_stored(own_data)
    assert add_record(small_corpus, own_data) == 0
    after = read_stored(own_data)
    added = {"preparation.json (en)", "preparation.json (de)", "subwords.en", "subwords.de"}
    added |= {"vocabulary.en", "vocabulary.de"}
    assert after.meaning.keys() - before.meaning.keys() == added
    assert after.provenance == before.provenance
    held = hold(own_data)
    assert add_record(small_corpus, own_data) == 0
    assert hold(own_data) == held
    fails(capsys, "nowhere: no such folder; binarise the text first", own_data, add_record,
          small_corpus, own_data / "nowhere")  # fmt: skip


def test_a_record_that_does_not_fit_the_text(small_corpus, own_data, other_model, capsys):
    told = f"{other_model}: splits 11 of 11 sentences of {own_data} differently"
    fails(capsys, told, own_data, add_record, small_corpus, own_data, model=other_model)
    swapped = ["--words-by", *reversed(COMMANDS)]
    told = "--words-by: says that en was prepared as de, and de as en, so the languages are swapped"
    fails(capsys, told, own_data, run, own_data, *swapped)
    lower = ["--words-by", f"{COMMANDS[0]}", f"{COMMANDS[1]} --lowercase"]
    told = "sentences have other words than --words-by makes, the first 'hinter dem armen tempel"
    fails(capsys, told, own_data, run, own_data, *lower)
    codes = own_data.parent / "codes"
    codes.write_text("#version: 0.2\nt h\n")
    fails(capsys, "marks subwords as subword_nmt, but ", own_data, add_record, small_corpus,
          own_data, model=codes)  # fmt: skip
    files = [name_text(small_corpus, "train"), name_text(small_corpus, "train", "heads")]
    files += [name_text(small_corpus, "valid"), f"--subwords={other_model}"]
    told = f"splits 12 of 12 sentences of {small_corpus.folder}/pieces/valid.en differently"
    fails(capsys, told, own_data, run, own_data.parent / "new", *files)
    assert not (own_data.parent / "new").exists()


def test_no_run_writes_onto_its_input(small_corpus, own_data, tmp_path, capsys):
    assert add_record(small_corpus, own_data) == 0
    told = f"{own_data}/subwords.en: this output is also an input"
    model = own_data / "subwords.en"
    fails(capsys, told, own_data, add_record, small_corpus, own_data, model=model)
    mine = tmp_path / "mine.model"
    shutil.copy(small_corpus.subwords, mine)
    for linked in ("subwords.en", "preparation.json", NAME):
        (own_data / linked).rename(tmp_path / "kept")
        (own_data / linked).symlink_to(mine if linked == "subwords.en" else tmp_path / "kept")
        told = f"{own_data / linked}: is a symbolic link where this command"
        fails(capsys, told, own_data, add_record, small_corpus, own_data)
        (tmp_path / "kept").replace(own_data / linked)
    assert mine.read_bytes() == small_corpus.subwords.read_bytes()
    (own_data / "subwords.de").unlink()
    (own_data / "subwords.de").symlink_to(mine)
    told = f"{own_data}/subwords.de: this output is also an input"
    fails(capsys, told, own_data, add_record, small_corpus, own_data, model=mine)


def test_dictionaries_that_are_there_stay_as_they_are(small_corpus, own_data):
    """Also links, with which many share them."""
    shared = own_data.parent / "dict"
    shutil.copy(own_data / "dict.en.txt", shared)
    (own_data / "dict.en.txt").unlink()
    (own_data / "dict.en.txt").symlink_to(shared)
    options = [*reuse(own_data), name_text(small_corpus, "test")]
    assert run(own_data, *options, name_text(small_corpus, "test", "heads"),
               f"--srclabeldict={own_data}/dict.labels.en.txt",
               f"--tgtlabeldict={own_data}/dict.labels.de.txt") == 0  # fmt: skip
    assert (own_data / "dict.en.txt").is_symlink()
    assert run(own_data, *reuse(own_data), "--dict-only", name_text(small_corpus, "train")) == 0
    assert (own_data / "dict.en.txt").is_symlink() and (own_data / "dict.de.txt").is_file()


def test_dictionaries_alone_go_through_no_link(small_corpus, tmp_path, capsys):
    data = tmp_path / "bin"
    data.mkdir()
    (data / "dict.en.txt").symlink_to(tmp_path / "elsewhere")
    fails(capsys, "dict.en.txt: is a symbolic link", data, run, data, "--dict-only",
          name_text(small_corpus, "train"))  # fmt: skip
    assert not (tmp_path / "elsewhere").exists() and os.listdir(data) == ["dict.en.txt"]


def test_a_new_training_text_has_no_earlier_record(small_corpus, own_data):
    assert add_record(small_corpus, own_data) == 0
    (own_data / "vocabulary.en").write_text("a 1\n")
    words = own_data.parent / "words"
    words.mkdir()
    for name in ("train.en", "train.de", "train.heads.en"):
        shutil.copy(small_corpus.folder / "words" / name, words)
    kept = {name: content for name, content in hold(own_data).items() if name.startswith("test.")}
    options = [*reuse(own_data), name_text(small_corpus, "train"), f"--trainheads={words}/train"]
    assert run(own_data, *options) == 0
    held = hold(own_data)
    gone = {*RECORD, "vocabulary.en", "dict.labels.en.txt", "train.align.en-de.bin"}
    gone |= {"train.labels.en-de.en.idx", "train.heads.en-de.de.bin"}
    assert not gone & held.keys() and "train.heads.en-de.en.bin" in held
    assert kept.items() <= held.items()
    stored = read_stored(own_data)
    schemes = {"subwords.json (en)", "subwords.json (de)"}
    assert {*stored.meaning} == {"dict.en.txt", "dict.de.txt", *schemes}
    assert "train.labels.en-de.en" not in stored.provenance[0]
    assert "test.align.en-de" in stored.provenance[0]


def test_a_text_that_is_added_keeps_the_record(small_corpus, own_data, other_model, capsys):
    assert add_record(small_corpus, own_data) == 0
    files = [name_text(small_corpus, "test"), name_text(small_corpus, "test", "heads")]
    files += [*reuse(own_data), f"--srclabeldict={own_data}/dict.labels.en.txt"]
    files.append(f"--tgtlabeldict={own_data}/dict.labels.de.txt")
    held = hold(own_data)
    assert run(own_data, *files) == 0
    assert {name for name, content in hold(own_data).items() if held[name] != content} <= {
        "preprocess.log"
    }
    told = f"{own_data}/preparation.json (en): differs from what this command was given for the"
    fails(capsys, told, own_data, run, own_data, *files, "--words-by", *COMMANDS)


def test_texts_of_another_dictionary_do_not_stay(small_corpus, own_data, capsys):
    """Whoever removes the dictionaries, as fairseq advises, has the old texts still."""
    for language in ("en", "de"):
        (own_data / f"dict.{language}.txt").unlink()
        (own_data / f"dict.labels.{language}.txt").unlink()
    files = [name_text(small_corpus, "train"), name_text(small_corpus, "train", "heads")]
    told = "/bin/test.en-de.de.bin: was binarised with another dictionary than the present"
    fails(capsys, told, own_data, run, own_data, *files)
    files.append("--joined-dictionary")  # is the same again
    assert run(own_data, *files) == 0
    stored = read_stored(own_data).provenance[0]
    assert "test.en-de.en" in stored and "train.labels.en-de.de" in stored


def test_nothing_is_added_to_data_that_were_exchanged(small_corpus, own_data, capsys):
    lines = (own_data / "dict.de.txt").read_text().splitlines(keepends=True)
    (own_data / "dict.de.txt").write_text("".join(reversed(lines)))
    told = f"{own_data}/dict.de.txt: differs from the file that the text was"
    fails(capsys, told, own_data, add_record, small_corpus, own_data)
    texts = [name_text(small_corpus, split) for split in ("train", "valid", "test")]
    texts += [name_text(small_corpus, split, "heads") for split in ("train", "valid", "test")]
    fails(capsys, told, own_data, run, own_data, *texts, "--add", "heads.en")
