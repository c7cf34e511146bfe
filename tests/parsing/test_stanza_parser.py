import gc
import importlib.util
import json
import pickle
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.cli import parse as command
from syncattn_fairseq.data.parses import check_tree, read_heads
from syncattn_fairseq.parsing import parser as parser_module
from syncattn_fairseq.parsing import stanza_parser
from syncattn_fairseq.parsing.parser import FAILED, Parser
from syncattn_fairseq.parsing.parsers import open_parser
from syncattn_fairseq.parsing.stanza_parser import StanzaModels, StanzaParser


@pytest.fixture(scope="module", autouse=True)
def no_network() -> Iterator[None]:
    """Any look at the network fails, and fails the test that caught the failure, too."""
    looks: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        looks.append(arguments)
        raise OSError("a test needs no network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", refuse)
        patch.setattr(socket.socket, "connect", refuse)
        yield
    assert looks == []


@pytest.fixture(scope="module")
def parser(stanza_models: Path) -> Parser:
    return open_parser(f"stanza:en:{stanza_models}")


def read_words(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text("utf-8").splitlines()]


def test_heads_and_labels_of_unseen_sentences_are_mostly_right(parser, stanza_models):
    sentences = read_words(stanza_models / "test.en")
    heads = list(read_heads(stanza_models / "test.heads.en"))
    labels = read_words(stanza_models / "test.labels.en")
    right_heads = right_labels = words = 0
    for parse, gold_heads, gold_labels in zip(parser(sentences), heads, labels, strict=True):
        assert parse is not None and gold_heads is not None
        pairs = list(zip(parse.heads, gold_heads, strict=True))
        right_heads += sum(head == gold for head, gold in pairs)
        pairs_of_labels = zip(parse.labels, gold_labels, strict=True)
        right_labels += sum(label == gold for label, gold in pairs_of_labels)
        words += len(pairs)
    assert right_heads > 0.6 * words  # by chance one in ten
    assert right_labels > 0.6 * words


# Words hold anything but what ends a word or a line, and what Stanza's own formats reserve.
words = st.sampled_from(
    ["the", "_", "|", "a=b", "MWT=Yes", "don't", "\u3000", "a\u3000b", "\u2028"]
)
words |= st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \n"), max_size=4)


@given(st.lists(st.lists(words, max_size=9), max_size=7))
@example([])
@example([[], ["a\u3000b", "\u00a0", "\u2028c", "sees", "x\ty"], [], ["", "a"], ["a"]])
@settings(max_examples=30)
def test_a_parse_is_a_tree_over_the_words_as_they_are(parser, sentences):
    parses = parser(sentences)
    for parse, sentence in zip(parses, sentences, strict=True):
        assert (parse is None) == (sentence == [] or "" in sentence)
        if parse is not None:
            assert len(parse.heads) == len(parse.labels) == len(sentence)
            check_tree(parse.heads)


def test_order_is_kept_whatever_is_parsed_together(parser, stanza_models, monkeypatch):
    sentences = read_words(stanza_models / "valid.en")
    alone = [parser([sentence])[0] for sentence in sentences]
    assert len({str(parse) for parse in alone}) > 5
    assert parser(sentences) == alone
    assert parser(sentences[::-1]) == alone[::-1]
    monkeypatch.setattr(stanza_parser, "_WORDS_AT_ONCE", 40)
    assert parser([[], *sentences, []]) == [None, *alone, None]


def test_the_trees_are_those_of_the_plain_pipeline(parser, stanza_models):
    import stanza

    catalogue = stanza_models / "resources.json"
    catalogue.write_text("{}")
    plain = stanza.Pipeline(
        "en",
        dir=str(stanza_models),
        package=None,
        processors="tokenize,pos,depparse",
        download_method=None,
        logging_level="ERROR",
        allow_unknown_language=True,
        tokenize_pretokenized=True,
        pos_model_path=str(stanza_models / "en_tagger.pt"),
        depparse_model_path=str(stanza_models / "en_parser.pt"),
        depparse_pretagged=True,
        depparse_resolve_head_constraints=False,
    )
    catalogue.unlink()
    sentences = read_words(stanza_models / "train.en")
    for sentence, parse in zip(plain(sentences).sentences, parser(sentences), strict=True):
        assert parse is not None
        assert parse.heads == [word.head for word in sentence.words]
        assert parse.labels == [word.deprel for word in sentence.words]
        assert [word.upos for word in parse.morphology] == [word.upos for word in sentence.words]


def test_blocks_hold_every_sentence_and_short_ones_go_with_short_ones(monkeypatch):
    monkeypatch.setattr(stanza_parser, "_WORDS_AT_ONCE", 6)
    sentences = [["w"] * length for length in (3, 1, 9, 2, 3, 1)]
    assert list(stanza_parser._cut_blocks(sentences)) == [[1, 5, 3], [0, 4], [2]]


def test_a_sentence_on_which_stanza_raises_costs_only_itself(parser):
    sentence = ["the", "old", "man", "sleeps", "."]
    sentences = [sentence, ["an", "", "empty", "word"], sentence[1:], sentence]
    found = dict(parser.analyse(sentences))
    assert isinstance(found[1], BadParse) and found[1].reason == FAILED
    assert [found[i] for i in (0, 2, 3)] == parser([sentence, sentence[1:], sentence])
    assert gc.isenabled()


def test_too_long_a_sentence_costs_only_itself(parser, monkeypatch):
    monkeypatch.setattr(parser_module, "MAX_WORDS", 5)
    longest = ["the", "old", "man", "sleeps", "."]
    found, missing, again = parser([longest, [*longest, "."], longest])
    assert found is not None and missing is None and again == found


@pytest.fixture
def downloaded(stanza_models: Path, tmp_path: Path) -> Path:
    """The same models as ``stanza.download`` lays models out."""
    packages = {"tokenize": "tiny", "pos": "tiny", "lemma": "identity", "depparse": "tiny"}
    catalogue = {"lang_name": "English", "packages": {"default": packages}}
    catalogue |= {name: {"tiny": {}} for name in ("tokenize", "pos", "depparse")}
    (tmp_path / "resources.json").write_text(json.dumps({"en": catalogue}))
    for kind, name in (("pos", "tagger"), ("depparse", "parser")):
        (tmp_path / "en" / kind).mkdir(parents=True)
        (tmp_path / "en" / kind / "tiny.pt").symlink_to(stanza_models / f"en_{name}.pt")
    return tmp_path


def test_downloaded_models_are_found(downloaded, monkeypatch):
    sentences = [["the", "old", "man", "sleeps", "."], []]
    parses = open_parser(f"stanza:en:{downloaded}")(sentences)
    assert parses[0] is not None and len(parses[0].heads) == 5 and parses[1] is None
    monkeypatch.setattr("stanza.resources.common.DEFAULT_MODEL_DIR", str(downloaded))
    assert open_parser("stanza:en")(sentences) == parses


def test_missing_models_say_how_to_get_them(downloaded, stanza_models, tmp_path, monkeypatch):
    def message(spec: str) -> str:
        with pytest.raises(DataError) as caught:
            open_parser(spec)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    nowhere = tmp_path / "nowhere"
    told = f"stanza.download('en', model_dir='{nowhere}')"
    assert message(f"stanza:en:{nowhere}").startswith(f"{nowhere}: no Stanza models for 'en'")
    assert told in message(f"stanza:en:{nowhere}")
    nowhere.mkdir()
    (nowhere / "en_parser.pt").symlink_to(stanza_models / "en_parser.pt")
    assert told in message(f"stanza:en:{nowhere}")

    monkeypatch.setattr("stanza.resources.common.DEFAULT_MODEL_DIR", str(downloaded))
    assert "stanza.download('de')" in message("stanza:de")
    (downloaded / "en" / "pos" / "tiny.pt").unlink()
    assert "stanza.download('en')" in message("stanza:en")


@pytest.mark.parametrize("content", [b"garbage", pickle.dumps(print)])
def test_models_that_are_not_plain_data_are_refused(stanza_models, tmp_path, capsys, content):
    models, text, heads = (tmp_path / name for name in ("models", "text.en", "text.heads.en"))
    models.mkdir()
    shutil.copy(stanza_models / "en_parser.pt", models)
    bad = models / "en_tagger.pt"
    bad.write_bytes(content)
    text.write_text("a b .\n")
    words = ["--lang=en", "--stanza-dir", models, "--input", text, "--output", heads, "--workers=1"]
    assert command.main([*map(str, words)]) == 1
    assert f"error: {bad}: not a model of Stanza, or one that would run" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "text.en"]


def test_models_of_something_else_are_refused(stanza_models, tmp_path):
    torch.save({"model": {}}, tmp_path / "en_tagger.pt")
    shutil.copy(stanza_models / "en_parser.pt", tmp_path)
    with pytest.raises(
        DataError, match=rf"^{tmp_path}/en_tagger\.pt, .*: Stanza cannot open it \("
    ):
        open_parser(f"stanza:en:{tmp_path}")


def test_models_can_be_named_one_by_one(parser, stanza_models):
    files = [stanza_models / "en_tagger.pt", stanza_models / "en_parser.pt"]
    models = StanzaModels("qq", tagger=str(files[0]), depparse=str(files[1]))
    assert models.files() == StanzaModels("en", str(stanza_models)).files() == files
    sentences = [["the", "old", "man", "sleeps", "."]]
    assert StanzaParser(models)(sentences) == parser(sentences)


def test_the_files_of_downloaded_models_are_known(downloaded):
    (downloaded / "en" / "ner").mkdir()
    (downloaded / "en" / "ner" / "unused.pt").touch()
    folder = downloaded / "en"
    expected = [folder / "pos" / "tiny.pt", folder / "depparse" / "tiny.pt"]
    assert StanzaModels("en", str(downloaded)).files() == expected
    with pytest.raises(DataError, match="no Stanza models for 'de'"):
        StanzaModels("de", str(downloaded)).files()


def test_without_stanza_it_is_only_missed_when_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "stanza", None)
    path = stanza_parser.__file__
    spec = importlib.util.spec_from_file_location("syncattn_fairseq.parsing.fresh", path)
    assert spec is not None and spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, fresh)
    spec.loader.exec_module(fresh)
    models = fresh.StanzaModels("en")
    for use in (lambda: open_parser("stanza:en"), models.files, models.describe):
        with pytest.raises(DataError, match=r"pip install 'syncattn-fairseq\[parse\]'"):
            use()
