import re
from pathlib import Path

import pytest
import torch

from lab.tests.cli.test_show import named
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.cli import show
from syncattn_lab.report.example import read_example
from tests.cli.errors import read_error


def draw(kind: str, *arguments: str, figure: str = "x.svg") -> int:
    return show.main(["--figure", figure, "--kind", kind, *arguments])


@pytest.fixture
def gold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.en").write_text("no\nthe <b>old</b> man\n")
    Path("t.heads.en").write_text("0\n3 3 0\n")
    Path("t.labels.en").write_text("root\ndet amod root\n")
    return tmp_path


def test_parents_and_tree_distances_need_no_model(gold, capsys):
    Path("t.en").write_text("no\nthe <b>old</b>\x1bman\x07\n")  # what a terminal obeys is no text
    for kind in ("parents", "tree-distances"):
        assert draw(kind, "-s=en", "--gold=t", "--number=2", figure=f"{kind}.svg") == 0
        assert capsys.readouterr().out == f"{kind}.svg: {kind} of: the <b>old</b> man\n"
        svg = Path(f"{kind}.svg").read_text("utf-8")
        assert svg.count("&lt;b&gt;old&lt;/b&gt;") >= 3 and "<b>" not in svg
        assert ">amod<" in svg
    assert ">2<" in svg, "edges between the and old"


def test_letters_without_a_font_are_named(gold, capsys):
    Path("t.en").write_text("no\nthe \U0010ffff man\n", encoding="utf-8")
    for name in ("x.svg", "x.png"):
        assert draw("parents", "-s=en", "--gold=t", "--number=2", figure=name) == 0
    warning = (
        "warning: x.png: no installed font has letters of UNKNOWN, so the picture shows boxes; "
    )
    assert capsys.readouterr().err.startswith(warning)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("parents", "--gold t --figure x.gif", "x.gif: pictures are .svg, .png or .pdf"),
        ("parents", "-s en --gold t --number 3", "t.en: there is no line 3"),
        ("parents", "--gold t", "parents is drawn without a model; name the language"),
        ("parents", "word --gold t", "--gold has the sentence and the reference"),
        ("parents", "--translation w --gold t", "--gold has the sentence and"),
        ("parents", "-s en --gold none", "none.en: No such file or directory"),
        ("parents", "word", "the source has no parse; give --gold"),
        ("parents", "", "no sentence is given; give a sentence, or a test set"),
        ("parents", "one two", "--figure: give one sentence"),
        ("parents", "-s en --gold t --number 1 2", "or one --number of --gold"),
        ("parents", "--analyses t.en", "a figure needs more than a file of analyses has"),
        ("attention", "word", "give the model, --path CHECKPOINT"),
    ],
)
def test_one_line_says_what_is_wrong(gold, capsys, kind, arguments, message):
    assert message in read_error(capsys, draw(kind, *arguments.split()))
    assert not list(Path().glob("x.*"))


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("align", "0-0\n", "t.align: there is no line 2"),
        (
            "align",
            "0-0\n2-1 3-0\n",
            "t.align:2: link 3-0, counted from 0, lies outside the 3 source",
        ),
        (
            "align",
            "0-0\n0-1 2?2\n",
            "t.align:2: link 2-2, counted from 0, lies outside the 3 source",
        ),
        (
            "heads.en",
            "0\n2 1 0\n",
            "t.heads.en:2: the heads form a cycle: following them from word 1 leads back to it",
        ),
        ("heads.en", "0\n3 9 0\n", "t.heads.en:2: head 9 is out of range 0..3"),
        ("heads.de", "0\n0 0\n", "t.heads.de:2: 2 words have head 0"),
        ("labels.de", "a\nb\n", "t.labels.de:2: this is for 1 words, but line 2 of t.de has 2"),
        (
            "trees.en",
            "\n(S (A a) (B b))\n",
            "t.trees.en:2: this is for 2 words, but line 2 of t.en has",
        ),
    ],
)
def test_gold_that_does_not_fit_its_words_is_refused(gold, file, text, message):
    Path("t.de").write_text("nein\nder Alte\n")
    Path("t.align").write_text("0-0\n2-1 0?0\n")
    Path("t.trees.en").write_text("\n(S (A the) (B old) (C man))\n")
    read_example("t", "en", "de", 2)
    Path(f"t.{file}").write_text(text)
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        read_example("t", "en", "de", 2)
    if file.endswith(".en"):  # without a model, only the source is read
        assert draw("parents", "-s=en", "--gold=t", "--number=2") == 1
        assert not Path("x.svg").exists()


def test_parents_over_subwords(small_corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = small_corpus.lines("test.en")[0]
    Path("t.en").write_text(f"{line}\n")
    Path("t.heads.en").write_text(" ".join(map(str, range(len(line.split())))) + "\n")
    drawn = ["parents", "-s=en", "--gold=t"]
    split = f"--subwords={small_corpus.subwords}"
    assert draw(*drawn, split, figure="subwords.svg") == 0
    assert draw(*drawn, figure="words.svg") == 0
    subwords, words = (Path(f"{name}.svg").read_text() for name in ("subwords", "words"))
    assert subwords.count("<text") > words.count("<text")


@pytest.mark.parametrize("drawn", [["--figure=x.svg", "--kind=alignment"], []])
def test_the_model_knows_its_languages(drawn, small_corpus, tmp_path, monkeypatch, capsys):
    """A model from German to English reads the German line, and never the English one."""
    monkeypatch.chdir(tmp_path)
    for one in ("de", "en"):
        Path(f"t.{one}").write_text(f"a {one} text\n")
    model = named(small_corpus, tmp_path, "syntax_transformer")
    state = torch.load("model.pt", weights_only=False)
    state["cfg"]["task"] |= {"source_lang": "de", "target_lang": "en"}
    torch.save(state, "model.pt")
    capsys.readouterr()
    assert show.main([*drawn, "--gold=t", *model]) == 0
    out = capsys.readouterr().out
    assert "a de text" in out and "source       a en" not in out
    if not drawn:
        assert "reference    a en text" in out
    for language in ("en", "de"):
        Path(f"t.{language}").rename("away")
        assert show.main([*drawn, "--gold=t", *model]) == 1
        err = capsys.readouterr().err
        assert f"t.{language}" in err and err.count("\n") == 1
        Path("away").rename(f"t.{language}")
    if drawn:
        assert show.main([*drawn, "--gold=t", "-s=en", "-t=de", *model]) == 0
        assert "a en text" in capsys.readouterr().out


def test_raw_sentences_are_drawn_in_the_words_of_the_models_splitter(
    raw_corpus, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    path = raw_corpus.checkpoint("transformer_syncattn")
    model = [f"--path={path}", f"--data-bin={raw_corpus.data}", f"--subwords={raw_corpus.subwords}"]
    assert draw("parses", "It isn't  here.", *model, "--translation", "Das ist's.") == 0
    assert capsys.readouterr().out == "x.svg: parses of: It isn't  here.\n"
    svg = Path("x.svg").read_text("utf-8")
    assert [*re.findall(">([^<>\n]+)</text>", svg)] == [
        "It",
        "isn't",
        "here",
        ".",
        "Das",
        "ist's",
        ".",
    ]
    test = f"--gold={raw_corpus.folder / 'words' / 'test'}"
    assert draw("alignment", test, "--number=1", *model) == 0
    assert capsys.readouterr().out.endswith(f"of: {raw_corpus.lines('test.en')[0]}\n")
    for name, line in (
        ("t.en", "It isn't here.\n"),
        ("t.de", "Ja.\n"),
        ("t.spans.de", "0-2 2-3\n"),
    ):
        Path(name).write_text(line)
    Path("t.spans.en").write_text("0-2 3-5 5-8 9-13 13-14\n")
    said = read_error(capsys, draw("alignment", "--gold=t", *model))
    assert "5 words, but 4 in the model's subwords; draw a sentence whose parse has the" in said
    Path("t.spans.en").write_text("0-2 3-50\n")
    assert "t.spans.en:1: the span 3-50 cannot follow 0-2 in a" in read_error(
        capsys, draw("alignment", "--gold=t", *model)
    )


def test_the_parse_of_a_raw_sentence_is_read_in_its_words(raw_corpus, capsys):
    path = raw_corpus.checkpoint("transformer_pascal")
    model = [f"--path={path}", f"--data-bin={raw_corpus.data}", f"--subwords={raw_corpus.subwords}"]
    test = f"--gold={raw_corpus.folder / 'words' / 'test'}"
    assert show.main([test, "--number=2", *model]) == 0
    assert capsys.readouterr().out.startswith(f"source       {raw_corpus.lines('test.en')[1]}\n")
