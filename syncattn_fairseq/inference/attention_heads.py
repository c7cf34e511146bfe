"""A model's answer about its attention heads: where each head of each layer attends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np

from ..base.errors import DataError, shorten
from ..data.words import check_choice
from .answers import Sentence

#: The kinds of attention: in the encoder, in the decoder, and from the decoder to the source.
PARTS = ("encoder", "decoder", "cross")
#: The token that a row of decoder attention stands for: the one that the state reads, or
#: predicts.
ROWS = ("input", "predicted")
#: fairseq's end of sentence, which decoders also read first.
END = "</s>"
_NAME = re.compile(rf"({'|'.join(PARTS)})\.([1-9][0-9]{{0,3}})\.([1-9][0-9]{{0,3}})")


class HeadName(NamedTuple):
    """The name of an attention head, written ``encoder.3.1``: part, layer and number.

    Attributes:
        part: one of `PARTS`.
        layer: from 1.
        number: in its layer, from 1.
    """

    part: str
    layer: int
    number: int

    def __str__(self) -> str:
        return f"{self.part}.{self.layer}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the name of an attention head.

        Args:
            text: such as ``encoder.3.1``.

        Raises:
            DataError: it is no name of a head.
        """
        found = _NAME.fullmatch(text)
        if found is None:
            raise DataError(
                f"{shorten(text, 60)!r} is not the name of an attention head; give "
                f"PART.LAYER.HEAD, such as encoder.3.1 (parts: {', '.join(PARTS)})"
            )
        return cls(found[1], int(found[2]), int(found[3]))


@dataclass(frozen=True)
class AttentionHeads:
    """The attention weights of all heads of a model for one sentence pair.

    S tokens of the source are its subwords and its end. The decoder has T states: state t reads
    token t of ``</s>`` and the translation's subwords, and predicts token t of these subwords and
    their end. Each row sums to 1, but for kinds of heads that do not normalise. Of an empty
    sentence, which no model reads, all arrays are empty.

    Args:
        source: the subwords of the source.
        target: the subwords of the translation.
        encoder: ``(layers, heads, S, S)``; no layers if the encoder has no attention.
        decoder: ``(layers, heads, T, T)``.
        cross: ``(layers, heads, T, S)``.
        kinds: the kind of each head, such as ``ordinary``, by part and layer.
    """

    source: Sentence
    target: Sentence
    encoder: np.ndarray
    decoder: np.ndarray
    cross: np.ndarray
    kinds: Mapping[str, tuple[tuple[str, ...], ...]]

    @cached_property
    def source_tokens(self) -> list[str]:
        """The source tokens, for rows and columns of ``encoder`` and the columns of ``cross``."""
        return [*self.source.pieces, END] if self.cross.size else []

    @cached_property
    def read_tokens(self) -> list[str]:
        """The target tokens read by the decoder's states, beginning with ``</s>``."""
        return [END, *self.target.pieces] if self.cross.size else []

    @cached_property
    def written_tokens(self) -> list[str]:
        """The target tokens predicted by the decoder's states, ending with ``</s>``."""
        return [*self.target.pieces, END] if self.cross.size else []

    @property
    def names(self) -> list[HeadName]:
        """The names of all attention heads, ordered by part, layer and number."""
        return [
            HeadName(part, layer, number)
            for part in PARTS
            for layer, kinds in enumerate(self.kinds.get(part, ()), 1)
            for number in range(1, 1 + len(kinds))
        ]

    def find(self, name: HeadName | str) -> HeadName:
        """Return the name of an attention head, after checking that the model has this head.

        Args:
            name: such as ``encoder.3.1``.

        Raises:
            DataError: the model has no such head.
        """
        given = HeadName.parse(name) if isinstance(name, str) else name
        if not self.kinds:
            raise DataError(
                f"{given}: the sentence is empty or too long, so the model has not read it and "
                "no head has attended"
            )
        if given not in self.names:
            known = [str(head) for head in self.names if head.part == given.part]
            what = f"{known[0]} to {known[-1]}" if known else f"no {given.part} heads"
            raise DataError(f"{given}: no such head; the model has {what}")
        return given

    def of_head(self, name: HeadName | str, rows: str | None = None) -> np.ndarray:
        """Return one head's attention weights between words, without the end of sentence.

        Args:
            name: such as ``encoder.3.1``.
            rows: as for `of_words`.

        Raises:
            DataError: the model has no such head.
        """
        part, layer, number = self.find(name)
        found: np.ndarray = self.of_words(part, rows)[layer - 1, number - 1]
        return found

    def of_words(self, part: str, rows: str | None = None) -> np.ndarray:
        """Return the attention weights of all heads between words, without the end of sentence.

        A word attends as its last subword does. It gets what its subwords get together.

        Args:
            part: one of `PARTS`.
            rows: of the decoder's states, which one stands for a word: that which reads its last
                subword, ``input``, or that which predicts it, ``predicted``. None: ``input`` in
                ``decoder``, ``predicted`` in ``cross``.

        Returns:
            ``(layers, heads, words, words)``.

        Raises:
            ValueError: there is no such part, or no such choice of rows.
        """
        pieces, of_rows, of_columns = self._of_pieces(part, rows)
        if not pieces.size:
            sizes = len(of_rows.lengths), len(of_columns.lengths)
            return np.zeros((*pieces.shape[:2], *sizes))
        starts = [0, *accumulate(of_columns.lengths)][:-1]
        last = pieces[:, :, np.cumsum(of_rows.lengths) - 1]
        found: np.ndarray = np.add.reduceat(last, starts, axis=-1)
        return found

    def parents(self, part: str, rows: str | None = None) -> np.ndarray:
        """Return for each head which word each word attends to most, like :attr:`.Parse.heads`.

        A word attends as its last subword does; the most attended subword stands for its word.

        Args:
            part: ``encoder`` or ``decoder``.
            rows: as for `of_words`.

        Returns:
            ``(layers, heads, words)``, words from 1; 0 is the word itself.

        Raises:
            ValueError: there is no such part, or no such choice of rows.
        """
        check_choice("part", part, PARTS[:2])
        pieces, sentence, _ = self._of_pieces(part, rows)
        return find_parents(pieces, sentence.lengths)

    def to_bertviz(self, *parts: str) -> dict[str, Any]:
        """Return the keyword arguments for bertviz's ``head_view`` and ``model_view``.

        Args:
            parts: which of `PARTS`; none: all that the model has. bertviz wants as many layers in
                each part.

        Returns:
            For each part a list of tensors ``(1, heads, rows, columns)``, one a layer, as
            ``encoder_attention``, ``decoder_attention`` and ``cross_attention``;
            ``encoder_tokens``, and ``decoder_tokens``, which are those that the states read.

        Raises:
            ValueError: there is no such part.
        """
        import torch

        for part in parts:
            check_choice("part", part, PARTS)
        given: dict[str, Any] = {}
        for part in parts or [part for part in PARTS if self.kinds.get(part)]:
            layers: np.ndarray = getattr(self, part)
            given[f"{part}_attention"] = [torch.tensor(layer).unsqueeze(0) for layer in layers]
        return given | {"encoder_tokens": self.source_tokens, "decoder_tokens": self.read_tokens}

    def to_inseq(self) -> dict[str, Any]:
        """Return arguments for inseq's ``MultiDimensionalFeatureAttributionSequenceOutput``.

        inseq numbers what is attended first, then what attends, then layers and heads.

        Returns:
            ``source`` and ``target``, tokens as strings, the latter those that are predicted;
            ``source_attributions``, ``(S, T, layers, heads)``; ``target_attributions``, ``(T, T,
            layers, heads)``, NaN where a token was not read yet, without the ``</s>`` that is read
            first; ``sequence_scores``, with ``encoder_self_attentions``, ``(S, S, layers, heads)``;
            and the number of dimensions behind the tokens'. None for parts that the model has not.
        """
        import torch

        parts = {name: torch.tensor(getattr(self, name)).permute(3, 2, 0, 1) for name in PARTS}
        known = {name: part if part.numel() else None for name, part in parts.items()}
        target = known["decoder"]
        if target is not None:
            columns = torch.arange(len(target))
            read = torch.cat([target[1:], torch.full_like(target[:1], torch.nan)])
            later = columns.unsqueeze(1) >= columns
            target = read.masked_fill(later[..., None, None], torch.nan)
        encoder = known["encoder"]
        return {
            "source": self.source_tokens,
            "target": self.written_tokens,
            "source_attributions": known["cross"],
            "target_attributions": target,
            "sequence_scores": None if encoder is None else {"encoder_self_attentions": encoder},
            "_num_dimensions": 2,
        }

    def _of_pieces(self, part: str, rows: str | None) -> tuple[np.ndarray, Sentence, Sentence]:
        """Return attention between subwords, and the sentences of the rows and the columns."""
        check_choice("part", part, PARTS)
        rows = rows or ("predicted" if part == "cross" else "input")
        check_choice("rows", rows, ROWS)
        attention: np.ndarray = getattr(self, part)
        if part == "encoder":
            return attention[:, :, :-1, :-1], self.source, self.source
        read = slice(1, None) if rows == "input" else slice(None, -1)
        if part == "cross":
            return attention[:, :, read, :-1], self.target, self.source
        return attention[:, :, read, read], self.target, self.target


def find_parents(attention: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
    """Return which word each word attends to most, for each head of each layer.

    Args:
        attention: ``(layers, heads, n, n)``, between the subwords of a sentence.
        lengths: the number of subwords of each word.

    Returns:
        ``(layers, heads, words)``, words from 1; 0 is the word itself. The last subword of a word
        attends for the word, and the most attended subword stands for its word.
    """
    words = np.arange(1, 1 + len(lengths))
    if not attention.size:
        return np.zeros((*attention.shape[:2], len(words)), dtype=np.int64)
    owners = np.repeat(words, lengths)
    looked = owners[attention[:, :, np.cumsum(lengths) - 1].argmax(-1)]
    return np.where(looked == words, 0, looked)


def make_unread(source: Sentence, target: Sentence) -> AttentionHeads:
    """Return `AttentionHeads` without weights, for a sentence pair whose source is empty."""
    nothing = np.zeros((0, 0, 0, 0))
    return AttentionHeads(source, target, nothing, nothing, nothing, {})
