"""Stanza's tagger and parser (Qi et al., 2020)."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..base.errors import BadParse, DataError
from . import arborescence
from .parser import Morphology, Parse, Parser, Sentences, parse_in_halves

# Enough for full batches, few enough for the memory of a small machine.
_WORDS_AT_ONCE = 20_000

# What Stanza's own models have; smaller ones of models of one's own leave a GPU idle.
_WORDS_IN_GPU_BATCH = 5_000

_PROCESSORS = ("pos", "lemma", "depparse")
_NEEDED = (*_PROCESSORS, "pretrain", "forward_charlm", "backward_charlm")


@dataclass(frozen=True)
class StanzaModels:
    """Where the models of one language are; nothing is downloaded.

    Either ``stanza.download`` has filled the directory, or it holds models of one's own,
    ``LANG_tagger.pt`` and ``LANG_parser.pt``, trained without pretrained vectors, character
    language models and lemmas. Such models can also be named one by one.

    Args:
        language: Stanza's code of it.
        directory: of models; None for Stanza's own.
        tagger: a model of one's own, together with ``depparse``.
        depparse: the same.
    """

    language: str
    directory: str | None = None
    tagger: str | None = None
    depparse: str | None = None

    @property
    def folder(self) -> Path:
        """Where the models are if they are not named one by one.

        Raises:
            DataError: Stanza is not installed.
        """
        try:
            import stanza.resources.common
        except ImportError:
            raise DataError("parsing needs Stanza; pip install 'syncattn-fairseq[parse]'") from None
        return Path(self.directory or stanza.resources.common.DEFAULT_MODEL_DIR).expanduser()

    @property
    def own(self) -> tuple[Path, Path] | None:
        """Tagger and parser of one's own; None if Stanza's are meant."""
        if self.tagger and self.depparse:
            return Path(self.tagger), Path(self.depparse)
        found = [self.folder / f"{self.language}_{name}.pt" for name in ("tagger", "parser")]
        return (found[0], found[1]) if all(path.exists() for path in found) else None

    def missing(self) -> DataError:
        """Return the error that says how to get models."""
        target = f", model_dir='{self.folder}'" if self.directory else ""
        return DataError(
            f"{self.folder}: no Stanza models for {self.language!r}; get them with "
            f'python -c "import stanza; stanza.download({self.language!r}{target})", '
            f"or name your own {self.language}_tagger.pt and {self.language}_parser.pt"
        )

    def files(self) -> list[Path]:
        """Return every file that the parses may depend on.

        Raises:
            DataError: there is none.
        """
        if self.own:
            return list(self.own)
        folder = self.folder / self.language
        found = [path for kind in _NEEDED for path in sorted((folder / kind).glob("*.pt"))]
        if not found:
            raise self.missing()
        return found

    def describe(self) -> dict[str, str]:
        """Return what else the parses depend on."""
        import stanza
        import torch

        return {
            "parser": "stanza",
            "language": self.language,
            "stanza": stanza.__version__,
            "torch": str(torch.__version__),
        }

    def modules(self) -> list[str]:
        """Return what is slow to import."""
        return ["stanza.pipeline.core"]

    def open(self, worker: int) -> Parser:
        """Load the models in one of several processes.

        Each has a thread of its own, as processes scale and threads do not, and shares the GPUs, if
        there are any, with the others.

        Args:
            worker: its number, from 0.

        Raises:
            DataError: Stanza is not installed, or models are not there.
        """
        import torch

        torch.set_num_threads(1)
        gpus = torch.cuda.device_count()
        return StanzaParser(self, f"cuda:{worker % gpus}" if gpus else None)


class StanzaParser(Parser):
    """Stanza's pipeline on sentences of like length, with faster predictions of trees.

    The trees are those of the pipeline. It runs on a GPU where there is one.

    Args:
        models: what to load.
        device: as in PyTorch; None for Stanza's choice.

    Raises:
        DataError: Stanza is not installed, or models are not there.
    """

    def __init__(self, models: StanzaModels, device: str | None = None) -> None:
        folder = models.folder
        try:
            self.pipeline = _pipeline(models, folder, device)
        except (FileNotFoundError, ValueError) as error:
            if models.tagger:
                raise DataError(f"{models.tagger}, {models.depparse}: {error}") from error
            raise models.missing() from error
        model = self.pipeline.processors["depparse"].trainer.model
        if hasattr(model, "forward_scores"):  # as graph parsers have since Stanza 1.15
            model.predict = arborescence.predictor(model)

    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """See ``Parser``."""
        return parse_in_halves(self._parse, sentences, _blocks(sentences))

    def _parse(self, sentences: Sentences) -> list[Parse]:
        collecting = gc.isenabled()
        gc.disable()  # would look at millions of objects again and again, all of them in use
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


def _blocks(sentences: Sentences) -> Iterator[Sequence[int]]:
    """Yield indices of sentences of like length, the short ones first."""
    block: list[int] = []
    for index in sorted(range(len(sentences)), key=lambda index: len(sentences[index])):
        if block and (len(block) + 1) * len(sentences[index]) > _WORDS_AT_ONCE:
            yield block
            block = []
        block.append(index)
    if block:
        yield block


def _pipeline(models: StanzaModels, folder: Path, device: str | None) -> Any:
    import stanza

    options: dict[str, Any] = {
        "tokenize_pretokenized": True,
        "download_method": None,
        "logging_level": "ERROR",
        "device": device,
        # Trees as the parser found them: only Stanza from 1.15 on would mend double subjects.
        "depparse_resolve_head_constraints": False,
    }
    if device and device.startswith("cuda"):
        options["depparse_batch_size"] = _WORDS_IN_GPU_BATCH
    if not models.own:
        processors = ",".join(("tokenize", *_PROCESSORS))
        return stanza.Pipeline(models.language, dir=str(folder), processors=processors, **options)
    tagger, depparse = map(str, models.own)
    with TemporaryDirectory() as catalogue:  # of the models that Stanza knows: none
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
