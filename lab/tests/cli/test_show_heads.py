"""``syncattn-show --heads``, in a terminal and as a figure."""

from pathlib import Path

import numpy as np
import pytest

from syncattn_lab.cli import show
from syncattn_lab.cli.show_heads import find_strongest
from syncattn_lab.report import figures
from syncattn_lab.report.example import read_example
from tests.cli.errors import read_error


@pytest.fixture(scope="module")
def model(small_corpus):
    return small_corpus.load(small_corpus.trained())


@pytest.fixture
def ask(small_corpus, tmp_path, monkeypatch):
    """Return a function that shows heads of the model of a kind."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, path=None):
        files = [f"--data-bin={small_corpus.data}", f"--subwords={small_corpus.subwords}"]
        return show.main([*arguments, f"--path={path or small_corpus.trained()}", *files])

    return run


def read_gold(corpus):
    return str(corpus.folder / "words" / "test")


def test_where_named_heads_look_is_printed(small_corpus, model, ask, capsys):
    gold, names = read_gold(small_corpus), ["encoder.1.1", "decoder.2.3", "cross.1.2"]
    assert ask(f"--gold={gold}", "--number", "2", "--heads", *names) == 0
    blocks = capsys.readouterr().out.split("\n\n")[-3:]
    [heads] = model.heads([small_corpus.lines("test.en")[1]], [small_corpus.lines("test.de")[1]])
    titles = [block.splitlines()[0] for block in blocks]
    assert titles == [
        "encoder.1.1, dependency: source",
        "decoder.2.3, ordinary: reference (input)",
        "cross.1.2, ordinary: reference to source",
    ]
    parents = {
        "source": heads.parents("encoder")[0, 0].tolist(),
        "target": heads.parents("decoder")[1, 2].tolist(),
    }
    gold = read_example(gold, "en", "de", 2)
    for side, block in zip(("source", "target"), blocks, strict=False):
        own, lines = getattr(gold, side), block.splitlines()[1:]
        found = zip(own.words, own.heads, own.labels, parents[side], lines, strict=True)
        for number, (word, right, label, parent, line) in enumerate(found, 1):
            seen = own.words[parent - 1] if parent else "(root)"
            expected = f"{word} {label}: {seen}"
            if side == "target" and right > number:
                expected = f"{word} {label}: …"
            elif parent != right:
                expected += f" ✗ {own.words[right - 1] if right else '(root)'}"
            assert " ".join(line.lstrip("┌┬┐├┼┤└┴┘│─▸ ").split()) == expected
    links = heads.cross[0, 1][:-1, :-1].argmax(1)
    owner = np.repeat(np.arange(len(heads.source.words)), heads.source.lengths)
    first = f"{heads.target.words[0]}–"
    count = heads.target.lengths[0]
    expected = "+".join(heads.source.words[i] for i in sorted({*owner[links[:count]].tolist()}))
    assert blocks[2].splitlines()[1].startswith(first + expected)


def test_rows_of_the_decoder_may_predict(small_corpus, model, ask, capsys):
    sentence, names = small_corpus.lines("test.en")[0], ["decoder.1.1", "cross.1.1"]
    printed = {}
    for rows in ("input", "predicted"):
        assert ask(sentence, "--heads", *names, "--rows", rows) == 0
        printed[rows] = capsys.readouterr().out.split("\n\n")[-2:]
        assert printed[rows][0].startswith(f"decoder.1.1, dependency: translation ({rows})\n")
    [heads] = model.heads([sentence])
    for rows, (block, _) in printed.items():
        named = [line.split()[-1] for line in block.splitlines()[1:]]
        words = ["(root)", *heads.target.words]
        assert named == [words[parent] for parent in heads.parents("decoder", rows)[0, 0]]
    assert printed["input"][1] != printed["predicted"][1]


def test_the_strongest_heads_are_found_on_the_other_sentences(small_corpus, model, ask, capsys):
    gold = read_gold(small_corpus)
    assert ask(f"--gold={gold}", "--number", "3", "--heads") == 0
    shown = [b.split(",")[0] for b in capsys.readouterr().out.split("\n\n")[-2:]]
    totals, words = {}, {"encoder": "en", "decoder": "de"}
    every = model.heads(small_corpus.lines("test.en"), small_corpus.lines("test.de"))
    for number, heads in enumerate(every, 1):
        for name in heads.names if number != 3 else ():
            if name.part == "cross":
                continue
            line = small_corpus.lines(f"test.heads.{words[name.part]}")[number - 1]
            parents = [int(parent) for parent in line.split()]
            for rows in ("input", "predicted"):
                found = heads.parents(name.part, rows)[name.layer - 1, name.number - 1]
                key = name, rows
                right = int((found == np.array(parents)).sum())
                totals[key] = totals.get(key, 0) + right
    for part, name in zip(words, shown, strict=True):
        own = {key: total for key, total in totals.items() if key[0].part == part}
        assert max(own[key] for key in own if str(key[0]) == name) == max(own.values())
    examples = [read_example(gold, "en", "de", number) for number in (1, 2)]
    names, rows = find_strongest(model, examples, "predicted")
    assert [name.part for name in names] == ["encoder", "decoder"] and rows == "predicted"


def test_a_figure_has_a_matrix_of_each_head(small_corpus, model, ask, capsys):
    gold = f"--gold={read_gold(small_corpus)}"
    assert ask(gold, "--figure=x.svg", "--heads", "encoder.1.1", "cross.2.1") == 0
    assert capsys.readouterr().out.startswith("x.svg: heads of: ")
    svg = Path("x.svg").read_text(encoding="utf-8")
    assert "encoder.1.1, dependency" in svg and "cross.2.1, ordinary" in svg
    example = read_example(read_gold(small_corpus), "en", "de", 1)
    [heads] = model.heads([example.source.text], [example.target.text])
    names = [heads.find(name) for name in ("encoder.1.1", "decoder.1.3", "cross.2.1")]
    drawn = figures.draw_heads(model, example, names, "predicted")._data
    for prefix, name in zip(("1-0", "1-1", "2-0"), names, strict=True):
        rows = None if name.part == "encoder" else "predicted"
        weights = heads.of_head(name, rows)
        cells = drawn[f"{prefix} cells"]
        assert all(
            cell["weight"] == pytest.approx(weights[cell["row"], cell["column"]], abs=1e-4)
            for cell in cells
        )
        size = weights.size
        if name.part == "decoder":
            size = sum(range(len(weights) + 1))
            assert all(cell["column"] <= cell["row"] for cell in drawn[f"{prefix} gold"])
        assert len(cells) == size and drawn[f"{prefix} gold"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("word --heads encoder.9.1", "encoder.9.1: no such head; the model has encoder.1.1 to"),
        (
            "word --heads encoder",
            "'encoder' is not the name of an attention head; give PART.LAYER.HEAD",
        ),
        (
            "word --heads",
            "--heads: name heads, such as encoder.1.1, or give a test set with PREFIX",
        ),
        (
            "--gold t --heads",
            "--heads: the strongest heads cannot be found: no sentence of t, besides",
        ),
        ("word --figure x.svg --heads cross.1.9", "cross.1.9: no such head"),
    ],
)
def test_one_line_says_what_is_wrong_with_heads(ask, capsys, arguments, message):
    for language in ("en", "de"):
        Path(f"t.{language}").write_text("a\nb\n")
    assert message in read_error(capsys, ask(*arguments.split()))
    assert not Path("x.svg").exists()


def test_heads_of_an_export_or_a_file_cannot_be_seen(small_corpus, tmp_path, capsys):
    path = f"--path={small_corpus.exported('ctranslate2')}"
    status = show.main(["word", path, "--heads", "encoder.1.1"])
    assert "shows only the mean over a layer's heads" in read_error(capsys, status)
    (tmp_path / "x").write_text("")
    status = show.main([f"--analyses={tmp_path / 'x'}", "--heads", "encoder.1.1"])
    assert "--heads: a file of analyses has no attention of heads" in read_error(capsys, status)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("word --rows input", "--rows needs --heads"),
        ("word --heads encoder.1.1 --kind alignment --figure x.svg", "--kind cannot be used with"),
        ("--html x.html --heads encoder.1.1", "--heads does not go with --html"),
    ],
)
def test_options_that_do_not_go_together(capsys, arguments, message):
    with pytest.raises(SystemExit):
        show.main(arguments.split())
    assert message in capsys.readouterr().err
