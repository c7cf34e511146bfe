"""The tagger and the parser of Stanza (Qi et al., 2020)."""

from __future__ import annotations

import gc
from argparse import Namespace
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

from ..base.errors import BadParse, DataError, shorten
from ..base.files import open_file
from ..data.spans import split_span
from .parser import (
    Morphology,
    Parse,
    Parser,
    ParserSource,
    Sentences,
    Tokens,
    parse_in_halves,
    split_by_rule,
)

# Enough for full batches, few enough for the memory of a small machine.
_WORDS_AT_ONCE = 20_000

# As in Stanza's own models; smaller batches, from models of one's own, leave a GPU idle.
_WORDS_IN_GPU_BATCH = 5_000

_PROCESSORS = ("pos", "lemma", "depparse")
_NEEDED = (*_PROCESSORS, "pretrain", "forward_charlm", "backward_charlm")
ALIASES = {"zh": "zh-hans", "no": "nb", "ku": "kmr", "se": "sme", "kv": "kpv"}
"""Stanza's codes of the languages for which it has another code, by the usual code."""
#: Stanza's processors that split sentences into tokens, and tokens into words.
_SPLITTING = ("tokenize", "mwt")


@dataclass(frozen=True)
class StanzaModels(ParserSource):
    """Stanza's models for a language, or your own; nothing is downloaded.

    The directory, by default Stanza's own, was filled by ``stanza.download``, or contains your own
    models, ``LANG_tagger.pt`` and ``LANG_parser.pt``, trained without pretrained vectors, character
    language models and lemmas. Your own tagger and parser can also be given one by one.
    """

    about: ClassVar = "Stanza, on a GPU if there is one"
    specs: ClassVar[tuple[str, ...]] = ("LANG", "LANG:DIR")
    options: ClassVar = {
        "lang": {
            "metavar": "LANG",
            "help": "with --parser stanza: language of the text, by Stanza's code, such as de",
        },
        "stanza_dir": {
            "type": Path,
            "metavar": "DIR",
            "help": "with --parser stanza: folder filled by stanza.download, or with your own "
            "models LANG_tagger.pt and LANG_parser.pt; nothing is ever downloaded (default: "
            "Stanza's own folder)",
        },
        "tagger": {
            "type": Path,
            "metavar": "FILE",
            "help": "with --depparse, in place of --stanza-dir: file of your own Stanza tagger",
        },
        "depparse": {
            "type": Path,
            "metavar": "FILE",
            "help": "with --tagger, in place of --stanza-dir: file of your own Stanza parser",
        },
    }
    needs: ClassVar[tuple[str, ...]] = ("lang",)

    language: str
    directory: str | None = None
    tagger: str | None = None
    depparse: str | None = None

    @classmethod
    def from_options(cls, options: Namespace) -> Self:
        """Make the parser for ``--lang``, and a folder or ``--tagger`` and ``--depparse``."""
        folder, tagger, depparse = options.stanza_dir, options.tagger, options.depparse
        if (tagger is None) != (depparse is None) or (tagger and folder):
            raise DataError("give --stanza-dir, or both --tagger and --depparse")
        for path in (folder, tagger, depparse):
            if path and not path.exists():
                raise DataError(f"{path}: no such file or directory")
        paths = (str(path.resolve()) if path else None for path in (folder, tagger, depparse))
        return cls(options.lang, *paths)

    @classmethod
    def from_spec(cls, spec: str) -> StanzaModels | None:
        """Make the parser for ``LANG`` or ``LANG:DIR``, after ``stanza:``; None without LANG."""
        language, _, directory = spec.partition(":")
        return cls(language, directory or None) if language else None

    @property
    def folder(self) -> Path:
        """The folder of the models, unless tagger and parser are given as files."""
        default = _stanza().resources.common.DEFAULT_MODEL_DIR
        return Path(self.directory or default).expanduser()

    @property
    def code(self) -> str:
        """The language code in Stanza's folders, such as ``zh-hans`` for ``zh``."""
        if (self.folder / self.language).is_dir():
            return self.language
        return ALIASES.get(self.language, self.language)

    @property
    def own(self) -> tuple[Path, Path] | None:
        """The files of your own tagger and parser; None if Stanza's models are used."""
        if self.tagger and self.depparse:
            return Path(self.tagger), Path(self.depparse)
        paths = [self.folder / f"{self.language}_{name}.pt" for name in ("tagger", "parser")]
        return (paths[0], paths[1]) if all(path.exists() for path in paths) else None

    def make_missing_error(self) -> DataError:
        """Return a `DataError` that explains how to get the language's models."""
        target = f", model_dir='{self.folder}'" if self.directory else ""
        return DataError(
            f"{self.folder}: this folder has no Stanza models for {self.language!r}; download "
            'the models with python -c "import stanza; '
            f'stanza.download({self.language!r}{target})", or name your own '
            f"{self.language}_tagger.pt and {self.language}_parser.pt"
        )

    def files(self) -> list[Path]:
        """List the files of the parsing models; raise `DataError` if there are none."""
        if self.own:
            return list(self.own)
        folder = self.folder / self.code
        paths = [path for kind in _NEEDED for path in sorted((folder / kind).glob("*.pt"))]
        if not paths:
            raise self.make_missing_error()
        return paths

    def splitting_files(self) -> list[Path] | None:
        """List the files of Stanza's models for word splitting; None if they are not installed."""
        folder = self.folder / self.code
        tokenizers, others = (sorted((folder / kind).glob("*.pt")) for kind in _SPLITTING)
        return tokenizers + others if tokenizers else None

    def describe(self) -> dict[str, str]:
        """Return the language, and the versions of Stanza and of PyTorch."""
        stanza = _stanza()
        import torch

        return {
            "parser": "stanza",
            "language": self.language,
            "stanza": stanza.__version__,
            "torch": str(torch.__version__),
        }

    def modules(self) -> list[str]:
        """Return the name of Stanza's pipeline module, slow to import."""
        return ["stanza.pipeline.core"]

    def open(self, worker: int | None = None) -> Parser:
        """Load the models into a parser.

        With several processes, each runs one thread, since processes scale and threads do not, and
        they share any GPUs.
        """
        if worker is None:
            return StanzaParser(self)
        import torch

        torch.set_num_threads(1)
        gpus = torch.cuda.device_count()
        return StanzaParser(self, f"cuda:{worker % gpus}" if gpus else None)


def _check_file(path: Path) -> None:
    """Raise `DataError` unless a model file is plain data: Stanza could run code in it."""
    import torch

    try:
        with open_file(path) as file:
            torch.load(file, map_location="cpu", weights_only=True)
    except (DataError, OSError):
        raise
    except Exception:
        raise DataError(
            f"{path}: the file is not a Stanza model, or would run code when loaded; download or "
            "train the model again"
        ) from None


class StanzaParser(Parser):
    """Parser that runs Stanza's pipeline on similarly long sentences, with a faster tree search.

    The trees are the same as the pipeline's. It runs on a GPU if there is one, or on ``device``.
    `DataError`: Stanza is not installed, or models are missing.
    """

    def __init__(self, models: StanzaModels, device: str | None = None) -> None:
        from . import arborescence  # imports numpy, which --help does not need

        for path in models.files():
            _check_file(path)
        try:
            self.pipeline = _load_pipeline(models, models.folder, device)
        except Exception as error:  # whatever a damaged model leads to
            if isinstance(error, FileNotFoundError) and not models.tagger:
                raise models.make_missing_error() from error
            named = ", ".join(map(str, models.files()))
            raise DataError(
                f"{named}: Stanza cannot load the file ({type(error).__name__}: "
                f"{shorten(error, 200)}); download or train the model again"
            ) from error
        self.models, self.device = models, device
        self.tokenizer: Any = None
        model = self.pipeline.processors["depparse"].trainer.model
        if hasattr(model, "forward_scores"):  # graph parsers, since Stanza 1.15
            model.predict = arborescence.make_predictor(model)

    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """Parse the sentences in blocks of similar length."""
        return parse_in_halves(self._parse, sentences, _cut_blocks(sentences))

    def split(self, sentences: Sequence[str], splitter: str) -> list[Tokens]:
        """Split raw sentences with Stanza's models if installed, else with ``splitter``."""
        if self.models.splitting_files() is None:
            return super().split(sentences, splitter)
        if self.tokenizer is None:
            self.tokenizer = _open_tokenizer(self.models, self.device)
        try:
            return _split(self.tokenizer, sentences)
        except Exception:  # Stanza fails on one of them
            return [self._split_alone(sentence, splitter) for sentence in sentences]

    def _split_alone(self, sentence: str, splitter: str) -> Tokens:
        try:
            return _split(self.tokenizer, [sentence])[0]
        except Exception:
            return split_by_rule(sentence, splitter)

    def _parse(self, sentences: Sentences) -> list[Parse]:
        collecting = gc.isenabled()
        gc.disable()  # it would check millions of objects again and again, all of them in use
        try:
            document = self.pipeline([list(words) for words in sentences])
            return [_parse(sentence.words) for sentence in document.sentences]
        finally:
            if collecting:
                gc.enable()


def _parse(words: Any) -> Parse:
    return Parse(
        [word.head for word in words],
        [word.deprel for word in words],
        [Morphology(*(v or "_" for v in (w.lemma, w.upos, w.xpos, w.feats))) for w in words],
    )


def _split(tokenizer: Any, sentences: Sequence[str]) -> list[Tokens]:
    """Split raw sentences into words with Stanza; blank lines separate them for Stanza."""
    found: list[Tokens] = [([], []) for _ in sentences]
    begins = [*accumulate((len(sentence) + 2 for sentence in sentences), initial=0)]
    if not any(sentence.strip() for sentence in sentences):
        return found
    text = "\n\n".join(sentences)
    for token in (token for part in tokenizer(text).sentences for token in part.tokens):
        number = bisect_right(begins, token.start_char) - 1
        span = token.start_char - begins[number], token.end_char - begins[number]
        forms = [word.text for word in token.words]
        words, spans = found[number]
        words += forms
        spans += split_span(span, sentences[number][span[0] : span[1]], forms)
    return found


def _cut_blocks(sentences: Sentences) -> Iterator[Sequence[int]]:
    """Yield blocks of the indices of sentences of similar length, short ones first."""
    block: list[int] = []
    for index in sorted(range(len(sentences)), key=lambda index: len(sentences[index])):
        if block and (len(block) + 1) * len(sentences[index]) > _WORDS_AT_ONCE:
            yield block
            block = []
        block.append(index)
    if block:
        yield block


def _stanza() -> Any:
    try:
        import stanza.resources.common
    except ImportError:
        raise DataError("parsing needs Stanza; pip install 'syncattn-fairseq[parse]'") from None
    return stanza


def _open_tokenizer(models: StanzaModels, device: str | None) -> Any:
    paths = models.splitting_files() or []
    for path in paths:
        _check_file(path)
    try:
        return _stanza().Pipeline(
            models.code,
            dir=str(models.folder),
            processors=",".join(dict.fromkeys(path.parent.name for path in paths)),
            tokenize_no_ssplit=True,
            download_method=None,
            logging_level="ERROR",
            device=device,
        )
    except Exception as error:  # whatever a damaged model leads to
        raise DataError(
            f"{', '.join(map(str, paths))}: Stanza cannot split sentences with these files "
            f"({type(error).__name__}: {shorten(error, 200)}); download the files again"
        ) from error


def _load_pipeline(models: StanzaModels, folder: Path, device: str | None) -> Any:
    stanza = _stanza()
    options: dict[str, Any] = {
        "tokenize_pretokenized": True,
        "download_method": None,
        "logging_level": "ERROR",
        "device": device,
        # Keep trees as the parser found them: only Stanza 1.15 and later would fix double subjects.
        "depparse_resolve_head_constraints": False,
    }
    if device and device.startswith("cuda"):
        options["depparse_batch_size"] = _WORDS_IN_GPU_BATCH
    if not models.own:
        processors = ",".join(("tokenize", *_PROCESSORS))
        return stanza.Pipeline(models.code, dir=str(folder), processors=processors, **options)
    tagger, depparse = map(str, models.own)
    with TemporaryDirectory() as catalogue:  # an empty catalogue of Stanza's models
        (Path(catalogue) / "resources.json").write_text("{}")
        return stanza.Pipeline(
            models.language,
            dir=catalogue,
            package=None,
            processors="tokenize,pos,depparse",
            allow_unknown_language=True,
            depparse_pretagged=True,  # lemmas are not needed
            pos_model_path=tagger,
            depparse_model_path=depparse,
            **options,
        )
