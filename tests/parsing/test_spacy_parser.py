import sys
from pathlib import Path
from types import ModuleType

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli.parse import main
from syncattn_fairseq.parsing import spacy_parser
from syncattn_fairseq.parsing.parsers import open_parser
from syncattn_fairseq.parsing.spacy_parser import SpacyModel

SENTENCES = ["the old dog sleeps .", "the dog sees a cat .", "a cat sleeps"]
HEADS = [[3, 3, 4, 0, 4], [2, 3, 0, 5, 3, 3], [2, 3, 0]]


@pytest.fixture(scope="module", autouse=True)
def spacy() -> ModuleType:
    module: ModuleType = pytest.importorskip("spacy", reason="spaCy is an extra")
    return module


@pytest.fixture(scope="module")
def model(spacy: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser that has learnt three sentences by heart, and a part that joins words."""
    from spacy.training import Example

    nlp = spacy.blank("xx")
    nlp.add_pipe("parser", config={"min_action_freq": 1})
    examples = [
        Example.from_dict(
            nlp.make_doc(text),
            {
                "heads": [n if head == 0 else head - 1 for n, head in enumerate(heads)],
                "deps": ["ROOT" if head == 0 else "dep" for head in heads],
            },
        )
        for text, heads in zip(SENTENCES, HEADS, strict=True)
    ]
    optimiser = nlp.initialize(lambda: examples)
    for _ in range(60):
        nlp.update(examples, sgd=optimiser)
    nlp.add_pipe("merge_noun_chunks" if "merge_noun_chunks" in nlp.factory_names else "sentencizer")
    folder = tmp_path_factory.mktemp("spacy") / "model"
    nlp.to_disk(folder)
    return folder


def test_words_stay_as_they_are_given(model, tmp_path, capsys):
    text, heads = tmp_path / "text", tmp_path / "heads"
    text.write_text("".join(f"{sentence}\n" for sentence in [*SENTENCES, ""]))
    assert main(["--parser", f"spacy:{model}", "--input", str(text), "--output", str(heads)]) == 0
    assert heads.read_text().splitlines() == [*(" ".join(map(str, h)) for h in HEADS), ""]
    assert main(["--parser=spacy", "--input", str(text), "--output", str(heads)]) == 1
    assert "name a model, as in --parser spacy:ja_ginza" in capsys.readouterr().err


def test_two_sentences_on_a_line_are_one(model):
    [parse] = open_parser(f"spacy:{model}")([" ".join(SENTENCES).split()])
    assert parse is not None and parse.heads.count(0) == 1
    assert parse.labels[parse.heads.index(0)] == "root"


def test_a_further_root_hangs_on_the_first(spacy):
    words = ["yes", "no", "maybe"]
    document = spacy.tokens.Doc(
        spacy.blank("xx").vocab, words=words, heads=[0, 0, 2], deps=["ROOT", "x", "ROOT"]
    )
    parse = spacy_parser._parse(document)
    assert (parse.heads, parse.labels) == ([0, 1, 1], ["root", "x", "parataxis"])


def test_what_is_missing_is_named(tmp_path, monkeypatch, spacy, model):
    with pytest.raises(
        DataError,
        match="ja_none: this spaCy model is not installed; install it with 'pip install ja-none'",
    ):
        open_parser("spacy:ja_none")
    with pytest.raises(DataError, match="spaCy cannot load this model"):
        open_parser(f"spacy:{tmp_path}")
    spacy.blank("xx").to_disk(tmp_path / "blank")
    with pytest.raises(DataError, match="this spaCy model has no parser"):
        open_parser(f"spacy:{tmp_path / 'blank'}")
    assert model / "meta.json" in SpacyModel(str(model)).files()
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(DataError, match=r"pip install 'syncattn-fairseq\[spacy\]'"):
        open_parser(f"spacy:{model}")
