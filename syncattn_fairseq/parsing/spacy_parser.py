"""The parsers of spaCy, including GiNZA for Japanese, on given words."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from ..base.errors import BadParse, DataError
from .parser import Morphology, Parse, Parser, ParserSource, Sentences, Tokens, parse_in_halves

#: The pipeline components that set trees, tags, lemmas and features. Other components are removed,
#: since they may join words, as GiNZA's do.
PARTS = (
    *("tok2vec", "transformer", "curated_transformer", "tagger", "morphologizer"),
    *("attribute_ruler", "lemmatizer", "trainable_lemmatizer", "parser"),
)
#: Label of the second and further roots of a sentence, which are attached to the first root.
FURTHER_ROOT = "parataxis"

_SENTENCES_AT_ONCE = 1_000


@dataclass(frozen=True)
class SpacyModel(ParserSource):
    """An installed spaCy model, given by its package's name or its folder."""

    about: ClassVar = "spaCy, with any model, such as GiNZA's ja_ginza"
    specs: ClassVar[tuple[str, ...]] = ("MODEL",)

    model: str

    @classmethod
    def from_options(cls, options: Namespace) -> Self:
        """Raise `DataError`: the model is named in ``--parser spacy:MODEL``, not by an option."""
        raise DataError("--parser spacy: name a model, as in --parser spacy:ja_ginza")

    @classmethod
    def from_spec(cls, spec: str) -> SpacyModel | None:
        """Make the parser for the model named after ``spacy:``; None without a model."""
        return cls(spec) if spec else None

    @property
    def name(self) -> str | Path:
        """The package name or the folder of the model; `DataError` if neither exists."""
        if _spacy().util.is_package(self.model):
            return self.model
        if Path(self.model).is_dir():
            return Path(self.model).resolve()
        raise DataError(
            f"{self.model}: this spaCy model is not installed; install it with 'pip install "
            f"{self.model.replace('_', '-')}' or 'python -m spacy download {self.model}'"
        )

    def files(self) -> list[Path]:
        """List all files of the model, for checksums."""
        name = self.name
        folder = name if isinstance(name, Path) else _spacy().util.get_package_path(name)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return [path for path in files if "__pycache__" not in path.parts]

    def splitting_files(self) -> list[Path]:
        """Return an empty list: the model that parses also splits sentences into words."""
        return []

    def describe(self) -> dict[str, str]:
        """Return the names of the parser and the model, and the version of spaCy."""
        return {"parser": "spacy", "model": self.model, "spacy": str(_spacy().__version__)}

    def open(self, worker: int | None = None) -> Parser:
        """Load the model; the parser is the same in every process."""
        return SpacyParser(self)


class SpacyParser(Parser):
    """Parser that runs a spaCy pipeline on words, and takes each line as one sentence.

    spaCy's parser also splits text into sentences: by default, GiNZA gives 2 % of a corpus's
    sentences two or more roots. Told that there is only one sentence, it finds a head for all words
    but one. Any further roots are attached to the first one, as ``parataxis``.
    """

    def __init__(self, source: SpacyModel) -> None:
        try:
            self.pipeline = _spacy().load(source.name)
        except (OSError, ValueError, ImportError) as error:
            raise DataError(f"{source.model}: spaCy cannot load this model: {error}") from error
        for name in self.pipeline.pipe_names:
            if name not in PARTS:
                self.pipeline.remove_pipe(name)
        if "parser" not in self.pipeline.pipe_names:
            raise DataError(f"{source.model}: this spaCy model has no parser; choose another model")

    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """Parse the sentences in blocks of a thousand."""
        starts = range(0, len(sentences), _SENTENCES_AT_ONCE)
        blocks = (range(len(sentences))[start : start + _SENTENCES_AT_ONCE] for start in starts)
        return parse_in_halves(self._parse, sentences, blocks)

    def split(self, sentences: Sequence[str], splitter: str) -> list[Tokens]:
        """Split raw sentences with the tokenizer of the spaCy model; ``splitter`` is not used."""
        return [_read_tokens(self.pipeline.make_doc(sentence)) for sentence in sentences]

    def _parse(self, sentences: Sentences) -> Iterator[Parse | BadParse]:
        from spacy.tokens import Doc

        def document(words: Sequence[str]) -> Doc:
            starts: list[bool | int | None] = [n == 0 for n in range(len(words))]
            return Doc(self.pipeline.vocab, words=list(words), sent_starts=starts)

        return map(_parse, self.pipeline.pipe(map(document, sentences)))


def _read_tokens(document: Any) -> Tokens:
    words = [word for word in document if not word.is_space]
    return [w.text for w in words], [(w.idx, w.idx + len(w.text)) for w in words]


def _parse(document: Any) -> Parse:
    heads = [0 if word.head.i == word.i else word.head.i + 1 for word in document]
    labels = ["root" if word.dep_ == "ROOT" else word.dep_ or "dep" for word in document]
    first = heads.index(0)
    for index in range(first + 1, len(heads)):
        if heads[index] == 0:
            heads[index], labels[index] = first + 1, FURTHER_ROOT
    known = (
        Morphology(*(value or "_" for value in (w.lemma_, w.pos_, w.tag_, str(w.morph))))
        for w in document
    )
    return Parse(heads, labels, tuple(known))


def _spacy() -> Any:
    try:
        import spacy
    except ImportError:
        raise DataError(
            "this parser needs spaCy; pip install 'syncattn-fairseq[spacy]', and for GiNZA "
            "'syncattn-fairseq[ginza]'"
        ) from None
    return spacy
