"""Print what a model's heads predict in sources and hypotheses, as lines of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO, TypeAlias

from torch import Tensor

from ..base.errors import DataError
from ..data.analysis_lines import DistancesOf, HeadsOf, LinksOf, Topic, write_line
from ..data.words import count_subwords, detect_scheme, find_word_heads
from .forced_decoding import ForcedDecoding

Lines: TypeAlias = list[list[tuple[Topic, Sequence[Any]]]]
"""The lines to print for each sentence."""


@dataclass
class AnalysisPrinter:
    """Prints the lines of :mod:`..printed.analysis_lines` for each hypothesis, as options say.

    A word's head is the word that its last subword attends to (rule ``chain``); a word that
    attends to itself is a root. The heads may form a cycle. The distance of a hypothesis's token
    belongs to the state that reads it. A link leads from each target token to the source token
    that the layer's cross-attention, averaged over heads, attends to most. Schemes say how both
    sides' subwords are marked; None: as the dictionary shows.
    """

    src_dict: Any
    tgt_dict: Any
    options: Any
    schemes: tuple[str | None, str | None] = (None, None)

    def __post_init__(self) -> None:
        self.src_scheme, self.tgt_scheme = (
            scheme or detect_scheme(dictionary.symbols)
            for scheme, dictionary in zip(self.schemes, (self.src_dict, self.tgt_dict), strict=True)
        )

    def print(
        self,
        models: Sequence[Any],
        net_input: dict[str, Tensor],
        ids: Tensor,
        hypotheses: Sequence[Tensor],
        output: TextIO,
    ) -> None:
        """Force one hypothesis per sentence through an ensemble, and print what its heads predict.

        Args:
            net_input: ``src_tokens``, ``src_lengths`` and any other input of the encoder.
            ids: ``(B,)`` numbers of the sentences.
            hypotheses: tokens of each sentence, with the end of sentence.

        Raises:
            DataError: no model has the required heads.
        """
        forced = ForcedDecoding(models, net_input, hypotheses, self.tgt_dict)
        numbers = ids.tolist()
        lines: Lines = [[] for _ in numbers]
        if self.options.print_parses:
            self._parses(forced, lines)
        if self.options.print_distances:
            self._distances(forced, lines)
        if self.options.print_layer_alignments:
            self._links(forced, lines)
        for number, analyses in zip(numbers, lines, strict=True):
            for topic, values in analyses:
                print(write_line(number, topic, values), file=output)

    def _parses(self, forced: ForcedDecoding, lines: Lines) -> None:
        has_heads = False
        for side, key, tokens, dictionary, scheme in (
            ("source", "src_dependency", forced.source, self.src_dict, self.src_scheme),
            ("hypothesis", "tgt_dependency", forced.target, self.tgt_dict, self.tgt_scheme),
        ):
            attention = forced.dependencies(key)
            if attention is None:
                continue
            has_heads = True
            for row, heads in enumerate(forced.most_attended(attention, tokens, tokens)):
                words = [dictionary[token] for token in tokens[row][forced.inside(tokens)[row]]]
                by_word = find_word_heads(heads, count_subwords(words, scheme))
                lines[row].append((HeadsOf(side, "subword"), heads))
                lines[row].append((HeadsOf(side, "word"), by_word))
        if not has_heads:
            raise DataError("--print-parses: the model has no dependency heads")

    def _distances(self, forced: ForcedDecoding, lines: Lines) -> None:
        for side, key in (("source", "src_distances"), ("hypothesis", "tgt_distances")):
            layers = forced.distances(key)
            if not layers:
                raise DataError("--print-distances: the model measures no syntactic distances")
            for layer, rows in layers.items():
                for row, values in enumerate(rows):
                    lines[row].append((DistancesOf(side, layer), values))

    def _links(self, forced: ForcedDecoding, lines: Lines) -> None:
        for number, attention in enumerate(forced.cross_attention(), 1):
            attended = forced.most_attended(attention, forced.target, forced.source)
            for row, sources in enumerate(attended):
                # In an empty source there is nothing to link to.
                links = [(source, target) for target, source in enumerate(sources) if source >= 0]
                lines[row].append((LinksOf(number, self.options.alignment_head), links))
