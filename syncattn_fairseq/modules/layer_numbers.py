"""Options with layer numbers, and checks of the options' values.

Layers are counted from 1 at the bottom. fairseq's ``--encoder-layers-to-keep`` and
``--decoder-layers-to-keep`` prune a model that was trained with LayerDrop; its layers keep the
numbers that they had in training, so that heads without parameters stay in the layers that were
trained with them.
"""

from typing import Any

from ..base.errors import DataError
from ..base.option_fields import flag, option

SIDES = ("encoder", "decoder")
#: Name of the decoder's attention to the source, whose layers are the decoder's.
CROSS = "cross"
#: Names of a model's attentions: self-attention of encoder and decoder, and cross-attention.
ATTENTIONS = (*SIDES, CROSS)


def check_range(cfg: Any, option: str, lowest: float, highest: float, explanation: str) -> None:
    """Raise ``DataError`` if the value of an option is not between two inclusive bounds.

    Args:
        cfg: the options of the model.
        option: the name of the option.
        lowest, highest: the inclusive bounds.
        explanation: the end of the message.
    """
    value = getattr(cfg, option)
    if not lowest <= value <= highest:
        raise DataError(f"{flag(option)} {value}: {explanation}")


def encoder_layers_option(what: str) -> Any:
    """Return an option for encoder layers; its help is "encoder layers" followed by ``what``."""
    return option("", f"encoder layers {what}, such as 1,2, or all (none)")


def cross_layers_option(what: str) -> Any:
    """Return an option for decoder layers whose cross-attention has heads of one kind.

    ``what`` ends its help after "decoder layers whose cross-attention".
    """
    return option("", f"decoder layers whose cross-attention {what}, such as 1,2, or all (none)")


def decoder_layers_option() -> Any:
    """Return an option for the decoder layers with heads of one kind, by default the encoder's."""
    return option("same", "the same for the decoder; same: those of the encoder")


def remember_layers(args: Any) -> None:
    """Store in the options the numbers of the trained layers and of the layers kept by pruning.

    This must come before fairseq builds the model: fairseq replaces the number of layers by that of
    the layers to keep, and forgets which these are once weights are loaded.

    Raises:
        DataError: there are no such layers, or other layers were pruned before.
    """
    for side in SIDES:
        value = getattr(args, f"{side}_layers_to_keep", None)
        if not value:
            continue
        earlier = getattr(args, f"{side}_layers_kept", None)
        if earlier is None:
            trained: int = getattr(args, f"{side}_layers")
            setattr(args, f"{side}_layers_kept", _read_kept(value, side, trained))
            setattr(args, f"{side}_layers_trained", trained)
        elif len(earlier) != len(value.split(",")):
            raise DataError(
                f"--{side}-layers-to-keep {value}: the checkpoint is pruned already, and cannot "
                "be pruned again; leave the option out"
            )


def _read_kept(value: str, side: str, trained: int) -> list[int]:
    """Return the numbers, from 1, of the layers to keep, which fairseq counts from 0."""
    layers = value.split(",")
    known = {str(number) for number in range(trained)}
    if not known.issuperset(layers) or len({*layers}) < len(layers):
        raise DataError(
            f"--{side}-layers-to-keep {value}: this option counts the {side}'s layers from 0 to "
            f"{trained - 1}; list each layer once, such as 0,2"
        )
    return sorted(int(layer) + 1 for layer in layers)


def count_trained_layers(cfg: Any, side: str) -> int:
    """Return the number of encoder or decoder layers in training, before pruning."""
    return getattr(cfg, f"{side}_layers_trained", None) or getattr(cfg, side).layers


def list_kept(cfg: Any, side: str) -> list[int]:
    """Return the layers of encoder or decoder left after pruning, in ascending order."""
    every = range(1, getattr(cfg, side).layers + 1)
    return [*(getattr(cfg, f"{side}_layers_kept", None) or every)]


def read_layer(cfg: Any, option: str, side: str) -> int:
    """Return the layer named by an option, or 0 if the option names none or a pruned layer.

    Raises:
        DataError: there was no such layer in training.
    """
    highest = count_trained_layers(cfg, side)
    check_range(cfg, option, 0, highest, f"the {side} has layers 1 to {highest}")
    layer: int = getattr(cfg, option)
    return layer if layer in list_kept(cfg, side) else 0


def read_layers(cfg: Any, option: str, side: str) -> list[int]:
    """Return the layers listed by an option, without pruned layers.

    The option's value is a list such as ``1,2``, or ``all``, or ``none`` (or empty).

    Raises:
        DataError: the value is none of these, or names a layer that does not exist.
    """
    kept = list_kept(cfg, side)
    return [layer for layer in read_trained_layers(cfg, option, side) if layer in kept]


def read_trained_layers(cfg: Any, option: str, side: str) -> list[int]:
    """Return the layers listed by an option, pruned layers included (:func:`read_layers`)."""
    value, highest = str(getattr(cfg, option)), count_trained_layers(cfg, side)
    if value == "all":
        return list(range(1, highest + 1))
    if value in ("", "none"):
        return []
    if not all(n.isdecimal() and 1 <= int(n) <= highest for n in value.split(",")):
        raise DataError(
            f"{flag(option)} {value}: the {side} has layers 1 to {highest}; list layers, such as "
            "1,2, or write all or none"
        )
    return sorted({int(n) for n in value.split(",")})
