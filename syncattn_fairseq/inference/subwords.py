"""From plain text to the subwords of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import DataError
from ..data.pieces import apply_pieces, open_pieces
from ..data.words import detect_scheme


class Cutter(ABC):
    """Cuts words into subwords."""

    #: How it marks them, see :func:`..data.words.find_word_starts`.
    scheme: str

    @abstractmethod
    def cut(self, words: Sequence[str]) -> list[str]:
        """Return the subwords of a sentence."""

    def __call__(self, sentences: Sequence[str]) -> list[list[str]]:
        """Cut sentences whose words are separated by white space."""
        return [self.cut(sentence.split()) for sentence in sentences]


class Words(Cutter):
    """Leaves words as they are: the text is cut already, or the model reads words.

    Args:
        scheme: how the text is cut.
    """

    def __init__(self, scheme: str = "none") -> None:
        self.scheme = scheme

    def cut(self, words: Sequence[str]) -> list[str]:
        """Return the words."""
        return list(words)


class Pieces(Cutter):
    """Cuts with a sentencepiece model.

    Args:
        path: of the model.

    Raises:
        DataError: it is none.
    """

    scheme = "sentencepiece"

    def __init__(self, path: Path) -> None:
        self.processor = open_pieces(path)

    def cut(self, words: Sequence[str]) -> list[str]:
        """Return the pieces; U+2581 in a word becomes ``_``."""
        return apply_pieces(self.processor, " ".join(words))


class Codes(Cutter):
    """Cuts with the codes of subword-nmt, which is an extra.

    Args:
        path: of the codes.

    Raises:
        DataError: subword-nmt is not installed.
    """

    scheme = "subword_nmt"

    def __init__(self, path: Path) -> None:
        try:
            from subword_nmt.apply_bpe import BPE
        except ImportError:
            raise DataError(
                f"{path}: these codes need subword-nmt; pip install 'syncattn-fairseq[subword-nmt]'"
            ) from None
        with path.open(encoding="utf-8") as file:
            self.bpe = BPE(file)

    def cut(self, words: Sequence[str]) -> list[str]:
        """Return the subwords."""
        subwords: list[str] = self.bpe.segment_tokens(words)
        return subwords


def open_cutter(path: Path) -> Cutter:
    """Load a subword model, whichever of the two kinds it is.

    Raises:
        DataError: it is neither, or what reads it is not installed.
    """
    with path.open("rb") as file:
        # A line feed is how protocol buffers number their first field; codes are lines of text.
        return Pieces(path) if file.read(1) == b"\n" else Codes(path)


def languages_file(language: str) -> str:
    """Return the name, beside a model, of the subword model of one language."""
    return f"subwords.{language}"


def find_subwords(folders: Sequence[Path], source: str, target: str) -> tuple[Path, Path] | None:
    """Find the subword models of both languages in the first folder that has them."""
    for folder in folders:
        paths = folder / languages_file(source), folder / languages_file(target)
        if all(path.is_file() for path in paths):
            return paths
    return None


def open_cutters(
    given: str | Path | Sequence[str | Path] | None,
    folders: Sequence[Path],
    languages: tuple[str, str],
    vocabularies: tuple[Sequence[str], Sequence[str]],
    schemes: tuple[str | None, str | None] = (None, None),
) -> tuple[Cutter, Cutter]:
    """Load the subword models of source and target.

    Args:
        given: the models, or None to look for them.
        folders: where to look.
        languages: the two.
        vocabularies: of each.
        schemes: how the subwords of each are marked; None: as its vocabulary tells.

    Raises:
        DataError: there are none for subwords, or they are not those of the vocabulary.
    """
    paths = subword_paths(given) or find_subwords(folders, *languages)
    cutters = []
    for side, language, vocabulary in zip((0, 1), languages, vocabularies, strict=True):
        scheme = schemes[side] or detect_scheme(vocabulary)
        if paths is None and scheme != "none":
            raise DataError(
                f"the model reads and writes subwords ({scheme}) and the model that cuts words "
                "into them is not beside it: subwords=FILE (--subwords FILE)"
            )
        cutter = Words() if paths is None else open_cutter(paths[side])
        if cutter.scheme != scheme:
            raise DataError(
                f"{paths[side] if paths else ''}: cuts as {cutter.scheme}, but the text of "
                f"{language} is cut as {scheme}; give the subword model of the training"
            )
        cutters.append(cutter)
    return cutters[0], cutters[1]


def subword_paths(
    given: str | Path | Sequence[str | Path] | None,
) -> tuple[Path, Path] | None:
    """Return the subword models of source and target, of which one may serve both.

    Raises:
        DataError: they are more than two.
    """
    if given is None:
        return None
    paths = [Path(given)] if isinstance(given, str | Path) else [Path(path) for path in given]
    if not 1 <= len(paths) <= 2:
        raise DataError(f"{len(paths)} subword models; give one, or one of source and of target")
    return paths[0], paths[-1]
