"""What every format can do."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from .check import Sample
from .fold import FoldedModel


class Format(ABC):
    """An export format: writes and reads models for another program."""

    #: Types that weights can be stored as, besides float32.
    quantizations: Sequence[str] = ()
    #: Whether it can restrict the target's vocabulary by the source.
    has_shortlists = False
    #: Whether :func:`..inference.load` accepts the folder.
    loads_here = True

    @abstractmethod
    def refuse(self, folded: FoldedModel) -> None:
        """Check that the format can represent everything in a model.

        Raises:
            DataError: it cannot, or the program is not installed.
        """

    @abstractmethod
    def write(self, folded: FoldedModel, folder: Path, quantization: str | None) -> None:
        """Write a model into an empty folder."""

    @abstractmethod
    def scores(self, folder: Path, folded: FoldedModel, sample: Sample) -> list[float]:
        """Return the log-probability of each target of a sample under the written model."""

    @abstractmethod
    def usage(self, folded: FoldedModel, folder: Path) -> list[str]:
        """Return Python lines for translating with the written model, in one or more ways."""
