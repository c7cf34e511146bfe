"""What the heads of a model say about sources and hypotheses, as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TextIO, TypeAlias

import torch
from fairseq.data import data_utils
from torch import Tensor

from ..base.errors import DataError
from ..data.analysis_lines import DistancesOf, HeadsOf, LinksOf, Topic, write_line
from ..data.subwords import word_heads
from ..data.words import detect_scheme, word_lengths

Lines: TypeAlias = list[list[tuple[Topic, Sequence[Any]]]]
"""What is printed for each sentence, line by line."""


@dataclass
class AnalysisPrinter:
    """Prints the lines of :mod:`..data.analysis_lines` for each hypothesis.

    A word's head is the word that its final subword attends to (rule ``chain``); a word that
    attends to itself is a root. Nothing keeps the heads from forming a cycle. The distance of a
    hypothesis's token is that of the state that reads it. A link leads from each target token to
    the source token that the layer's cross-attention, averaged over heads, attends to most.

    Args:
        src_dict: dictionary of the source.
        tgt_dict: dictionary of the target.
        parses: print heads.
        distances: print distances.
        layer_alignments: print links.
        alignment_head: the head that the decoders show, from 1; 0 for their mean.
        schemes: how the subwords of the source and of the target are marked; None where only the
            dictionary can tell.
    """

    src_dict: Any
    tgt_dict: Any
    parses: bool = False
    distances: bool = False
    layer_alignments: bool = False
    alignment_head: int = 0
    schemes: tuple[str | None, str | None] = (None, None)

    def __post_init__(self) -> None:
        self.src_scheme, self.tgt_scheme = (
            scheme or detect_scheme(dictionary.symbols)
            for scheme, dictionary in zip(self.schemes, (self.src_dict, self.tgt_dict), strict=True)
        )

    @torch.no_grad()
    def print(
        self,
        models: Sequence[Any],
        net_input: dict[str, Tensor],
        ids: Tensor,
        hypotheses: Sequence[Tensor],
        output: TextIO,
    ) -> None:
        """Force one hypothesis per sentence through the models, and print what they say.

        Args:
            models: an ensemble; what their heads say is averaged.
            net_input: ``src_tokens``, ``src_lengths`` and what else the encoder takes.
            ids: ``(B,)`` numbers of the sentences.
            hypotheses: tokens of each, with the end of sentence.
            output: where to.

        Raises:
            DataError: no model has heads of the kind that is asked for.
        """
        forced = _Forced(models, net_input, hypotheses, self.tgt_dict)
        numbers = ids.tolist()
        lines: Lines = [[] for _ in numbers]
        if self.parses:
            self._parses(forced, lines)
        if self.distances:
            self._distances(forced, lines)
        if self.layer_alignments:
            self._links(forced, lines)
        for number, found in zip(numbers, lines, strict=True):
            for topic, values in found:
                print(write_line(number, topic, values), file=output)

    def _parses(self, forced: _Forced, lines: Lines) -> None:
        found = False
        for side, key, tokens, dictionary, scheme in (
            ("source", "src_dependency", forced.source, self.src_dict, self.src_scheme),
            ("hypothesis", "tgt_dependency", forced.target, self.tgt_dict, self.tgt_scheme),
        ):
            shown = [torch.cat(extra[key], 1) for extra in forced.extras if key in extra]
            attention = forced.mean([heads.mean(1) for heads in shown])
            if attention is None:
                continue
            found = True
            for row, heads in enumerate(forced.most_attended(attention, tokens, tokens)):
                words = [dictionary[token] for token in tokens[row][forced.inside(tokens)[row]]]
                by_word = word_heads(heads, word_lengths(words, scheme))
                lines[row].append((HeadsOf(side, "subword"), heads))
                lines[row].append((HeadsOf(side, "word"), by_word))
        if not found:
            raise DataError("--print-parses: the model has no dependency heads")

    def _distances(self, forced: _Forced, lines: Lines) -> None:
        extras = [extra for extra in forced.extras if "src_distances" in extra]
        if not extras:
            raise DataError("--print-distances: the model measures no syntactic distances")
        for side, key, tokens in (
            ("source", "src_distances", forced.source),
            ("hypothesis", "tgt_distances", forced.target),
        ):
            inside = forced.inside(tokens)
            for index, layer in enumerate(forced.distance_layers()):
                mean = forced.mean([extra[key][index].mean(1) for extra in extras])
                assert mean is not None
                if side == "hypothesis":  # state t + 1 reads what state t has predicted
                    mean = mean.roll(-1, 1)
                for row, values in enumerate(mean):
                    lines[row].append((DistancesOf(side, layer), values[inside[row]].tolist()))

    def _links(self, forced: _Forced, lines: Lines) -> None:
        for number, attention in enumerate(forced.cross_attention(), 1):
            attended = forced.most_attended(attention, forced.target, forced.source)
            for row, sources in enumerate(attended):
                # An empty source has nothing to be linked with.
                links = [(source, target) for target, source in enumerate(sources) if source >= 0]
                lines[row].append((LinksOf(number, self.alignment_head), links))


class _Forced:
    """Hypotheses that are forced through models."""

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
        self.source = net_input["src_tokens"]
        self.target = data_utils.collate_tokens(list(hypotheses), pad, eos)
        self.input = {k: v for k, v in net_input.items() if k != "prev_output_tokens"}
        self.input["prev_output_tokens"] = data_utils.collate_tokens(
            list(hypotheses), pad, eos, move_eos_to_beginning=True
        )

    @cached_property
    def extras(self) -> list[dict[str, Any]]:
        """What each model says of its heads."""
        return [model(features_only=True, **self.input)[1] for model in self.models]

    def inside(self, tokens: Tensor) -> Tensor:
        """Tell the tokens of the sentences from padding and the end of sentence."""
        pad, eos = self.special
        return tokens.ne(pad) & tokens.ne(eos)

    def distance_layers(self) -> list[int]:
        """Return the numbers of the layers that measure distances."""
        showing = (getattr(model.encoder, "showing", {}) for model in self.models)
        return next(filter(None, (layers.get("distances") for layers in showing)), [])

    @staticmethod
    def mean(values: Sequence[Tensor]) -> Tensor | None:
        """Average over models; None if none has a say."""
        return torch.stack(list(values)).mean(0) if values else None

    def most_attended(self, attention: Tensor, rows: Tensor, columns: Tensor) -> list[list[int]]:
        """Return where each token of each sentence attends to most.

        Positions count the tokens of the sentence, without padding and the end of sentence, which
        attend to nothing here and are attended to by nothing; -1 stands for nothing.

        Args:
            attention: ``(B, R, C)``.
            rows: the tokens that attend, ``(B, R)``.
            columns: the tokens that are attended to, ``(B, C)``.
        """
        outside = ~self.inside(columns)
        position = (~outside).cumsum(1) - 1
        best = position.gather(1, attention.masked_fill(outside.unsqueeze(1), -1.0).argmax(-1))
        return [row[inside].tolist() for row, inside in zip(best, self.inside(rows), strict=True)]

    def cross_attention(self) -> list[Tensor]:
        """Return each decoder layer's, ``(B, T, S)``, by one pass of the decoder for each."""
        encoder_input = {k: v for k, v in self.input.items() if k != "prev_output_tokens"}
        encoded = [model.encoder(**encoder_input) for model in self.models]
        layers = []
        for layer in range(min(model.decoder.num_layers for model in self.models)):
            attention = [
                model.decoder(
                    self.input["prev_output_tokens"],
                    encoder_out=encoder_out,
                    features_only=True,
                    alignment_layer=layer,
                )[1]["attn"][0]
                for model, encoder_out in zip(self.models, encoded, strict=True)
            ]
            mean = self.mean(attention)
            assert mean is not None
            layers.append(mean)
        return layers
