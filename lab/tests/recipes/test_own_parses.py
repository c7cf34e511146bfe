"""Parses of one's own in a recipe, and languages by names of files."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab.tests.recipes.test_corpus_facts import names, raw  # noqa: F401  (a fixture)
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import parse
from syncattn_fairseq.data.parses import read_heads, read_spans
from syncattn_fairseq.trees.tree import format_conllu
from syncattn_lab.cli.recipe import main
from syncattn_lab.recipes.cell import Cell
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.language_tools import describe_language, has_parser
from syncattn_lab.recipes.launch import Machines
from syncattn_lab.recipes.missing import list_missing_parsers
from syncattn_lab.recipes.new_corpus import write_corpus
from syncattn_lab.recipes.request import read_row
from syncattn_lab.recipes.row_settings import RowSettings
from syncattn_lab.recipes.stages import split_commands
from syncattn_lab.recipes.text_formats import collect
from syncattn_lab.recipes.text_steps import download_models
from syncattn_lab.recipes.text_steps import parse as parse_steps


def write_treebanks(splits, size=120):
    """Write treebanks of English and German with sentences that end with their full stops."""
    for split, language in ((s, x) for s in splits for x in ("en", "de")):
        tables = []
        for number in range(size):
            letters = (chr(97 + n) for n in range(number % 7))
            words = [f"{split}{language}", *letters, str(number), "."]
            text = f"{' '.join(words[:-1])}."
            ends = [len(" ".join(words[:n])) for n in range(1, len(words))] + [len(text)]
            spans = [(end - len(word), end) for word, end in zip(words, ends, strict=True)]
            heads = [0, *range(1, len(words))]
            tables.append(
                format_conllu(words, heads, ["dep"] * len(words), None, number, (text, spans))
            )
        Path(f"{split}.{language}.conllu").write_text("".join(tables), "utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("splits", [("train",), ("train", "valid", "test")])
def test_treebanks_are_texts_and_parses(folder, splits, capsys):
    write_treebanks(splits)
    files = [f"{split}.{language}.conllu" for split in splits for language in ("en", "de")]
    assert main(["--init", "mine", *files]) == 0
    assert "note:" not in capsys.readouterr().err
    corpus = load_corpus(Path("mine"))
    assert corpus.systems == ["transformer", "rotary", "lpsi", "syncattn"]
    [text] = corpus.list_texts("train")
    form, _, address = text.partition("=")
    pairs = [*collect(corpus.here.path, form, address, corpus.languages)]
    assert ("trainen a 1.", "trainde a 1.") in pairs
    assert len(pairs) == (120 if len(splits) == 3 else 120 - 2 * 6)
    for split in ("train", "valid", "test"):
        found = Path(corpus.find_parsed("de", split))
        assert found == folder / f"{split if len(splits) == 3 else 'train'}.de.conllu"
    assert list_missing_parsers(corpus, {"heads.de", "heads.en"}) == {}
    assert download_models(corpus, "en") == []
    assert main(["mine", "syncattn", "--dry-run"]) == 0
    assert "--parsed" in capsys.readouterr().out


def test_steps_give_the_recipes_words_the_parses_of_a_user(folder):
    write_treebanks(["train"])
    write_corpus(Path("mine"), ["train.en.conllu", "train.de.conllu"], gpu=False)
    corpus = load_corpus(Path("mine"))
    steps = parse_steps(corpus, "en", 1)
    assert len(steps) == 6, "each file of heads is removed before it is made again"
    command = str(steps[1])
    assert folder / "train.en.conllu" in steps[1].reads
    made = steps[1].makes
    assert [path.name for path in made] == ["train.heads.en", "train.labels.en", "train.spans.en"]
    words = made[0].parent
    words.mkdir(parents=True)
    lines = ["trainen a b c 3.", "unknown.", "trainen 0."]
    (words / "train.en").write_text("".join(f"{line}\n" for line in lines))
    [(program, *argv)] = split_commands(command)
    assert program == "syncattn-parse" and parse.main(argv) == 0
    assert [*read_heads(made[0])] == [[0, 1, 2, 3, 4, 5], None, [0, 1, 2]]
    assert [*read_spans(made[2])][2] == [(0, 7), (8, 9), (9, 10)]


def test_a_recipe_names_parsed_files_and_their_format(raw, capsys):  # noqa: F811
    write_corpus(Path("mine"), names("train", "valid", "test"), gpu=False)
    data = Path("mine/_data.yaml")
    text = data.read_text()
    here = "  parsed: '../parsed/{split}.{language}.json'\n  parsed_format: stanza-json\n"
    data.write_text(text.replace("# Training", here + "# Training", 1))
    corpus = load_corpus(Path("mine"))
    assert corpus.find_parsed("en", "valid") == str(raw / "../parsed/valid.en.json")
    assert "--format stanza-json" in str(parse_steps(corpus, "en", 1)[1])
    missing = list_missing_parsers(corpus, {"heads.en"})
    assert (
        "train.en.json: no such file, but _data.yaml names it under here: parsed" in missing["en"]
    )
    only = here.replace("'../parsed/{split}.{language}.json'", "{de: all.json}")
    data.write_text(text.replace("# Training", only + "# Training", 1))
    corpus = load_corpus(Path("mine"))
    assert corpus.find_parsed("en", "train") is None
    assert corpus.find_parsed("de", "test") == str(raw / "all.json")
    data.write_text(text.replace("# Training", here.replace("stanza-j", "j") + "# Training", 1))
    with pytest.raises(DataError, match="here: parsed_format: 'json'; choose from conllu, "):
        load_corpus(Path("mine"))


def test_treebanks_go_with_treebanks(folder):
    write_treebanks(["train", "valid"])
    Path("valid.en").write_text("a\n" * 20)
    Path("valid.de").write_text("a\n" * 20)
    with pytest.raises(
        DataError,
        match="train.en.conllu: the training text is in CoNLL-U; give the other texts in ",
    ):
        write_corpus(
            Path("mine"), ["train.en.conllu", "train.de.conllu", "valid.en", "valid.de"], False
        )


def test_sentences_of_a_treebank_are_read_as_people_write_them(folder):
    columns = [("1-2", "Im", "SpaceAfter=No"), ("1", "In", "_"), ("2", "dem", "_")]
    columns += [("3", "x", "_"), ("4", ".", "SpaceAfter=No")]
    rows = ["\t".join([n, form, *"____0__", after]) + "\n" for n, form, after in columns]
    rows = "".join(rows) + "\n"
    Path("a.en.conllu").write_text(f"# text = Im  x .\n{rows}{rows}\n", "utf-8")
    Path("a.de.conllu").write_text(rows * 2, "utf-8")
    found = collect(folder, "conllu_text", "a.{language}.conllu", ("en", "de"))
    assert [*found] == [("Im x .", "Imx ."), ("Imx .", "Imx .")]


# ---- languages


@pytest.mark.parametrize(
    "language, parsed, expected",
    [
        ("en", False, []),
        ("english", False, []),
        ("eng", True, []),
        ("tlh", False, ["tlh: is not a known language code, .* and no parses are used"]),
        ("src", True, ["src: is not a known language code, .* and your parses are used"]),
        ("yo", False, ["yo: no parser for Yoruba is known, so _data.yaml has only systems that"]),
        ("yo", True, []),
        (
            "zh",
            False,
            [r"zh: .* rjieba is needed .*-fairseq\[chinese\]'; until .* systems without parses$"],
        ),
        (
            "th",
            True,
            [r"th: each letter of this language .* pythainlp is needed .*-fairseq\[thai\]'$"],
        ),
        ("my", False, [r"my: .* icu is needed .*-fairseq\[icu\]'; until then, .*"]),
    ],
)
def test_what_a_language_needs_is_said_in_a_line(language, parsed, expected, monkeypatch):
    pytest.importorskip("stanza")
    monkeypatch.setattr("syncattn_fairseq.data.splitters.find_spec", lambda name: None)
    found = [*describe_language(language, parsed)]
    assert len(found) == len(expected)
    for line, start in zip(found, expected, strict=True):
        assert re.match(start, line) and "\n" not in line


@pytest.mark.parametrize("installed", [True, False])
def test_without_its_splitter_a_language_is_trained_without_parses(
    folder, capsys, monkeypatch, installed
):
    pytest.importorskip("stanza")
    Path("train.zh").write_text("".join(f"我看见{chr(n)}。\n" for n in range(0x4E00, 0x4E80)))
    Path("train.en").write_text("".join(f"I see {n}.\n" for n in range(0x80)))
    if not installed:
        monkeypatch.setattr("syncattn_fairseq.data.splitters.find_spec", lambda name: None)
    assert main(["--init", "mine", "train.zh", "train.en"]) == 0
    notes = [x for x in capsys.readouterr().err.splitlines() if x.startswith("note:")]
    assert len(notes) == (not installed)
    corpus = load_corpus(Path("mine"))
    assert ("syncattn" in corpus.systems) == installed
    assert corpus.clean["max_words"] == (100 if installed else 400)
    assert corpus.clean["ratio"] == (9 if installed else 36)


def test_parsers_are_stanzas(monkeypatch):
    pytest.importorskip("stanza")
    assert all(map(has_parser, ("en", "german", "zh_Hant", "zho", "no", "th", "kmr")))
    assert not any(map(has_parser, ("yo", "my", "xx", "km")))
    monkeypatch.setitem(sys.modules, "stanza.resources.default_packages", None)
    assert has_parser("yo") and not has_parser("xx")


@pytest.mark.parametrize(
    "source, target, systems, parser",
    [
        ("english.txt", "german.txt", 4, "--lang de"),
        ("x.eng", "x.deu", 4, "--lang de"),
        ("z.en", "z.pt_BR", 4, "--lang pt"),
        ("z.en", "z.yo", 3, "--lang yo"),
    ],
)
def test_languages_are_known_by_the_names_of_files(raw, source, target, systems, parser, capsys):  # noqa: F811
    pytest.importorskip("stanza")
    for old, new in zip(names("train"), (source, target), strict=True):
        Path(old).rename(new)
    assert main(["--init", "mine", source, target]) == 0
    notes = [x for x in capsys.readouterr().err.splitlines() if x.startswith("note:")]
    assert len(notes) == (systems == 3)
    corpus = load_corpus(Path("mine"))
    assert len(corpus.systems) == systems
    language = corpus.target
    assert corpus.subwords.raw and parser in corpus.parses[language]
    assert corpus.parses[corpus.source] == "--parser stanza --lang en"
    assert main(["mine", "transformer", "--dry-run"]) == 0
    [download] = download_models(corpus, language)
    assert re.findall(r"download\W+(\w+)", str(download)) == [parser.removeprefix("--lang ")]
    assert json.dumps(language) in Path("mine/_corpus.yaml").read_text()


# ---- scores


def list_scoring(corpus):
    """Return the words of the commands that score SyncAttn's analyses."""
    row = read_row("syncattn", corpus.known_systems())
    *_, scoring = Cell(RowSettings(row, corpus, {}), Machines(cpu=True), None).stages()
    return [(str(step).split(), [str(path) for path in step.reads]) for step in scoring.steps]


def test_attachment_is_scored_by_the_spans_of_the_parsers_words(folder):
    write_treebanks(["train"])
    write_corpus(Path("mine"), ["train.en.conllu", "train.de.conllu"], gpu=False)
    corpus = load_corpus(Path("mine"))
    [(words, reads)] = list_scoring(corpus)
    place = "corpora/mine/words/"
    for side, language in (("source", "en"), ("target", "de")):
        for option, name in (("heads", "test.heads"), ("spans", "test.spans")):
            path = f"{place}{name}.{language}"
            assert words[words.index(f"--{side}-{option}") + 1] == path and path in reads
        at = words.index(f"--{side}-counts") + 1
        counted = ["train.heads", "train.spans", "train"]
        files = [f"corpora/mine/pieces/train.{language}"]
        files += [f"{place}{name}.{language}" for name in counted]
        assert words[at : at + 4] == files and {*files} <= {*reads}
    assert words[words.index("--source") + 1] == f"{place}test.en" in reads
    *_, (words, reads) = list_scoring(replace(corpus, gold_alignments="a!b"))
    assert words[1] == "links"
    for side, language in (("source", "en"), ("target", "de")):
        path = f"{place}test.{language}"
        assert words[words.index(f"--{side}") + 1] == path and path in reads
