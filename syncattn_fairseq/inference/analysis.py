"""What a caller may ask a model about a sentence pair, and the model's complete answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .answers import Alignment, Distances, Parse, Sentence, Translation
from .attention_heads import AttentionHeads


@dataclass(frozen=True)
class Question:
    """The parts of an `Analysis` requested by a caller; a model omits unsupported parts.

    Attributes:
        parses: ask for the parses of both sides.
        links: ask for the links between their words.
        distances: ask for the syntactic distances of both sides.
        scores: ask for the log-probabilities of given translations.
        layer: the decoder layer whose links are read, from 1. None: the one that the model aligns
            with.
        head: the head of a decoder layer whose links are read, from 1. None: the mean of all.
        every_layer: ask for the links of each decoder layer, too.
        heads: ask where each head of each layer attends.
    """

    parses: bool = False
    links: bool = False
    distances: bool = False
    scores: bool = False
    layer: int | None = None
    head: int | None = None
    every_layer: bool = False
    heads: bool = False


@dataclass(frozen=True)
class Analysis:
    """A sentence pair's score, parses, alignments and attention; missing parts are None or empty.

    Attributes:
        source: the subwords of the source.
        translation: the translation, by the model or given.
        text: the source as it was given.
        forced: whether the translation was given.
        score: mean natural log-probability of the translation's subwords and its end. NaN if it was
            not computed.
        source_parse: where the encoder's dependency heads attend.
        target_parse: where the decoder's dependency heads attend.
        alignment: where the decoder attends in the source.
        layer_alignments: where each decoder layer attends in the source, by its number from 1.
        head: the head, from 1, whose attention the alignments show. None: the mean of all.
        source_distances: the syntactic distances of the source.
        target_distances: the syntactic distances of the translation.
        heads: where each head of each layer attends.
    """

    source: Sentence
    translation: Translation
    text: str = ""
    forced: bool = False
    score: float = float("nan")
    source_parse: Parse | None = None
    target_parse: Parse | None = None
    alignment: Alignment | None = None
    layer_alignments: Mapping[int, Alignment] = field(default_factory=dict)
    head: int | None = None
    source_distances: Distances | None = None
    target_distances: Distances | None = None
    heads: AttentionHeads | None = None
