import sys
from pathlib import Path
from unicodedata import normalize

import pytest

from syncattn_fairseq.cli.tokenise import main
from syncattn_fairseq.data.moses import open_detokenizer

TEXT = ["Don't say \u201cwell-known & <b>\u201d.", "", "Ein Haus | [zwei]"]


def tokenise(folder: Path, text: list[str], *options: str) -> list[str]:
    pytest.importorskip("sacremoses")
    source, output = folder / "in", folder / "out"
    source.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    assert main(["--lang=en", f"--input={source}", f"--output={output}", *options]) == 0
    return output.read_text(encoding="utf-8").split("\n")[:-1]


WORDS = ["Don't say U.S.A.( x ) ,", "ÄH ."]
LINES = [f"Line {number}" for number in range(2500)]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (TEXT, "", ["Don 't say \u201c well-known & < b > \u201d .", "", "Ein Haus | [ zwei ]"]),
        (
            TEXT[:1],
            "--normalise --aggressive --lowercase",
            ['don \'t say " well @-@ known & < b > . "'],
        ),
        (WORDS, "--words", WORDS),
        (WORDS, "--words --lowercase", [words.lower() for words in WORDS]),
        ([f"{line}." for line in LINES], "--workers=2", [f"{line} ." for line in LINES]),
    ],
)
def test_words_are_moses_without_escapes(tmp_path, text, options, words):
    assert tokenise(tmp_path, text, *options.split()) == words


def test_detokenising_undoes_it(tmp_path):
    text = ["We can't go (yet), he said: well-known & so on."]
    for options in ((), ("--aggressive",)):
        assert [*map(open_detokenizer("en"), tokenise(tmp_path, text, *options))] == text


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("tr", "Ali'nin evi İzmir'de."),
        ("tr", "Ankara'dan gelen, Ayşe’ye 2010'da “evet” yazdı."),
        ("tr", "O'Brien 'evet' dedi, 'hayır' demedi."),
        ("ro", "O'Brien și McDonald's au un „dor”, „altul”."),
        ("en", "We can't: O'Brien's."),
    ],
)
def test_apostrophes_come_back(tmp_path, language, text):
    words = tokenise(tmp_path, [text], f"--lang={language}")
    assert [*map(open_detokenizer(language), words)] == [text]


@pytest.mark.parametrize(
    ("language", "text", "small"),
    [
        ("tr", "IĞDIR İSTANBUL I\u0307", "ığdır istanbul i"),
        ("az", "Iİ", "ıi"),
        ("tr-TR", "I", "ı"),
        ("en", "IĞDIR İ", "iğdir i̇"),
    ],
)
def test_lower_case_is_the_languages(tmp_path, language, text, small):
    """Against Unicode's SpecialCasing.txt."""
    found = tokenise(tmp_path, [text], "--words", "--lowercase", f"--lang={language}")
    assert [normalize("NFD", line) for line in found] == [normalize("NFD", small)]


def test_without_sacremoses(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert main(["--lang=en"]) == 1
    assert "pip install 'syncattn-fairseq[moses]'" in capsys.readouterr().err


def test_a_language_that_moses_does_not_know_is_told(tmp_path, capsys):
    tokenise(tmp_path, TEXT, "--lang=xx")
    assert "Moses has no abbreviations for xx" in capsys.readouterr().err
    tokenise(tmp_path, TEXT, "--lang=tr")  # as English is right
    assert not capsys.readouterr().err
    tokenise(tmp_path, TEXT, "--lang=de")
    assert not capsys.readouterr().err
