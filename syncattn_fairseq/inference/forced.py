"""Forced decoding of given translations, and the heads' attention in the process.

Matrices are moved to the CPU whole, so that a device is waited for once per matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

from .recorded_attention import record_attention

#: The prefixes of source and target in the names of what models expose.
SIDES = {"source": "src", "target": "tgt"}


class ForcedDecoding:
    """The outputs of an ensemble for a batch of given translations (teacher forcing).

    Attention weights are averaged over the models.

    Args:
        models: the ensemble, in evaluation mode.
        net_input: ``src_tokens``, ``src_lengths`` and any other input of the encoder.
        translations: the tokens of each sentence, with the end of sentence.
        dictionary: fairseq's dictionary of the target.
    """

    def __init__(
        self,
        models: Sequence[Any],
        net_input: dict[str, Tensor],
        translations: Sequence[Tensor],
        dictionary: Any,
    ) -> None:
        self.models = models
        self._pad, self._eos = dictionary.pad(), dictionary.eos()
        self._target = data_utils.collate_tokens(list(translations), self._pad, self._eos)
        self._tokens = {"source": net_input["src_tokens"].cpu(), "target": self._target.cpu()}
        self._encoder_input = {k: v for k, v in net_input.items() if k != "prev_output_tokens"}
        self._before = data_utils.collate_tokens(
            list(translations), self._pad, self._eos, move_eos_to_beginning=True
        )

    @cached_property
    @torch.no_grad()
    def _outputs(self) -> list[tuple[Tensor, dict[str, Any]]]:
        """Return the decoder features and exposed attention of each model."""
        inputs = {**self._encoder_input, "prev_output_tokens": self._before}
        return [model(features_only=True, **inputs) for model in self.models]

    def read_dependencies(self, side: str) -> list[np.ndarray] | None:
        """Return the attention weights of the dependency heads, or None without such heads.

        Args:
            side: ``source`` or ``target``.

        Returns:
            For each sentence of n subwords the mean over the heads, ``(n, n)``, row = dependent.
        """
        key = f"{SIDES[side]}_dependency"
        found = [torch.cat(extra[key], 1).mean(1) for _, extra in self._outputs if key in extra]
        return self._crop(average(found), side, side) if found else None

    def read_distances(self, side: str) -> list[dict[int, list[float]]]:
        """Return the syntactic distances measured by gated heads in source or target.

        A layer's mean is over the models that measure distances there. The distance of a target's
        subword belongs to the state that reads the subword.

        Args:
            side: ``source`` or ``target``.

        Returns:
            For each sentence the distances of its subwords by layer, from 1; empty without any.
        """
        key = f"{SIDES[side]}_distances"
        measured: dict[int, list[Tensor]] = {}
        for model, (_, extra) in zip(self.models, self._outputs, strict=True):
            if key in extra:
                stack = model.encoder if side == "source" else model.decoder
                for layer, heads in zip(
                    stack.exposing_layers["distances"], extra[key], strict=True
                ):
                    measured.setdefault(layer, []).append(heads.mean(1))
        inside = self._inside(side)
        sentences: list[dict[int, list[float]]] = [{} for _ in inside]
        for layer, distances in sorted(measured.items()):
            mean = average(distances).cpu()
            if side == "target":  # state t + 1 reads what state t predicted
                mean = mean.roll(-1, 1)
            for by_layer, row, words in zip(sentences, mean, inside, strict=True):
                by_layer[layer] = row[words].tolist()
        return sentences

    def read_links(self, layer: int | None = None) -> list[np.ndarray]:
        """Return the cross-attention weights of a decoder layer, averaged over its heads.

        Args:
            layer: from 1; None: the layer that each model aligns with.

        Returns:
            For each pair of n source and m target subwords an ``(m, n)`` matrix.
        """
        if layer is None:
            attention = average([extra["attn"][0] for _, extra in self._outputs])
        else:
            [attention] = self._attend([layer])
        return self._crop(attention, "target", "source")

    def read_links_of_layers(self) -> dict[int, list[np.ndarray]]:
        """Return the result of `read_links` for every decoder layer common to all models.

        The decoder runs once for each layer.
        """
        numbers = range(1, 1 + min(model.decoder.num_layers for model in self.models))
        found = zip(numbers, self._attend(numbers), strict=True)
        return {number: self._crop(attention, "target", "source") for number, attention in found}

    def read_heads(self) -> list[tuple[dict[str, np.ndarray], dict[str, Any]]]:
        """Return the attention weights of every head of a single model, not of an ensemble.

        Returns:
            For each pair the attention of each of `PARTS`, ``(layers, heads, rows, columns)``, with
            the end of sentence, and the kinds of these heads, for each layer.

        Raises:
            DataError: the model has attention of another form.
        """
        [model] = self.models
        found = record_attention(model, {**self._encoder_input, "prev_output_tokens": self._before})
        kinds = {part: tuple(layer.kinds for layer in layers) for part, layers in found.items()}
        seen = {side: tokens.ne(self._pad) for side, tokens in self._tokens.items()}
        sides = {"encoder": ("source",) * 2, "decoder": ("target",) * 2}
        sides["cross"] = "target", "source"
        sentences = []
        for row in range(len(self._target)):
            arrays = {}
            for part, layers in found.items():
                rows, columns = (seen[side][row] for side in sides[part])
                cropped = [layer.attention[row].cpu()[:, rows][..., columns] for layer in layers]
                size = int(rows.sum()), int(columns.sum())
                every = torch.stack(cropped) if cropped else torch.zeros(0, 0, *size)
                arrays[part] = every.float().numpy()
            sentences.append((arrays, kinds))
        return sentences

    @torch.no_grad()
    def read_scores(self) -> list[float]:
        """Return the mean log-probability of each translation's subwords and its end.

        Probabilities are averaged over the models.
        """
        rows = []
        for model, (features, extra) in zip(self.models, self._outputs, strict=True):
            logits = model.decoder.output_layer(features)
            logs = model.get_normalized_probs((logits, extra), log_probs=True)
            rows.append(logs.gather(-1, self._target.unsqueeze(-1)).squeeze(-1).float())
        logs = torch.stack(rows).logsumexp(0) - np.log(len(rows))
        counted = self._target.ne(self._pad)
        means: list[float] = ((logs * counted).sum(1) / counted.sum(1)).tolist()
        return means

    @torch.no_grad()
    def _attend(self, layers: Iterable[int]) -> Iterator[Tensor]:
        encoded = [model.encoder(**self._encoder_input) for model in self.models]
        for layer in layers:
            options = {"features_only": True, "alignment_layer": layer - 1}
            found = [
                model.decoder(self._before, output, **options)[1]["attn"][0]
                for model, output in zip(self.models, encoded, strict=True)
            ]
            yield average(found)

    def _inside(self, side: str) -> Tensor:
        """Return a mask of the source or target tokens except padding and the end of sentence."""
        tokens = self._tokens[side]
        return tokens.ne(self._pad) & tokens.ne(self._eos)

    def _crop(self, attention: Tensor, rows: str, columns: str) -> list[np.ndarray]:
        """Return each sentence's matrix, without padding and the end of sentence."""
        parts = zip(attention.cpu(), self._inside(rows), self._inside(columns), strict=True)
        return [matrix[row][:, column].numpy() for matrix, row, column in parts]


def average(values: Sequence[Tensor]) -> Tensor:
    """Return the elementwise mean of tensors, one from each model."""
    return torch.stack([*values]).mean(0)
