"""Parses of sentences as people write them: words and spans from parsers, files and rules."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.cli.parse import main
from syncattn_fairseq.data.parses import read_heads, read_spans
from syncattn_fairseq.data.spans import check_spans
from syncattn_fairseq.parsing import stanza_parser
from syncattn_fairseq.parsing.formats import FORMATS
from syncattn_fairseq.parsing.formats.parsed_sentence import Analysis, Surface
from syncattn_fairseq.parsing.manifest import Manifest
from syncattn_fairseq.parsing.parsed_file import match_parses
from syncattn_fairseq.parsing.parser import Parse
from syncattn_fairseq.parsing.parsers import find_parser
from syncattn_fairseq.parsing.realign import place_words
from syncattn_fairseq.parsing.stanza_parser import StanzaModels, StanzaParser
from syncattn_fairseq.parsing.writer import open_writer
from syncattn_fairseq.trees.tree import format_conllu
from tests.parsing.chain import CONLLU, Chain

TEXT = ["Va là, l'ami!", "", "The 3.14 %.", " \u00a0 "]
WORDS = [["Va", "là", ",", "l'", "ami", "!"], [], ["The", "3.14", "%", "."], []]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.fr").write_text("".join(f"{line}\n" for line in TEXT), "utf-8")
    Path("program.py").write_text(CONLLU)
    return tmp_path


def parse(*more, text="text.fr"):
    program = [f"--command={sys.executable} program.py", "--format=conllu", "--parser=command"]
    return main([f"--input={text}", "--output=heads", "--spans=spans", *program, *more])


def read_words(lines=TEXT):
    return [[x[b:e] for b, e in row] for x, row in zip(lines, read_spans("spans"), strict=True)]


def test_a_raw_text_gets_heads_and_spans(folder, capsys):
    assert parse("--labels=labels", "--shards=2") == 0
    assert "4 sentences, 10 words, 2 without a parse (empty line: 2)" in capsys.readouterr().out
    assert read_words() == WORDS  # split as French: by the name of the text
    sizes = [found and len(found) for found in read_heads("heads")]
    assert sizes == [6, None, 4, None]
    assert [len(line.split()) for line in Path("labels").read_text().splitlines()] == [6, 0, 4, 0]
    assert parse("--labels=labels") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert parse("--labels=labels", "--splitter=uax29") == 0  # says what has changed
    assert "splitter was elision, is uax29" in capsys.readouterr().out
    assert read_words()[0] == ["Va", "là", ",", "l'ami", "!"]


def test_max_words_counts_the_words_of_raw_sentences(folder, capsys):
    assert parse("--max-words=5") == 0
    assert [len(row) for row in read_spans("spans")] == [0, 0, 4, 0]
    assert "more than 5 words: 1" in capsys.readouterr().out


def test_a_splitter_that_lacks_is_told_before_anything_is_parsed(folder, capsys, monkeypatch):
    monkeypatch.setattr("syncattn_fairseq.data.splitters.find_spec", lambda name: None)
    Path("text.zh").write_text("我看见狗。\n", "utf-8")
    assert parse(text="text.zh") == 1
    assert "pip install 'syncattn-fairseq[chinese]'\n" in capsys.readouterr().err
    assert not Path("heads").exists() and not Path("heads.shards").exists()
    with pytest.raises(SystemExit):
        main(["--input=text.fr", "--output=heads", "--lang=fr", "--splitter=uax29"])
    assert "--splitter needs --spans" in capsys.readouterr().err


def test_conllu_of_raw_sentences_has_their_text_and_comes_back(folder, capsys):
    assert parse("--conllu=conllu", "--labels=labels") == 0
    table = Path("conllu").read_text().split("\n\n")[0].splitlines()
    assert table[1] == "# text = Va là, l'ami!"
    after = [row.rpartition("\t")[2] for row in table[2:]]
    assert after == ["_", "SpaceAfter=No", "_", "SpaceAfter=No", "SpaceAfter=No", "_"]
    made = {name: Path(name).read_text() for name in ("heads", "spans", "labels", "conllu")}
    again = ["--parsed=conllu", "--format=conllu", "--input=text.fr"]
    assert main([*again, "--output=h", "--spans=s", "--labels=l", "--conllu=c"]) == 0
    assert [Path(name[0]).read_text() for name in made] == [*made.values()]


# ---- a treebank, or what a parser wrote


def analysis(words, *surface):
    size = len(words.split())
    return Analysis(words.split(), [*range(size)], ["l"] * size, [*surface])


@pytest.mark.parametrize(
    "sentence, parsed, expected",
    [
        ("He said:  “Go”.", analysis("He said : `` Go '' ."), "He|said|:|“|Go|”|."),
        ("im Haus", analysis("in dem Haus", Surface("im", 0, 2)), "im|im|Haus"),
        ("Cannot go", analysis("Can not go", Surface("Cannot", 0, 2)), "Can|not|go"),
        ("in dem Haus", analysis("in dem Haus", Surface("im", 0, 2)), "in|dem|Haus"),
        ("Wait…", analysis("Wait . . ."), "Wait|…|…|…"),
        ("a\u00a0b", analysis("a b"), "a|b"),
        ("cafe\u0301", analysis("café"), "cafe\u0301"),
        (" &amp; x", analysis("& x"), "&amp;|x"),
        (" a", analysis("\u200b a"), "a|a"),
        ("ab", analysis("a b \u200b", Surface("ab", 0, 2)), "ab|ab|ab"),
        ("R&D's", analysis("R&amp;D &apos;s"), "R&D|'s"),
    ],
)
def test_a_parsers_words_are_found_in_the_sentence(sentence, parsed, expected):
    found = place_words(sentence, parsed)
    assert [sentence[begin:end] for begin, end in found.spans] == expected.split("|")
    assert (found.words, found.heads) == (parsed.words, parsed.heads)
    check_spans(found.spans, len(sentence))


def test_other_sentences_have_no_spans():
    assert place_words("the dog", analysis("the cat")) is None
    assert place_words(" ", analysis("\u200b")) is None


pieces = st.sampled_from(["a", "Bc", "…", "“", "é", "e\u0301", "\u200b", "&amp;", "ﬁ", "3"])


@given(st.lists(st.tuples(pieces, st.sampled_from(["", " ", "\u00a0 "])), min_size=1), st.data())
def test_found_spans_are_always_in_order(parts, data):
    sentence = "".join(text + space for text, space in parts)
    words = [text for text, _ in parts]
    joined = data.draw(st.integers(0, len(words) - 1))
    surface = [Surface("".join(words[joined : joined + 2]), joined, joined + 2)]
    parsed = analysis("", *(surface if joined + 2 <= len(words) else []))
    parsed.words.extend(words)
    parsed.heads.extend(range(len(words)))
    found = place_words(sentence, parsed)
    if any(word != "\u200b" for word in words):
        assert found is not None and len(found.spans) == len(words)
        check_spans(found.spans, len(sentence))


def test_lines_and_sentences_match_by_their_characters():
    lines = ["Don't go.", "left out", "", "in dem Haus"]
    analyses = [analysis("Do n't go ."), analysis("in dem Haus", Surface("im", 0, 2))]
    found = [*match_parses(lines, analyses, "file", raw=True)]
    assert [isinstance(each, BadParse) for each in found] == [False, True, True, False]
    assert found[0].spans == [(0, 2), (2, 5), (6, 8), (8, 9)]


def test_ranges_are_written_and_read_as_they_were():
    where = ("Im Zug.", [(0, 2), (0, 2), (3, 6), (6, 7)])
    text = format_conllu(["In", "dem", "Zug", "."], [3, 3, 0, 3], ["l"] * 4, None, 1, where)
    rows = [line.split("\t") for line in text.splitlines()[2:-1]]
    assert [row[0] for row in rows] == ["1-2", "1", "2", "3", "4"]
    assert [row[-1] for row in rows] == ["_", "_", "_", "SpaceAfter=No", "_"]
    [read] = FORMATS["conllu"](text.splitlines(), "file")
    assert read.surface == [Surface("Im", 0, 2)]
    assert place_words(where[0], read).spans == where[1]


# ---- parsers


def test_a_parser_without_a_tokenizer_reads_the_words_of_the_splitter():
    found = Chain().parse_raw(TEXT, "elision")
    assert [one and one.words for one in found] == [WORDS[0], None, WORDS[2], None]
    assert found[0].spans == [(0, 2), (3, 5), (5, 6), (7, 9), (9, 12), (12, 13)]
    assert Chain()([["a"]])[0].spans == ()


def test_spacy_splits_with_its_own_tokenizer(tmp_path):
    spacy = pytest.importorskip("spacy", reason="spaCy is an extra")
    nlp = spacy.blank("en")
    parser = nlp.add_pipe("parser")
    parser.add_label("dep")
    nlp.initialize()
    nlp.to_disk(tmp_path / "model")
    source = find_parser(f"spacy:{tmp_path / 'model'}")
    assert source.splitting_files() == []
    sentence = "I can't 😀  go. "
    [tokens, blank] = source.open().split([sentence, " "], "no splitter")
    assert tokens[0] == ["I", "ca", "n't", "😀", "go", "."]
    assert [sentence[begin:end] for begin, end in tokens[1]] == tokens[0]
    assert blank == ([], [])


#: Words of Stanza that are several: with a surface of their own, and as parts of their surface.
MULTIWORD = {"zum": ["zu", "dem"], "cannot": ["can", "not"]}


class Tokenizer:
    """Stands for Stanza's pipeline: words at spaces, and some are several.

    Paragraphs are sentences, as under ``tokenize_no_ssplit``. Documents are Stanza's own.
    """

    def __init__(self, *args, **options):
        self.asked, self.args, self.options = [], args, options

    def __call__(self, text):
        from stanza.models.common.doc import Document

        self.asked.append(text)
        if "fail" in text:
            raise AssertionError("a fault of Stanza")
        sentences = []
        for begin, part in ((m.start(), m[0]) for m in re.finditer(r"[^\n]+", text)):
            rows, number = [], 1
            for word in re.finditer(r"\S+", part):
                place = f"start_char={begin + word.start()}|end_char={begin + word.end()}"
                forms = MULTIWORD.get(word[0], [word[0]])
                if len(forms) == 2:
                    ids = (number, number + 1)
                    rows.append({"id": ids, "text": word[0], "misc": place})
                    place = ""
                for form in forms:
                    rows.append({"id": (number,), "text": form, "misc": place})
                    number += 1
            if rows:
                sentences.append(rows)
        return Document(sentences, text)


@pytest.fixture
def stanza(tmp_path, monkeypatch):
    """A parser with files in the place of Stanza's models, and all pipelines that it opens."""
    opened = []

    def open_pipeline(*args, **options):
        opened.append(Tokenizer(*args, **options))
        return opened[-1]

    monkeypatch.setattr("stanza.Pipeline", open_pipeline)
    parser = object.__new__(StanzaParser)
    parser.models, parser.device, parser.tokenizer = StanzaModels("de", str(tmp_path)), "cpu", None
    (tmp_path / "de" / "tokenize").mkdir(parents=True)
    torch.save({}, tmp_path / "de" / "tokenize" / "gsd.pt")
    return parser, opened


def test_stanza_gets_paragraphs_and_splits_no_sentences(stanza, tmp_path):
    parser, opened = stanza
    (tmp_path / "de" / "mwt").mkdir()
    torch.save({}, tmp_path / "de" / "mwt" / "gsd.pt")
    for _ in range(2):
        parser.split(["Er geht. Sie nicht.", "Zug"], "no splitter")
    [pipeline] = opened
    assert pipeline.args == ("de",)
    assert pipeline.options["processors"] == "tokenize,mwt"
    assert pipeline.options["tokenize_no_ssplit"] is True
    assert pipeline.options["download_method"] is None
    assert (pipeline.options["dir"], pipeline.options["device"]) == (str(tmp_path), "cpu")
    assert pipeline.asked == ["Er geht. Sie nicht.\n\nZug"] * 2


def test_words_of_a_token_share_its_surface_or_are_its_parts(stanza):
    parser, _ = stanza
    [(words, spans)] = parser.split(["I cannot zum 😀 x"], "no splitter")
    assert words == ["I", "can", "not", "zu", "dem", "😀", "x"]
    assert spans == [(0, 1), (2, 5), (5, 8), (9, 12), (9, 12), (13, 14), (15, 16)]


def test_stanzas_tokens_are_words_with_spans(stanza):
    parser, opened = stanza
    sentences = ["Er geht zum Zug", " ", "Zug  da", ""]
    found = parser.split(sentences, "no splitter")
    assert [words for words, _ in found] == [
        *(["Er", "geht", "zu", "dem", "Zug"], [], ["Zug", "da"], [])
    ]
    assert found[0][1] == [(0, 2), (3, 7), (8, 11), (8, 11), (12, 15)]
    assert found[2][1] == [(0, 3), (5, 7)]
    assert len(opened[0].asked) == 1
    assert parser.split([" ", ""], "no splitter") == [([], []), ([], [])]


def test_a_sentence_on_which_stanzas_tokenizer_fails_is_split_by_rule(stanza):
    parser, _ = stanza
    found = parser.split(["Er zum", "fail, da"], "uax29")
    assert [words for words, _ in found] == [["Er", "zu", "dem"], ["fail", ",", "da"]]


def test_without_its_tokenizers_model_stanza_reads_the_words_of_the_splitter(stanza, tmp_path):
    parser, opened = stanza
    assert [path.name for path in parser.models.splitting_files()] == ["gsd.pt"]
    (tmp_path / "de" / "mwt").mkdir()
    (tmp_path / "de" / "mwt" / "gsd.pt").touch()
    assert len(parser.models.splitting_files()) == 2
    (tmp_path / "de" / "tokenize" / "gsd.pt").unlink()
    assert parser.models.splitting_files() is None
    assert parser.split(["Er, zum"], "uax29")[0][0] == ["Er", ",", "zum"]
    assert opened == []


def test_a_damaged_tokenizer_of_stanza_is_named(tmp_path):
    (tmp_path / "de" / "tokenize").mkdir(parents=True)
    path = tmp_path / "de" / "tokenize" / "gsd.pt"
    path.write_bytes(b"no model")
    models = StanzaModels("de", str(tmp_path))
    with pytest.raises(DataError, match="gsd.pt: the file is not a Stanza model"):
        stanza_parser._open_tokenizer(models, None)


def test_real_models_parse_raw_sentences(stanza_models):
    parser = find_parser(f"stanza:en:{stanza_models}").open()
    [found] = parser.parse_raw(["the man sees the dog."], "uax29")
    assert found.words == ["the", "man", "sees", "the", "dog", "."]
    assert found.heads == parser([found.words])[0].heads
    assert found.spans[-1] == (20, 21)


# ---- parses of a whole corpus


def test_sentences_are_found_anywhere_by_their_characters(folder, capsys):
    """One file for all parts of a corpus, in another order and split otherwise."""
    Path("train.en").write_text("don't go .\n\nim Haus\nnew\ngo\ngo\ngo\n", "utf-8")
    rows = [("go", 1), ("Do n't go .", 4), ("valid only", 2), ("in dem Haus", 3), ("go", 1)]
    tables = []
    for text, size in rows:
        words = text.split()
        where = ("im Haus", [(0, 2), (0, 2), (3, 7)]) if size == 3 else None
        label = "x" if tables else "first"
        tables.append(format_conllu(words, range(size), [label] * size, where=where))
    Path("all.conllu").write_text("".join(tables), "utf-8")
    argv = ["--input=train.en", "--output=heads", "--labels=labels", "--format=conllu"]
    assert main([*argv, "--parsed=all.conllu", "--anywhere"]) == 0
    assert [*read_heads("heads")] == [[0, 1, 2], None, [0, 1], None, [0], [0], [0]]
    assert Path("labels").read_text().splitlines()[4:] == ["first", "x", "x"]
    assert "empty line: 1, left out by the parser: 1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--input=train.en", "--output=h", "--lang=en", "--anywhere"])
    assert "--anywhere needs --parsed" in capsys.readouterr().err
    spans = ["--parsed=all.conllu", "--anywhere", "--spans=spans", "--format=conllu"]
    assert main(["--input=train.en", "--output=h", *spans]) == 0
    assert [*read_spans("spans")][2] == [(0, 2), (0, 2), (3, 7)]


# ---- Stanza's JSON

WORD = {"id": 1, "text": "Im", "head": 0, "deprel": "root", "start_char": 0}


def read_json(text):
    return [*FORMATS["stanza-json"](text.splitlines(), "file")]


@pytest.mark.parametrize("indent", [None, 2])
def test_documents_of_stanza_are_read(indent):
    token = {"id": [1, 2], "text": "Im"}
    first = [token, WORD | {"text": "In", "head": 2}, WORD | {"id": [2], "text": "dem"}]
    second = [{"id": 1, "text": "ohne"}]
    text = "".join(json.dumps(each, indent=indent) + "\n" for each in ([first, second], [], [[]]))
    assert read_json(text) == [
        Analysis(["In", "dem"], [2, 0], ["root", "root"], [Surface("Im", 0, 2)]),
        Analysis(["ohne"]),
        Analysis([], []),
    ]


def test_what_stanza_writes_is_read():
    stanza = pytest.importorskip("stanza.models.common.doc")
    rows = [{"id": (1, 2), "text": "Im"}, WORD | {"text": "In"}, WORD | {"id": 2, "head": 1}]
    document = stanza.Document([rows])
    for text in (str(document), json.dumps(document.to_dict())):
        [found] = read_json(text)
        assert (found.heads, found.surface) == ([0, 1], [Surface("Im", 0, 2)])


@pytest.mark.parametrize(
    "text, fault",
    [
        ("{}", "file:1: the document has no end"),
        ("\n[[", "file:2: the document has no end"),
        ("[1]", "not a document of Stanza .*1' is not of the type list"),
        ("[[1]]", "'1' is not of the type dict"),
        ('[[{"id": 2, "text": "a"}]]', r"the word \[2\] follows word 0"),
        ('[[{"id": true, "text": "a"}]]', "'True' is not of the type int"),
        ('[[{"id": [1, 2], "text": "a"}, {"id": 1, "text": "a"}]]', "ends after word 1"),
        ('[[{"id": [2, 3], "text": "a"}]]', "the token 2-3 follows word 0"),
        ('[[{"id": 1, "text": 1}]]', "'1' is not of the type str"),
        ('[[{"id": 1}]]', "KeyError"),
        ("[" * 9999 + "]", "RecursionError"),
        ("[x]", "JSONDecodeError"),
    ],
)
def test_what_is_not_stanzas_is_told(text, fault):
    with pytest.raises(DataError, match=fault):
        read_json(text)


def test_stanza_has_some_languages_by_another_code(tmp_path):
    (tmp_path / "zh-hans" / "tokenize").mkdir(parents=True)
    (tmp_path / "zh-hans" / "tokenize" / "gsd.pt").touch()
    models = StanzaModels("zh", str(tmp_path))
    assert [path.parts[-3] for path in models.splitting_files()] == ["zh-hans"]
    (tmp_path / "zh" / "tokenize").mkdir(parents=True)
    assert models.code == "zh" and models.splitting_files() is None
    assert StanzaModels("de", str(tmp_path)).code == "de"


@pytest.mark.parametrize(
    "spans, reason",
    [
        ([(0, 2)], "words differ"),
        ([(0, 2), (1, 3)], "spans out of order"),
        ([(0, 2), (3, 9)], "span out of range"),
    ],
)
def test_spans_that_are_not_in_the_sentence_are_no_parse(tmp_path, spans, reason):
    with open_writer({"heads": tmp_path / "heads", "spans": tmp_path / "spans"}) as writer:
        found = Parse([0, 1], ["l", "l"], (), ["ab", "c"], spans)
        writer.write(found.words, found, "ab c")
        writer.write(found.words, found._replace(spans=[(0, 2), (3, 4)]), "ab c")
    assert writer.report.empty == {reason: 1}
    assert (tmp_path / "spans").read_text() == "\n0-2 3-4\n"


def test_other_models_of_a_tokenizer_make_parses_stale(tmp_path):
    (tmp_path / "de" / "tokenize").mkdir(parents=True)
    path = tmp_path / "de" / "tokenize" / "gsd.pt"
    path.touch()
    for kind in ("tagger", "parser"):
        (tmp_path / f"de_{kind}.pt").touch()
    models = StanzaModels("de", str(tmp_path))
    assert str(path) in Manifest.describe("", [], models, splitter="uax29").models
    assert str(path) not in Manifest.describe("", [], models).models
