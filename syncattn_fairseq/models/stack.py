"""What encoder and decoder share."""

import itertools
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from ..modules import BatchView
from ..modules.heads.slots import list_exposed, list_exposing_layers
from .layer_drop import NumberedLayerDrop
from .tree_cross_attention import TreeCrossAttention


class SyntaxStack:
    """A stack of Transformer layers with syntactic heads.

    Attributes:
        view: what its attention modules see of the batch.
        exposing_layers: for each name of something that heads expose, the layers, from 1, with
            such heads.
        decoder_fields: names of the fields of ``net_input`` that the decoder needs.
    """

    view: BatchView
    layers: Any
    num_layers: int
    layers_built = 0

    def number_layer(self) -> int:
        """Return the number, from 1, of the next layer that is built."""
        self.layers_built += 1
        return self.layers_built

    def complete(self, cfg: Any, side: str, bypass: Any, required: Iterable[int] = ()) -> None:
        """Find out what the layers, now built, expose; and apply LayerDrop to the others.

        Args:
            cfg: the model's options.
            side: ``encoder`` or ``decoder``.
            bypass: stands in for a dropped layer.
            required: numbers of layers, from 1, that are needed, besides those that expose.
        """
        self.exposing_layers = {n: list_exposing_layers(cfg, side, n) for n in list_exposed()}
        self.decoder_fields = [field.name for field in TreeCrossAttention.list_fields(cfg).fields]
        p = getattr(cfg, side).layerdrop
        if p > 0:
            layers = [self.layers[i] for i in range(self.num_layers)]
            required = [*required, *itertools.chain(*self.exposing_layers.values())]
            self.layers = NumberedLayerDrop(p, layers, bypass, required)

    def take_exposed(self, name: str) -> list[Tensor]:
        """Return what heads exposed of the last batch under a name, layer by layer.

        The layers let go of it: otherwise it would hold the batch's graph in memory.
        """
        numbers = self.exposing_layers[name]
        return [self.layers[number - 1].self_attn.exposed.pop(name) for number in numbers]
