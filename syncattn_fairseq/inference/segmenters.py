"""From plain text to a model's subwords."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import DataError
from ..base.files import open_file
from ..base.text import read_file_lines
from ..data.pieces import apply_pieces, open_pieces
from ..data.words import detect_scheme

_REMEDY = "give the codes that subword-nmt learned, or a sentencepiece model"


class Segmenter(ABC):
    """Splits words into subwords."""

    #: How it marks them, see :func:`..data.words.find_word_starts`.
    scheme: str

    @abstractmethod
    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the subwords of a sentence."""

    def __call__(self, sentences: Sequence[str]) -> list[list[str]]:
        """Split sentences whose words are separated by white space."""
        return [self.segment(sentence.split()) for sentence in sentences]


class Words(Segmenter):
    """Leaves words unchanged, for a model that reads words."""

    scheme = "none"

    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the words."""
        return list(words)


class Pieces(Segmenter):
    """Splits with a sentencepiece model.

    Args:
        path: the model.

    Raises:
        DataError: the file is not a sentencepiece model.
    """

    scheme = "sentencepiece"

    def __init__(self, path: Path) -> None:
        self.processor = open_pieces(path)

    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the pieces; U+2581 in a word becomes ``_``."""
        return apply_pieces(self.processor, " ".join(words))


class Codes(Segmenter):
    """Splits with codes of subword-nmt, which is an extra.

    Args:
        path: the codes.

    Raises:
        DataError: subword-nmt is not installed, or these are not its codes.
    """

    scheme = "subword_nmt"

    def __init__(self, path: Path) -> None:
        try:
            from subword_nmt.apply_bpe import BPE
        except ImportError:
            raise DataError(
                f"{path}: these codes need subword-nmt; pip install 'syncattn-fairseq[subword-nmt]'"
            ) from None
        lines = [*read_file_lines(path)]
        while lines and not lines[-1]:
            lines.pop()
        version = bool(lines) and lines[0].startswith("#version:")
        if len(lines) == version:
            raise DataError(f"{path}: no subwords to join; {_REMEDY}")
        for number, line in enumerate(lines[version:], 1 + version):
            if len(line.strip("\r ").split(" ")) != 2:  # subword-nmt would end the program
                raise DataError(f"{path}:{number}: expected two subwords to join; {_REMEDY}")
        try:
            self.bpe = BPE(io.StringIO("\n".join(lines)))
            self.segment(["word"])
        except (ValueError, NotImplementedError):
            raise DataError(f"{path}:1: no version that subword-nmt knows; {_REMEDY}") from None

    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the subwords."""
        subwords: list[str] = self.bpe.segment_tokens(words)
        return subwords


def open_segmenter(path: Path) -> Segmenter:
    """Load a subword model of either kind.

    Raises:
        DataError: the file is neither, or the package that reads it is not installed.
    """
    with open_file(path) as file:
        # Protocol buffers begin with a line feed, the tag of their first field; codes are text.
        return Pieces(path) if file.read(1) == b"\n" else Codes(path)


def is_file_name(name: object) -> bool:
    """Return whether what a file names, such as a language, can be a part of a file's name."""
    return isinstance(name, str) and re.fullmatch(r"[\w.+-]{1,100}", name) is not None


def name_subwords(language: str) -> str:
    """Return the name of one language's subword model in an export's folder."""
    return f"subwords.{language}"


def find_subwords(folders: Sequence[Path], source: str, target: str) -> tuple[Path, Path] | None:
    """Find the subword models of both languages in the first folder that has them."""
    for folder in folders:
        paths = folder / name_subwords(source), folder / name_subwords(target)
        if all(path.is_file() for path in paths):
            return paths
    return None


def open_segmenters(
    models: str | Path | Sequence[str | Path] | None,
    folders: Sequence[Path],
    languages: tuple[str, str],
    vocabularies: tuple[Sequence[str], Sequence[str]],
    schemes: tuple[str | None, str | None] = (None, None),
) -> tuple[Segmenter, Segmenter]:
    """Load the subword models of source and target.

    Args:
        models: the subword models; None: look for them.
        folders: where to look.
        languages: source and target.
        vocabularies: of source and target.
        schemes: how each side marks subwords; None: as its vocabulary shows.

    Raises:
        DataError: a vocabulary of subwords has no subword model, or one that does not match it.
    """
    paths = pair_subwords(models) or find_subwords(folders, *languages)
    segmenters: list[Segmenter] = []
    for side, language, vocabulary in zip((0, 1), languages, vocabularies, strict=True):
        scheme = schemes[side] or detect_scheme(vocabulary)
        if paths is None:
            if scheme != "none":
                raise DataError(
                    f"the model reads and writes subwords ({scheme}), and no subword model is in "
                    "its folder; name one"
                )
            segmenters.append(Words())
            continue
        segmenter = open_segmenter(paths[side])
        if segmenter.scheme != scheme:
            raise DataError(
                f"{paths[side]}: marks subwords as {segmenter.scheme}, but the text of {language} "
                f"as {scheme}; give the subword model of the training"
            )
        segmenters.append(segmenter)
    return segmenters[0], segmenters[1]


def pair_subwords(
    models: str | Path | Sequence[str | Path] | None,
) -> tuple[Path, Path] | None:
    """Return the subword models of source and target; one may serve both.

    Raises:
        DataError: there are more than two.
    """
    if models is None:
        return None
    paths = [Path(models)] if isinstance(models, str | Path) else [Path(path) for path in models]
    if not 1 <= len(paths) <= 2:
        raise DataError(
            f"{len(paths)} subword models; give one, or one for the source and one for the target"
        )
    return paths[0], paths[-1]
