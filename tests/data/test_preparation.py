import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import preprocess, translate
from syncattn_fairseq.cli.tokenise import read_preparation
from syncattn_fairseq.data.preparation import (
    NAME,
    Preparation,
    copy_record,
    score_round_trip,
    stored_preparations,
)
from syncattn_fairseq.data.segmenters import Words
from syncattn_fairseq.export import export
from tests.checkpoints import Corpus
from tests.export.test_export import read_codes

pytest.importorskip("sacremoses", reason="needs the extra moses")

COMMANDS = ["syncattn-tokenise --lang en", "syncattn-tokenise --lang de"]


@pytest.fixture(scope="module")
def data(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data that say how their text was prepared."""
    folder = tmp_path_factory.mktemp("recorded")
    data = folder / "bin"
    shutil.copytree(small_corpus.data, data)
    (folder / "raw.de").write_text('Er (sie) kam, sah -- und: "lachte"!\n', "utf-8")
    arguments = ["-s=en", "-t=de", f"--destdir={data}", f"--subwords={small_corpus.subwords}"]
    arguments += ["--truecased", f"--raw={folder / 'raw'}", "--words-by", *COMMANDS]
    assert preprocess.main(arguments) == 0
    return data


def as_written(words: str) -> str:
    """Return the words of the built-in corpus as a person would write them."""
    return words[:1].upper() + words[1:].replace(" .", ".").replace(" ,", ",")


def test_sentences_go_in_and_come_out(small_corpus, data, tmp_path, capsys, monkeypatch):
    """From Python, the shell, and every export that we load."""
    sources, path = small_corpus.learned(), small_corpus.trained()
    words = syncattn_fairseq.load(path, data, device="cpu", tokenised=True).translate(sources)
    model = syncattn_fairseq.load(path, data, device="cpu")
    raw = [*map(as_written, sources)]
    translations = model.translate(raw)
    assert [*translations] == [*map(as_written, words)] and raw != sources
    assert [t.score for t in translations] == [t.score for t in words]
    [pair] = model.parse(raw[:1])
    assert pair.source.sentence.words == sources[0].split() and pair.translation == translations[0]
    [links] = model.align(raw[:1], translations[:1])
    assert str(links) == str(model.align(raw[:1], [str(translations[0])])[0])
    for format in ("fairseq", "ctranslate2"):
        export(path, data, format, tmp_path / format)
        assert syncattn_fairseq.load(tmp_path / format, device="cpu").translate(raw) == translations
        lines = tmp_path / "lines"
        for text, option, expected in ((raw, [], translations), (sources, ["--tokenised"], words)):
            lines.write_text("".join(f"{line}\n" for line in text), "utf-8")
            capsys.readouterr()
            command = [f"--path={tmp_path / format}", f"--input={lines}", "--device=cpu", *option]
            assert translate.main(command) == 0
            assert capsys.readouterr().out.splitlines() == expected
    monkeypatch.chdir(tmp_path)
    code = read_codes(tmp_path / "ctranslate2")[1]
    said = "# In words, as syncattn-tokenise --lang en --rules 2 splits them, and with a small "
    assert said in code and "import syncattn" not in code
    exec(code.replace('"A sentence ."', repr(sources[0])), {})
    assert capsys.readouterr().out == f"{words[0]}\n"


def test_a_sentence_begins_with_the_more_frequent_spelling():
    """``The`` may be in the dictionary, too, of another language or of titles."""
    segmenter = Words()
    segmenter.preparation = Preparation("moses", "en", case="true")
    segmenter.known = {"the": 0, "Anna": 1, "The": 2, "anna": 3}
    written = ["The dog.", "Anna.", "Zebra."]
    assert segmenter.tokenise(written) == ["the dog .", "Anna .", "Zebra ."]


def test_hugging_face_reads_sentences(small_corpus, data, tmp_path, capsys, monkeypatch):
    pytest.importorskip("transformers")
    path = small_corpus.checkpoint("transformer_dbsa", max_target_positions=40)
    export(path, data, "transformers", tmp_path / "out")
    assert stored_preparations(tmp_path / "out") == stored_preparations(data)
    monkeypatch.chdir(tmp_path)
    [code] = read_codes(tmp_path / "out")
    capsys.readouterr()
    model = syncattn_fairseq.load(path, data, device="cpu", tokenised=True)
    for words in (small_corpus.learned()[0], ">>the old man<< sees the dog ."):
        exec(code.replace('"A sentence ."', repr(words)), {})
        assert capsys.readouterr().out.splitlines()[-1] == model.translate([words])[0]


def test_the_record_goes_beside_checkpoints(data, tmp_path):
    copy_record(data, tmp_path, ["en", "de"], True)
    copied = {path.name for path in tmp_path.iterdir()}
    assert copied == {NAME, "subwords.en", "subwords.de", "subwords.json"}


def test_what_commands_say():
    command = "syncattn-tokenise --lang tr --workers 2 --normalise --aggressive --lowercase"
    assert read_preparation(command) == Preparation("moses", "tr", True, True, "lower", 2)
    kytea = read_preparation("tr -d ' ' | kytea -notags -out tok")
    assert kytea == Preparation("kytea", "ja", rules=2)
    for command in ("sed s/x/y/", "", "'"):
        with pytest.raises(DataError, match="--words-by .*: give syncattn-tokenise"):
            read_preparation(command)


@pytest.mark.parametrize(
    ("preparation", "text", "words", "back"),
    [
        (("moses", "tr"), "IĞDIR'dan geldi.", "IĞDIR ' dan geldi .", "IĞDIR'dan geldi."),
        (("moses", "tr", False, False, "lower"), "IĞDIR.", "ığdır .", "ığdır."),
        (("moses", "en", True, True), "A well-known “x” y.", 'A well @-@ known " x " y .', None),
        (("moses", "xx"), "A b, c.", "A b , c .", "A b, c."),
        (("moses", "en", False, False, "true"), "a. b", "a. b", "A. b"),
        (("spaces", "en"), "A b , c .", "A b , c .", "A b , c ."),
        (("kytea", "ja"), "犬が いる。", "犬 が い る 。", "犬がいる。"),
    ],
)
def test_there_and_back(preparation, text, words, back, tmp_path, monkeypatch):
    """KyTea is a script here that makes every character a word."""
    kytea = tmp_path / "kytea"
    kytea.write_text("#!/bin/sh\nsed 's/./& /g'\n")
    kytea.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    prepared = Preparation(*preparation)
    assert prepared.tokenise([text, ""]) == [words, ""]
    assert prepared.detokenise([words, ""]) == [back or 'A well-known "x" y.', ""]
    if back:
        assert score_round_trip(prepared, [f"{back} {back}"]) > 90


def test_without_kytea(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="^kytea: No such file.*; install KyTea.*--tokenised$"):
        Preparation("kytea", "ja").tokenise(["犬"])


SOUND = {"tokenizer": "moses", "language": "en"}


@pytest.mark.parametrize(
    "record",
    [
        *([], 1, {"en": 1}, {"en": {}}, {"en": SOUND | {"command": "rm"}}),
        *({"en": SOUND | {"tokenizer": each}} for each in ("sh", None, ["moses"])),
        *({"en": SOUND | {"language": each}} for each in ("../x", 1, "")),
        *({"en": SOUND | {"case": "upper"}}, {"en": SOUND | {"normalise": "no"}}),
        {"en": SOUND, "x" * 70000: SOUND},
    ],
)
def test_a_record_of_somebody_else(tmp_path, record: Any):
    (tmp_path / NAME).write_text(json.dumps(record))
    with pytest.raises(DataError, match=f"{NAME}: the file is damaged; make it again"):
        stored_preparations(tmp_path)
