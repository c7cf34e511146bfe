"""The base class of all ways to encode positions, and their registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from ...base.option_fields import add_named
from ..batch_view import BatchView
from ..part import Part, Slot

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Positions(Part, nn.Module):
    """Base class of position encodings in self-attention layers; by itself, it encodes nothing.

    It holds for all heads of the layer, whatever their kind: it may add something to their scores
    (:meth:`bias`) or turn their queries and keys (:meth:`rotate`). Both must depend only on how far
    apart query and key are, since padding on the left moves a sentence.

    Args:
        heads: H, of the layer.
        head_dim: d, the width of a head.
        view: the batch.
        causal: whether this is a decoder, whose queries see nothing to their right.
    """

    #: Whether fairseq adds position embeddings to the token embeddings.
    embedded: ClassVar[bool] = False
    #: The options that the constructor takes after ``causal``, in order.
    arguments: ClassVar[tuple[str, ...]] = ()

    def __init__(self, heads: int, head_dim: int, view: BatchView, causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.head_dim = head_dim
        self.view = view
        self.causal = causal

    @classmethod
    def build(cls, cfg: Any, layer: Slot) -> Positions:
        """Build a layer's position information, for all of its heads, from the model's options."""
        values = (getattr(cfg, name) for name in cls.arguments)
        return cls(layer.total, layer.head_dim, layer.view, layer.side == "decoder", *values)

    @classmethod
    def embed(cls, width: int, padding_idx: int) -> nn.Module | None:
        """Return position embeddings to use in place of fairseq's, or None to keep fairseq's.

        Args:
            width: of the tokens' embeddings.
            padding_idx: the number of the padding symbol.
        """
        return None

    @classmethod
    def is_plain(cls) -> bool:
        """Return whether positions change neither scores nor queries and keys."""
        return cls.bias is Positions.bias and cls.rotate is Positions.rotate

    def bias(
        self, rows: int, columns: int, device: torch.device
    ) -> Float[Tensor, "{self.heads} {rows} {columns}"] | None:
        """Return the positions' addend to attention scores, or None without an addend.

        ``rows`` is the number of queries: all, or in incremental decoding the last one. ``columns``
        is the number of keys.
        """
        return None

    def rotate(
        self, states: Float[Tensor, "batch heads rows width"], first: int
    ) -> Float[Tensor, "batch heads rows width"]:
        """Return queries or keys rotated by their positions, which begin at ``first``."""
        return states


@dataclass(frozen=True)
class Order:
    """The position information for a group of heads in a forward pass.

    Attributes:
        positions: of the layer; None if they change neither scores nor states.
        bias: added to the scores of these heads; None for nothing.
    """

    positions: Positions | None = None
    bias: Float[Tensor, "heads rows tokens"] | None = None

    def turn(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
    ) -> tuple[
        Float[Tensor, "batch heads rows width"],
        Float[Tensor, "batch heads tokens width"],
    ]:
        """Rotate queries and keys by their positions; the queries are those of the last tokens."""
        if self.positions is None:
            return query, key
        first = key.size(-2) - query.size(-2)
        return self.positions.rotate(query, first), self.positions.rotate(key, 0)


def offsets(rows: int, columns: int, device: torch.device) -> Int[Tensor, "{rows} {columns}"]:
    """Return each key's position minus each query's, for queries at the last ``rows`` positions."""
    numbers = torch.arange(columns, device=device)
    return numbers - numbers[columns - rows :].unsqueeze(1)


#: The registered ways to encode positions by name, which is the value of ``--positions``.
POSITIONS: dict[str, type[Positions]] = {}

P = TypeVar("P", bound=type[Positions])


def register_positions(name: str) -> Callable[[P], P]:
    """Return a decorator that registers a way to encode positions, in a ``--user-dir`` too.

    Raises:
        DataError: the name is taken.
    """

    def register(positions: P) -> P:
        add_named(POSITIONS, name, positions, "kind of positions")
        return positions

    return register


@register_positions("absolute")
class AbsolutePositions(Positions):
    """fairseq's position embeddings, added to token embeddings: sinusoids, unless learnt."""

    embedded = True


@register_positions("none")
class NoPositions(Positions):
    """No position information; a decoder still sees how many tokens precede each token."""
