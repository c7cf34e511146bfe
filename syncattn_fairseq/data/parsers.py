"""Parsers that are called from Python: words in, heads and labels out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from .errors import DataError

#: Longer sentences are not parsed: time and memory grow faster than the square of the length,
#: to 2 s and 0.4 GB for this many words on a CPU.
MAX_WORDS = 500

# Enough for batches of sentences of like length, few enough for the memory of a small machine.
_SENTENCES_AT_ONCE = 1000


class Parse(NamedTuple):
    """The dependency tree of one sentence.

    Attributes:
        heads: for each word the 1-based position of its head; 0 for the root.
        labels: the relation of each word to its head.
    """

    heads: list[int]
    labels: list[str]


class Parser(Protocol):
    """Whatever parses sentences that are cut into words already."""

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Parse | None]:
        """Parse any number of sentences.

        Args:
            sentences: the words of each, which may hold any character, spaces too.

        Returns:
            A tree over exactly the words of each sentence, in the order of the sentences; None
            where there is none: for an empty sentence, and for one that the parser cannot parse.
        """


def open_parser(spec: str) -> Parser:
    """Load a parser; nothing is downloaded.

    Args:
        spec: ``stanza:LANG`` takes Stanza's models from where Stanza keeps them,
            ``stanza:LANG:DIR`` from a directory. Either ``stanza.download`` has filled it, or it
            holds models of one's own, ``LANG_tagger.pt`` and ``LANG_parser.pt``, trained without
            pretrained vectors, character language models and lemmas.

    Raises:
        DataError: there is no such parser, it is not installed or its models are not there.
    """
    name, _, rest = spec.partition(":")
    language, _, directory = rest.partition(":")
    if name != "stanza" or not language:
        raise DataError(
            f"{spec!r} names no parser; expected stanza:LANG or stanza:LANG:DIR, as in stanza:en"
        )
    return StanzaParser(language, directory or None)


class StanzaParser:
    """Stanza's tagger and parser (Qi et al. 2020), on a GPU where there is one.

    Sentences of more than ``MAX_WORDS`` words, or with an empty word, are not parsed.

    Args:
        language: Stanza's code of the language.
        directory: of models, see ``open_parser``; None for Stanza's own.

    Raises:
        DataError: Stanza is not installed, or the models are not there.
    """

    def __init__(self, language: str, directory: str | None = None) -> None:
        try:
            import stanza.resources.common
        except ImportError:
            raise DataError("parsing needs Stanza; pip install 'syncattn-fairseq[parse]'") from None
        models = Path(directory or stanza.resources.common.DEFAULT_MODEL_DIR).expanduser()
        try:
            self.pipeline = _pipeline(language, models)
        except (FileNotFoundError, ValueError) as error:
            target = f", model_dir='{models}'" if directory else ""
            raise DataError(
                f"{models}: no Stanza models for {language!r}; get them with "
                f'python -c "import stanza; stanza.download({language!r}{target})", '
                f"or name your own {language}_tagger.pt and {language}_parser.pt"
            ) from error

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Parse | None]:
        """See ``Parser``."""
        parses: list[Parse | None] = [None] * len(sentences)
        # An empty sentence or word fails the whole call.
        indices = [
            index
            for index, words in enumerate(sentences)
            if words and all(words) and len(words) <= MAX_WORDS
        ]
        for start in range(0, len(indices), _SENTENCES_AT_ONCE):
            block = indices[start : start + _SENTENCES_AT_ONCE]
            document = self.pipeline([list(sentences[index]) for index in block])
            for index, parsed in zip(block, document.sentences, strict=True):
                words = parsed.words
                parses[index] = Parse([w.head for w in words], [w.deprel for w in words])
        return parses


def _pipeline(language: str, models: Path) -> Any:
    import stanza

    options = {
        "tokenize_pretokenized": True,
        "download_method": None,
        "logging_level": "ERROR",
        # Trees as the parser found them: only Stanza from 1.15 on would mend double subjects.
        "depparse_resolve_head_constraints": False,
    }
    own = {
        "pos_model_path": str(models / f"{language}_tagger.pt"),
        "depparse_model_path": str(models / f"{language}_parser.pt"),
    }
    if not all(Path(path).exists() for path in own.values()):
        return stanza.Pipeline(
            language, dir=str(models), processors="tokenize,pos,lemma,depparse", **options
        )
    with TemporaryDirectory() as catalogue:  # of the models that Stanza knows: none
        (Path(catalogue) / "resources.json").write_text("{}")
        return stanza.Pipeline(
            language,
            dir=catalogue,
            package=None,
            processors="tokenize,pos,depparse",
            allow_unknown_language=True,
            depparse_pretagged=True,  # lemmas are not needed
            **own,
            **options,
        )
