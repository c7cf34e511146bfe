"""The interface of export formats."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from .check import Sample
from .fold import FoldedModel


class Format(ABC):
    """An export format: checks, writes and scores models for another program."""

    #: The types of number, besides float32, that weights can be stored as.
    quantizations: Sequence[str] = ()
    #: Whether the format can restrict the target vocabulary by the source's subwords.
    has_shortlists = False
    #: Whether :func:`..inference.load` accepts the folder.
    loads_here = True

    @abstractmethod
    def refuse(self, folded: FoldedModel) -> None:
        """Raise `DataError` if the format cannot represent the model.

        Raises:
            DataError: the model has something that the format lacks, or the program is not
                installed.
        """

    @abstractmethod
    def write(self, folded: FoldedModel, folder: Path, quantization: str | None) -> None:
        """Write a model into an empty folder."""

    @abstractmethod
    def scores(self, folder: Path, folded: FoldedModel, sample: Sample) -> list[float]:
        """Return the log-probability of each target of a sample under the written model."""

    @abstractmethod
    def usage(self, folded: FoldedModel, folder: Path) -> list[str]:
        """Return examples of Python code for translating with the written model."""
