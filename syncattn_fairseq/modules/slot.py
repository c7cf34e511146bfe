"""Where some heads of a layer stand."""

from dataclasses import dataclass

from .batch_view import BatchView


@dataclass(frozen=True)
class Slot:
    """A set of neighbouring heads in one self-attention layer, all of one kind; or all its heads.

    Attributes:
        side: ``encoder`` or ``decoder``.
        layer: counted from 1 at the bottom.
        numbers: which heads of the layer they are, counted from 0.
        total: H, how many heads the layer has.
        head_dim: d.
        view: the batch.
    """

    side: str
    layer: int
    numbers: range
    total: int
    head_dim: int
    view: BatchView

    @property
    def count(self) -> int:
        """How many heads these are."""
        return len(self.numbers)

    @property
    def embed_dim(self) -> int:
        """D, the width of the layer's input."""
        return self.total * self.head_dim
