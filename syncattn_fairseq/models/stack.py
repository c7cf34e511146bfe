"""Common parts of encoder and decoder, and LayerDrop with stable layer numbers."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from fairseq.modules import LayerDropModuleList
from torch import Tensor, nn

from ..modules import BatchView
from ..modules.heads.slots import list_cross_fields, list_exposed, list_exposing_layers
from ..modules.layer_numbers import CROSS, list_kept
from ..modules.positions import POSITIONS


class NumberedLayerDrop(LayerDropModuleList):
    """A list of layers that puts a bypass in place of a dropped layer.

    fairseq skips a dropped layer, which renumbers every layer above it: "the third layer's
    attention" would come from different layers in different steps. Here numbers stay, and layers
    that a loss reads, ``required``, counted from 1, are never dropped.
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


class SyntaxStack:
    """A stack of Transformer layers with syntactic heads.

    Attributes:
        numbers: of its layers, from the bottom; after pruning, those that they were trained with.
        view: what its attention modules see of the batch.
        exposing_layers: for each name of something that heads expose, the layers, from 1, with
            such heads in their self-attention.
        cross_exposing_layers: the same for the decoder's attention to the source.
        decoder_fields: names of the fields of ``net_input`` that this attention reads.
    """

    numbers: list[int]
    view: BatchView
    layers: Any
    num_layers: int
    padding_idx: int
    embed_positions: nn.Module | None
    layers_built = 0

    def prepare(self, cfg: Any, side: str) -> None:
        """Determine the layer numbers, before fairseq builds the layers."""
        self.numbers = list_kept(cfg, side)
        self.view = BatchView()

    def number_layer(self) -> int:
        """Return the number of the next layer that is built."""
        self.layers_built += 1
        return self.numbers[self.layers_built - 1]

    def find_layer(self, number: int) -> Any:
        """Return the layer with a number."""
        return self.layers[self.numbers.index(number)]

    def complete(self, cfg: Any, side: str, bypass: Any, required: Iterable[int] = ()) -> None:
        """Determine the exposing layers, and apply LayerDrop to the other layers.

        Layers whose numbers are ``required`` are never dropped either.

        Args:
            cfg: the options of the model.
            side: ``encoder`` or ``decoder``.
            bypass: stands for a dropped layer.
            required: the numbers of layers exempt from LayerDrop, besides the exposing layers.
        """
        embedding = POSITIONS[cfg.positions].embed(getattr(cfg, side).embed_dim, self.padding_idx)
        if embedding is not None:
            self.embed_positions = embedding
        self.exposing_layers = {n: list_exposing_layers(cfg, side, n) for n in list_exposed()}
        places = {n: list_exposing_layers(cfg, CROSS, n) for n in list_exposed()}
        self.cross_exposing_layers = places if side == "decoder" else dict.fromkeys(places, [])
        self.decoder_fields = list_cross_fields(cfg)
        p = getattr(cfg, side).layerdrop
        if p > 0:
            layers = [self.layers[i] for i in range(self.num_layers)]
            exposing = [*self.exposing_layers.values(), *self.cross_exposing_layers.values()]
            numbers = {*required, *itertools.chain(*exposing)}
            kept = [i for i, number in enumerate(self.numbers, start=1) if number in numbers]
            self.layers = NumberedLayerDrop(p, layers, bypass, kept)

    def take_exposed(self, name: str) -> list[Tensor]:
        """Return what heads exposed of the last batch under a name, layer by layer.

        The layers let go of it: otherwise it would hold the batch's graph in memory.
        """
        layers = map(self.find_layer, self.exposing_layers[name])
        return [layer.self_attn.exposed.pop(name) for layer in layers]

    def take_cross_exposed(self, name: str) -> list[Tensor]:
        """Do the same for what heads exposed in the attention to the source."""
        layers = map(self.find_layer, self.cross_exposing_layers[name])
        return [layer.encoder_attn.exposed.pop(name) for layer in layers]
