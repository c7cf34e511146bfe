"""Division of each layer's heads among the classes of attention heads."""

from typing import Any

from ...base.errors import DataError
from ...base.option_fields import flag
from ...data.fields import NOTHING, SourceFields
from ..layer_numbers import ATTENTIONS, CROSS
from ..part import PARTS
from .heads import Heads


def list_kinds(side: str = "") -> list[type[Heads]]:
    """Return the classes of attention heads, in the order in which they take a layer's heads.

    Args:
        side: leave out kinds that cannot be in this attention; empty for all kinds.
    """
    kinds = [part for part in PARTS.values() if issubclass(part, Heads)]
    if side == CROSS:
        kinds = [kind for kind in kinds if kind.cross_layers]
    return sorted(kinds, key=lambda kind: kind.rank == "between")


def find_name(kind: type[Heads]) -> str:
    """Return the name under which a class of heads is registered, or ``ordinary`` if it is not."""
    return next((name for name, part in PARTS.items() if part is kind), "ordinary")


def divide_layer(cfg: Any, side: str, layer: int) -> dict[type[Heads], int]:
    """Return how many of a layer's heads are of each kind, in the order of the heads.

    All are ordinary if no kind wants any.

    Args:
        cfg: the options of the model.
        side: ``encoder``, ``decoder`` or ``cross``.
        layer: of the encoder or of the decoder, from 1.

    Raises:
        DataError: kinds want more heads than there are, or layers that do not exist.
    """
    total: int = getattr(cfg, "decoder" if side == CROSS else side).attention_heads
    free = total
    counts: dict[type[Heads], int] = {}
    for kind in list_kinds(side):
        if layer not in kind.list_layers(cfg, side):
            continue
        count = kind.count_heads(cfg, side, free)
        if not 1 <= count <= free:
            others = [
                f", and {n} {'is' if n == 1 else 'are'} already taken by {other.title} heads"
                for other, n in counts.items()
            ]
            option = kind.option or kind.layer_option(cfg, side)
            where = "the cross-attention of decoder" if side == CROSS else side
            raise DataError(
                f"{flag(option)} {getattr(cfg, option)}: "
                f"{where} layer {layer} has {total} heads{''.join(others)}"
            )
        counts[kind] = count
        free -= count
    if free:
        counts[Heads] = free
    ranks = ("first", "between", "last")
    return {kind: counts[kind] for kind in sorted(counts, key=lambda k: ranks.index(k.rank))}


def list_exposed() -> list[str]:
    """Return the names of all tensors that attention heads store for losses or printed parses."""
    return sorted({kind.exposes for kind in list_kinds() if kind.exposes})


def list_exposing_layers(cfg: Any, side: str, name: str) -> list[int]:
    """Return the layers, from 1, whose heads store the named tensor for losses or printing."""
    kinds = [kind for kind in list_kinds(side) if kind.exposes == name]
    return sorted({layer for kind in kinds for layer in kind.list_layers(cfg, side)})


def is_exposed_in_training(cfg: Any, name: str) -> bool:
    """Return whether a training loss reads the named tensor of the attention heads."""
    return any(kind.is_exposed_in_training(cfg) for kind in list_kinds() if kind.exposes == name)


def list_supervised(cfg: Any) -> list[type[Heads]]:
    """Return the classes of a model's heads that need a syntactic loss to learn syntax."""
    used = [kind for side in ATTENTIONS for kind in list_kinds(side) if kind.list_layers(cfg, side)]
    return [kind for kind in list_kinds() if kind.supervised and kind in used]


def list_cross_fields(cfg: Any) -> list[str]:
    """Return the names of the batch fields read by heads in cross-attention."""
    needs: SourceFields = NOTHING
    for kind in list_kinds(CROSS):
        if kind.list_layers(cfg, CROSS):
            needs |= kind.list_fields(cfg)
    return sorted(field.name for field in needs.fields)
