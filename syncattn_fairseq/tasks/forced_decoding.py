"""Force hypotheses through models, to see what the heads predict in them.

That is read on the CPU: one wait for a device per matrix, not several per sentence.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import torch
from fairseq.data import data_utils
from torch import Tensor


class ForcedDecoding:
    """Hypotheses, tokens with the end of sentence, forced through an ensemble of models.

    Heads are averaged. ``net_input`` has ``src_tokens``, ``src_lengths`` and any other input of the
    encoder; the dictionary is the target's.
    """

    def __init__(
        self,
        models: Sequence[Any],
        net_input: dict[str, Tensor],
        hypotheses: Sequence[Tensor],
        dictionary: Any,
    ) -> None:
        pad, eos = dictionary.pad(), dictionary.eos()
        self.special = (pad, eos)
        self.models = models
        self.source = net_input["src_tokens"].cpu()
        self.target = data_utils.collate_tokens(list(hypotheses), pad, eos).cpu()
        self.input = {k: v for k, v in net_input.items() if k != "prev_output_tokens"}
        self.input["prev_output_tokens"] = data_utils.collate_tokens(
            list(hypotheses), pad, eos, move_eos_to_beginning=True
        )

    @cached_property
    @torch.no_grad()
    def extras(self) -> list[dict[str, Any]]:
        """What the heads of each model expose."""
        return [model(features_only=True, **self.input)[1] for model in self.models]

    def inside(self, tokens: Tensor) -> Tensor:
        """Return which tokens are neither padding nor the end of sentence."""
        pad, eos = self.special
        return tokens.ne(pad) & tokens.ne(eos)

    def dependencies(self, key: str) -> Tensor | None:
        """Return where the dependency heads of one side attend, ``(B, T, T)``; None if none exist.

        ``key`` is ``src_dependency`` or ``tgt_dependency``.
        """
        heads = [torch.cat(extra[key], 1).mean(1) for extra in self.extras if key in extra]
        return average(heads) if heads else None

    def distances(self, key: str) -> dict[int, list[list[float]]]:
        """Return distances by layer, from 1, and sentence; empty if none are measured.

        ``key`` is ``src_distances``, or ``tgt_distances``, of the states that read each token.
        Models that do not measure them in a layer do not count there.
        """
        measured: dict[int, list[Tensor]] = {}
        for model, extra in zip(self.models, self.extras, strict=True):
            side = model.encoder if key == "src_distances" else model.decoder
            if key in extra:
                for layer, heads in zip(side.exposing_layers["distances"], extra[key], strict=True):
                    measured.setdefault(layer, []).append(heads.mean(1))
        inside = self.inside(self.source if key == "src_distances" else self.target)
        by_layer = {}
        for layer, distances in sorted(measured.items()):
            mean = average(distances).cpu()
            if key == "tgt_distances":  # state t + 1 reads what state t predicted
                mean = mean.roll(-1, 1)
            by_layer[layer] = [row[words].tolist() for row, words in zip(mean, inside, strict=True)]
        return by_layer

    def between_tokens(self, attention: Tensor, rows: Tensor, columns: Tensor) -> list[Tensor]:
        """Return each sentence's matrix, without padding and the end of sentence.

        ``attention`` is ``(B, R, C)``, from the tokens ``(B, R)`` to the tokens ``(B, C)``.
        """
        masks = zip(attention.cpu(), self.inside(rows), self.inside(columns), strict=True)
        return [matrix[attending][:, attended] for matrix, attending, attended in masks]

    def most_attended(self, attention: Tensor, rows: Tensor, columns: Tensor) -> list[list[int]]:
        """Return the position that each token of each sentence attends to most.

        The arguments are those of :meth:`between_tokens`, whose columns are the positions; -1
        stands for none, in an empty sentence.
        """
        matrices = self.between_tokens(attention, rows, columns)
        return [m.argmax(1).tolist() if m.size(1) else [-1] * len(m) for m in matrices]

    @torch.no_grad()
    def cross_attention(self, layers: Iterable[int] | None = None) -> list[Tensor]:
        """Return the cross-attention of decoder layers, ``(B, T, S)``; runs the decoder for each.

        ``layers`` count from 1; None stands for all that every model has.
        """
        encoder_input = {k: v for k, v in self.input.items() if k != "prev_output_tokens"}
        encoded = [model.encoder(**encoder_input) for model in self.models]
        if layers is None:
            layers = range(1, 1 + min(model.decoder.num_layers for model in self.models))
        tokens = self.input["prev_output_tokens"]
        means = []
        for layer in layers:
            extras = [
                model.decoder(tokens, out, features_only=True, alignment_layer=layer - 1)[1]
                for model, out in zip(self.models, encoded, strict=True)
            ]
            means.append(average([extra["attn"][0] for extra in extras]))
        return means


def average(values: Sequence[Tensor]) -> Tensor:
    """Average over models."""
    return torch.stack([*values]).mean(0)
