"""LayerDrop that keeps the layers' numbers."""

from collections.abc import Collection, Iterator
from typing import Any

from fairseq.modules import LayerDropModuleList
from torch import nn


class NumberedLayerDrop(LayerDropModuleList):
    """A list of layers that puts a bypass in place of a dropped layer.

    fairseq skips a dropped layer, which renumbers every layer above it: "the third layer's
    attention" would come from different layers in different steps. Here numbers stay, and layers
    that a loss reads are never dropped.

    Args:
        p: probability of dropping a layer.
        modules: the layers.
        bypass: called in place of a dropped layer.
        required: numbers, counted from 1, of layers that always stay.
    """

    def __init__(
        self, p: float, modules: list[nn.Module], bypass: Any, required: Collection[int]
    ) -> None:
        super().__init__(p, modules)
        self.bypass = bypass
        self.required = frozenset(required)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the layers, with the bypass for each that is dropped this time."""
        layers = list(nn.ModuleList.__iter__(self))
        survivors = {id(layer) for layer in super().__iter__()}
        for number, layer in enumerate(layers, start=1):
            yield layer if id(layer) in survivors or number in self.required else self.bypass


def bypass_encoder_layer(x: Any, **_: Any) -> Any:
    """Pass an encoder state on unchanged."""
    return x


def bypass_decoder_layer(x: Any, *_: Any, **__: Any) -> Any:
    """Pass a decoder state on unchanged, without attention."""
    return x, None, None
