"""Read the output of ``fairseq-generate`` and ``fairseq-interactive``, in the corpus's order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..base.files import read_lines
from .analysis_lines import DistancesOf, HeadsOf, Link, LinksOf, Topic, read_line, read_links

_LINE = re.compile(r"([SHDA])-([0-9]{1,9})\t(.*)")


@dataclass(frozen=True, slots=True)
class DecodedSentence:
    """One sentence of a decoder's output; None for lines that were not printed."""

    hypothesis: str
    """H- line: the tokens, as subwords unless fairseq was told to join them."""
    translation: str
    """D- line, the hypothesis after fairseq's own post-processing; otherwise the H- line."""
    source: str = ""
    """S- line: the tokens, like those of the hypothesis."""
    source_heads: list[int] | None = None
    """X- line: 1-based head of each source word, 0 = root."""
    hypothesis_heads: list[int] | None = None
    links: set[Link] | None = None
    """A- line: source and target positions of linked subwords, 0-based."""
    layer_links: dict[LinksOf, set[Link]] = field(default_factory=dict)
    """L- lines: the same for decoder layers, or for single heads."""
    source_distances: dict[int, list[float]] = field(default_factory=dict)
    """X- lines: syntactic distances of the source's subwords, for each gated layer, from 1."""
    hypothesis_distances: dict[int, list[float]] = field(default_factory=dict)


def read_decoded(path: str | Path) -> list[DecodedSentence]:
    """Read a decoder's output; from an n-best list, the first hypothesis of each sentence.

    A file without any H- line is taken as plain text, one translation per line.

    Raises:
        DataError: the file is empty, a sentence is missing or appears twice, or a line cannot be
            read.
    """
    lines = list(read_lines(path))
    if not lines:
        raise DataError(f"{path}: the file is empty; give what fairseq-generate printed")
    fields: dict[int, dict[str | Topic, Any]] = {}
    latest: dict[str | Topic, int] = {}  # the sentence of the latest line of each kind
    for number, line in enumerate(lines, 1):
        try:
            found = _read_line(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from None
        if found is None:
            continue
        sentence, kind, value = found
        known = fields.setdefault(sentence, {})
        if kind not in known:
            known[kind] = value
        elif kind == "S" or latest[kind] != sentence:
            raise DataError(
                f"{path}:{number}: sentence {sentence} appears twice; the file must hold one output"
            )
        latest[kind] = sentence
    if "H" not in latest:
        return [DecodedSentence(hypothesis=line, translation=line) for line in lines]
    del lines  # a million sentences need memory
    for sentence in range(max(fields) + 1):
        if "H" not in fields.get(sentence, {}):
            raise DataError(
                f"{path}: sentence {sentence} has no H- line; decode with "
                "--required-batch-size-multiple 1, or fairseq drops part of the last batch"
            )
    return [_make_sentence(fields.pop(sentence)) for sentence in range(len(fields))]


def _make_sentence(known: Mapping[str | Topic, Any]) -> DecodedSentence:
    def by_layer(side: str) -> dict[int, list[float]]:
        topics = [topic for topic in known if isinstance(topic, DistancesOf) and topic.side == side]
        return {topic.layer: known[topic] for topic in topics}

    return DecodedSentence(
        hypothesis=known["H"],
        translation=known.get("D", known["H"]),
        source=known.get("S", ""),
        source_heads=known.get(HeadsOf("source", "word")),
        hypothesis_heads=known.get(HeadsOf("hypothesis", "word")),
        links=known.get("A"),
        layer_links={t: set(links) for t, links in known.items() if isinstance(t, LinksOf)},
        source_distances=by_layer("source"),
        hypothesis_distances=by_layer("hypothesis"),
    )


def _read_line(line: str) -> tuple[int, str | Topic, Any] | None:
    """Return the sentence, the kind and the value of a line; None for any other line."""
    if ours := read_line(line):
        return ours
    match = _LINE.match(line)
    if not match:
        return None
    kind, sentence, value = match[1], int(match[2]), match[3]
    if kind in "HD":
        _, tab, text = value.partition("\t")
        if not tab:
            raise ValueError("expected a score, a tab and the text")
        return sentence, kind, text
    if kind == "A":
        try:
            return sentence, kind, set(read_links(value))
        except ValueError as error:
            raise ValueError(f"{error}; decode with --print-alignment hard") from None
    return sentence, kind, value
