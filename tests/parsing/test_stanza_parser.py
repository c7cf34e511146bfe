import gc
import importlib.util
import json
import pickle
import shutil
import socket
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.cli import parse as command
from syncattn_fairseq.data.parses import check_tree
from syncattn_fairseq.parsing import parser as parser_module
from syncattn_fairseq.parsing import stanza_parser
from syncattn_fairseq.parsing.arborescence import find_best_heads
from syncattn_fairseq.parsing.parser import FAILED, Parser
from syncattn_fairseq.parsing.parsers import open_parser
from syncattn_fairseq.parsing.stanza_parser import StanzaModels
from tests.cli.errors import read_error


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
    sentences = read_words(stanza_models / "test.en")
    for sentence, parse in zip(plain(sentences).sentences, parser(sentences), strict=True):
        assert parse is not None
        assert parse.heads == [word.head for word in sentence.words]
        assert parse.labels == [word.deprel for word in sentence.words]
        assert [word.upos for word in parse.morphology] == [word.upos for word in sentence.words]


def random_scores(seed: int, size: int, root: float, tree: float) -> np.ndarray:
    """Log-probabilities; ``root`` makes roots likely, ``tree`` what a random tree has."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(size + 1, size + 1))
    scores[:, 0] += root
    for word in range(1, size + 1):
        scores[word, generator.integers(word)] += tree
    np.fill_diagonal(scores, -np.inf)
    scores -= np.log(np.exp(scores).sum(1, keepdims=True))
    return scores.astype(np.float32)


@pytest.mark.parametrize("root", [-2, 0, 3])
@pytest.mark.parametrize("tree", [0, 2, 9])
def test_the_faster_search_finds_the_tree_that_stanza_finds(root, tree):
    from stanza.models.common.chuliu_edmonds import chuliu_edmonds_one_root  # takes seconds

    for seed in range(12):
        scores = random_scores(seed, 3 + 3 * seed, root, tree)
        before = scores.copy()
        assert find_best_heads(scores) == chuliu_edmonds_one_root(scores)[1:].tolist()
        assert np.array_equal(scores, before)


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
    assert message(f"stanza:en:{nowhere}").startswith(
        f"{nowhere}: this folder has no Stanza models for 'en'"
    )
    assert told in message(f"stanza:en:{nowhere}")
    nowhere.mkdir()
    (nowhere / "en_parser.pt").symlink_to(stanza_models / "en_parser.pt")
    assert told in message(f"stanza:en:{nowhere}")

    monkeypatch.setattr("stanza.resources.common.DEFAULT_MODEL_DIR", str(downloaded))
    assert "stanza.download('de')" in message("stanza:de")
    (downloaded / "en" / "pos" / "tiny.pt").unlink()
    assert "stanza.download('en')" in message("stanza:en")


NOT_OURS = BytesIO()
torch.save({"model": {}}, NOT_OURS)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"garbage", "en_tagger.pt: the file is not a Stanza model, or would run"),
        (pickle.dumps(print), "en_tagger.pt: the file is not a Stanza model, or would run"),
        (NOT_OURS.getvalue(), "en_parser.pt: Stanza cannot load the file ("),
    ],
)
def test_models_of_something_else_are_refused(stanza_models, tmp_path, capsys, content, said):
    models, text, heads = (tmp_path / name for name in ("models", "text.en", "text.heads.en"))
    models.mkdir()
    shutil.copy(stanza_models / "en_parser.pt", models)
    (models / "en_tagger.pt").write_bytes(content)
    text.write_text("a b .\n")
    words = ["--lang=en", "--stanza-dir", models, "--input", text, "--output", heads, "--workers=1"]
    error = read_error(capsys, command.main([*map(str, words)]))
    assert error.startswith(f"error: {models}/en_tagger.pt") and said in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "text.en"]


def test_the_files_of_models_are_known(downloaded, stanza_models):
    files = [stanza_models / "en_tagger.pt", stanza_models / "en_parser.pt"]
    models = StanzaModels("qq", tagger=str(files[0]), depparse=str(files[1]))
    assert models.files() == StanzaModels("en", str(stanza_models)).files() == files
    (downloaded / "en" / "ner").mkdir()
    (downloaded / "en" / "ner" / "unused.pt").touch()
    folder = downloaded / "en"
    expected = [folder / "pos" / "tiny.pt", folder / "depparse" / "tiny.pt"]
    assert StanzaModels("en", str(downloaded)).files() == expected
    with pytest.raises(DataError, match="this folder has no Stanza models for 'de'"):
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
