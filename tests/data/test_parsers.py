"""Stanza, with models that were trained here, called as the commands call it."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syncattn_fairseq.data import parsers
from syncattn_fairseq.data.errors import DataError
from syncattn_fairseq.data.parsers import Parser, open_parser
from syncattn_fairseq.data.parses import check_tree, read_heads


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


def test_heads_and_labels_of_unseen_sentences_are_mostly_right(
    parser: Parser, stanza_models: Path
) -> None:
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
def test_a_parse_is_a_tree_over_the_words_as_they_are(
    parser: Parser, sentences: list[list[str]]
) -> None:
    parses = parser(sentences)
    for parse, sentence in zip(parses, sentences, strict=True):
        assert (parse is None) == (sentence == [] or "" in sentence)
        if parse is not None:
            assert len(parse.heads) == len(parse.labels) == len(sentence)
            check_tree(parse.heads)


def test_order_is_kept_whatever_is_parsed_together(
    parser: Parser, stanza_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = read_words(stanza_models / "valid.en")
    alone = [parser([sentence])[0] for sentence in sentences]
    assert len({str(parse) for parse in alone}) > 5
    assert parser(sentences) == alone
    assert parser(sentences[::-1]) == alone[::-1]
    monkeypatch.setattr(parsers, "_SENTENCES_AT_ONCE", 3)
    assert parser([[], *sentences, []]) == [None, *alone, None]


def test_too_long_a_sentence_costs_only_itself(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsers, "MAX_WORDS", 5)
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


def test_downloaded_models_are_found(downloaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [["the", "old", "man", "sleeps", "."], []]
    parses = open_parser(f"stanza:en:{downloaded}")(sentences)
    assert parses[0] is not None and len(parses[0].heads) == 5 and parses[1] is None
    monkeypatch.setattr("stanza.resources.common.DEFAULT_MODEL_DIR", str(downloaded))
    assert open_parser("stanza:en")(sentences) == parses


@pytest.mark.parametrize("spec", ["", "en", "stanza", "stanza:", "corenlp:en"])
def test_unknown_parsers_are_named(spec: str) -> None:
    with pytest.raises(DataError) as caught:
        open_parser(spec)
    assert repr(spec) in str(caught.value)
    assert "stanza:LANG or stanza:LANG:DIR" in str(caught.value)


def test_missing_models_say_how_to_get_them(
    downloaded: Path, stanza_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_without_stanza_it_is_only_missed_when_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "stanza", None)
    spec = importlib.util.spec_from_file_location("syncattn_fairseq.data.fresh", parsers.__file__)
    assert spec is not None and spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    with pytest.raises(DataError, match=r"pip install 'syncattn-fairseq\[parse\]'"):
        fresh.open_parser("stanza:en")
