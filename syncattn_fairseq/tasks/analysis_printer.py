"""What the heads of a model say about sources and hypotheses, as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from torch import Tensor

from ..data.subwords import detect_scheme, word_heads, word_lengths
from .forced import Forced


@dataclass
class AnalysisPrinter:
    """Prints lines for each hypothesis, told apart by the columns behind its number.

    ::

        X-12  source      subword     1 1 1      the subword that each attends to most, from 0
        X-12  source      word        2 0        the same between words, from 1, 0 = root
        X-12  hypothesis  subword     0 0 1
        X-12  hypothesis  word        0 1
        X-12  source      distance-1  0.2 -0.1   syntactic distances of layer 1, mean over heads
        L-12  6           0-0 1-0                links of decoder layer 6, source-target, from 0

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
    """

    src_dict: Any
    tgt_dict: Any
    parses: bool = False
    distances: bool = False
    layer_alignments: bool = False

    def __post_init__(self) -> None:
        self.src_scheme = detect_scheme(self.src_dict.symbols)
        self.tgt_scheme = detect_scheme(self.tgt_dict.symbols)

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
            ValueError: no model has heads of the kind that is asked for.
        """
        forced = Forced(models, net_input, hypotheses, self.tgt_dict)
        numbers = ids.tolist()
        lines: list[list[str]] = [[] for _ in numbers]
        if self.parses:
            self._parses(forced, lines)
        if self.distances:
            self._distances(forced, lines)
        if self.layer_alignments:
            self._links(forced, lines)
        for number, found in zip(numbers, lines, strict=True):
            for line in found:
                kind, _, rest = line.partition("\t")
                print(f"{kind}-{number}\t{rest}", file=output)

    def _parses(self, forced: Forced, lines: list[list[str]]) -> None:
        found = False
        for side, key, tokens, dictionary, scheme in (
            ("source", "src_dependency", forced.source, self.src_dict, self.src_scheme),
            ("hypothesis", "tgt_dependency", forced.target, self.tgt_dict, self.tgt_scheme),
        ):
            attention = forced.dependencies(key)
            if attention is None:
                continue
            found = True
            for row, heads in enumerate(forced.most_attended(attention, tokens, tokens)):
                words = [dictionary[token] for token in tokens[row][forced.inside(tokens)[row]]]
                by_word = word_heads(heads, word_lengths(words, scheme))
                lines[row].append(f"X\t{side}\tsubword\t{_joined(heads)}")
                lines[row].append(f"X\t{side}\tword\t{_joined(by_word)}")
        if not found:
            raise ValueError("--print-parses: the model has no dependency heads")

    def _distances(self, forced: Forced, lines: list[list[str]]) -> None:
        for side, key in (("source", "src_distances"), ("hypothesis", "tgt_distances")):
            layers = forced.distances(key)
            if not layers:
                raise ValueError("--print-distances: the model measures no syntactic distances")
            for layer, rows in layers.items():
                for row, values in enumerate(rows):
                    numbers = _joined(f"{value:.4f}" for value in values)
                    lines[row].append(f"X\t{side}\tdistance-{layer}\t{numbers}")

    def _links(self, forced: Forced, lines: list[list[str]]) -> None:
        for number, attention in enumerate(forced.cross_attention(), 1):
            attended = forced.most_attended(attention, forced.target, forced.source)
            for row, sources in enumerate(attended):
                links = (f"{source}-{target}" for target, source in enumerate(sources))
                lines[row].append(f"L\t{number}\t{_joined(links)}")


def _joined(values: Any) -> str:
    return " ".join(map(str, values))
