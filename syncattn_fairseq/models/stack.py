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
    """A list of layers with LayerDrop that keeps their numbers: a bypass replaces a dropped layer.

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
        """Yield the layers, with the bypass in place of each layer dropped this time."""
        layers = list(nn.ModuleList.__iter__(self))
        survivors = {id(layer) for layer in super().__iter__()}
        for number, layer in enumerate(layers, start=1):
            yield layer if id(layer) in survivors or number in self.required else self.bypass


def bypass_encoder_layer(x: Any, **_: Any) -> Any:
    """Return an encoder state unchanged, in place of a dropped layer."""
    return x


def bypass_decoder_layer(x: Any, *_: Any, **__: Any) -> Any:
    """Return a decoder state unchanged and no attention, in place of a dropped layer."""
    return x, None, None


class SyntaxStack:
    """Mixin of encoder and decoder for a stack of Transformer layers with syntactic heads.

    Attributes:
        numbers: the layers' numbers, from the bottom; after pruning, those of the training.
        view: what the attention modules see of the batch.
        exposing_layers: for each name of a tensor that heads expose, the layers, from 1, with such
            heads in their self-attention.
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
        """Set the numbers of the layers to build, and the object that holds the current batch."""
        self.numbers = list_kept(cfg, side)
        self.view = BatchView()

    def number_layer(self) -> int:
        """Return the number, counted from 1 before pruning, of the layer that is built next."""
        self.layers_built += 1
        return self.numbers[self.layers_built - 1]

    def find_layer(self, number: int) -> Any:
        """Return the layer with a given number, counted from 1 before pruning."""
        return self.layers[self.numbers.index(number)]

    def complete(self, cfg: Any, side: str, bypass: Any, required: Iterable[int] = ()) -> None:
        """Finish the built stack: set position embeddings, LayerDrop and the layers read by losses.

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
        """Remove and return the tensors that self-attention stored under a name, one per layer.

        If the layers kept the tensors, these would hold the batch's graph in memory.
        """
        layers = map(self.find_layer, self.exposing_layers[name])
        return [layer.self_attn.exposed.pop(name) for layer in layers]

    def take_cross_exposed(self, name: str) -> list[Tensor]:
        """Remove and return the tensors that cross-attention stored under a name, one per layer."""
        layers = map(self.find_layer, self.cross_exposing_layers[name])
        return [layer.encoder_attn.exposed.pop(name) for layer in layers]
