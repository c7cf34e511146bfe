"""Text for a model to start from: its characters, dictionaries and subwords."""

import re
from pathlib import Path

import pytest

import syncattn_fairseq
from syncattn_fairseq.cli import bpe, preprocess
from syncattn_fairseq.data.pieces import apply_pieces, normalise_sentence, open_pieces
from syncattn_fairseq.data.preparation import stored_preparations, stored_schemes
from syncattn_fairseq.imports import import_model
from tests.published import start_corpus, write_m2m


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return start_corpus(tmp_path_factory.mktemp("started"))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Wait…  he said:\u00a0½ \ufb01sh", "Wait... he said: 1⁄2 fish"),
        ("cafe\u0301 x\u200by", "café x y"),
        ("the old man.", "the old man."),
        ("", ""),
        ("  ", ""),
    ],
)
def test_sentences_are_written_as_the_model_reads_them(
    corpus, tmp_path, monkeypatch, sentence, expected
):
    model = corpus.imported / "subwords.en"
    processor = open_pieces(model)
    assert normalise_sentence(processor, sentence) == expected
    pieces = [apply_pieces(processor, text) for text in (sentence, expected)]
    assert pieces[0] == pieces[1], "normalising twice changes nothing"
    source, output = tmp_path / "x", tmp_path / "y"
    source.write_text(f"{sentence}\n", encoding="utf-8")
    arguments = [f"--model={model}", f"--input={source}", f"--output={output}"]
    assert bpe.main(["normalise", *arguments]) == 0
    assert output.read_text(encoding="utf-8") == f"{expected}\n"


def test_the_data_is_that_of_the_import(corpus):
    for language in ("en", "de"):
        dictionaries = [path / f"dict.{language}.txt" for path in (corpus.data, corpus.imported)]
        assert dictionaries[0].read_bytes() == dictionaries[1].read_bytes()
    for stored in (stored_preparations, stored_schemes):
        assert stored(corpus.data) == stored(corpus.imported) != {}
    assert stored_schemes(corpus.data) == {"en": "raw:uax29", "de": "raw:uax29"}
    model = syncattn_fairseq.load(corpus.start("transformer_dbsa"), corpus.data, device="cpu")
    parse = model.parse(["The old man."], ["Der alte Mann."])[0]
    assert parse.source.sentence.words == ["The", "old", "man", "."]
    assert str(parse.target.sentence) == "Der alte Mann."


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (["--srcdict=x"], "--start: the dictionaries and subword models of .* are used; leave out"),
        (["--joined-dictionary"], "leave out --joined-dictionary"),
        (["--subword-marks=none"], "leave out --subword-marks"),
        (["--subwords=x"], "leave out --subwords"),
        (
            ["-t=fr"],
            "dict.fr.txt: no such file; give a folder that syncattn-import has written for fr",
        ),
        (["--words-by", "kytea", "kytea"], "--words-by: the subword model splits raw sentences"),
    ],
)
def test_what_contradicts_it_is_said(corpus, tmp_path, capsys, more, fault):
    arguments = ["-s=en", "-t=de", f"--destdir={tmp_path / 'bin'}", f"--start={corpus.imported}"]
    arguments.append(f"--trainpref={corpus.folder / 'pieces' / 'train'}")
    assert preprocess.main([*arguments, *more]) == 1
    error = capsys.readouterr().err
    assert re.search(fault, error), error


def test_a_model_of_many_languages_has_no_parses(tmp_path, capsys):
    hub = write_m2m(tmp_path / "hub", ["the old man", "der alte Mann", "a dog sees him"])
    import_model(hub, tmp_path / "made", "en", "de")
    Path(tmp_path / "x.en").write_text("▁the\n")
    Path(tmp_path / "x.de").write_text("▁der\n")
    arguments = ["-s=en", "-t=de", f"--destdir={tmp_path / 'bin'}", f"--start={tmp_path / 'made'}"]
    assert preprocess.main([*arguments, f"--trainpref={tmp_path / 'x'}"]) == 1
    told = "reads the token __en__ first, for which parses have no head"
    assert told in capsys.readouterr().err
