"""What ``fairseq-generate`` and ``fairseq-interactive`` print, put back into the corpus's order."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..base.files import read_lines
from .alignment import Link

_LINE = re.compile(
    r"([SHDAL]|X(?=-\d+\t(?:source|hypothesis)\t(?:word|distance-\d+)\t))-(\d+)\t(.*)"
)


@dataclass(frozen=True)
class DecodedSentence:
    """One sentence of a decoder's output; None where nothing was printed."""

    hypothesis: str
    """H- line: the tokens, as subwords unless fairseq was told to join them."""
    translation: str
    """D- line, the hypothesis after fairseq's own post-processing; without one the H- line."""
    source: str = ""
    """S- line: the tokens, like those of the hypothesis."""
    source_heads: list[int] | None = None
    """X- line: 1-based head of each source word, 0 = root."""
    hypothesis_heads: list[int] | None = None
    links: set[Link] | None = None
    """A- line: source and target positions of linked subwords, 0-based."""
    layer_links: dict[int, set[Link]] = field(default_factory=dict)
    """L- lines: the same for each decoder layer, from 1."""
    source_distances: dict[int, list[float]] = field(default_factory=dict)
    """X- lines: syntactic distances of the source's subwords, for each gated layer, from 1."""
    hypothesis_distances: dict[int, list[float]] = field(default_factory=dict)


def read_decoded(path: str | Path) -> list[DecodedSentence]:
    """Read a decoder's output; of an n-best list the first hypothesis of each sentence.

    A file without a single H- line is taken as plain text, one translation per line.

    Raises:
        DataError: a sentence is missing or comes twice, or a line cannot be understood.
    """
    lines = list(read_lines(path))
    fields: dict[int, dict[str, Any]] = {}
    latest: dict[str, int] = {}  # the sentence that the latest line of each kind belongs to
    for number, line in enumerate(lines, 1):
        match = _LINE.match(line)
        if not match:
            continue
        kind, sentence, value = match[1], int(match[2]), match[3]
        if kind == "X":
            side, level, value = value.split("\t")
            kind = f"X {side} {level}"
        elif kind == "L":
            layer, _, value = value.partition("\t")
            kind = f"L {layer}"
        known = fields.setdefault(sentence, {})
        if kind not in known:
            try:
                known[kind] = _parser(kind)(value)
            except ValueError as error:
                raise DataError(f"{path}:{number}: {error}") from None
        elif kind == "S" or latest[kind] != sentence:
            raise DataError(
                f"{path}:{number}: sentence {sentence} comes a second time; the file must hold "
                "one output"
            )
        latest[kind] = sentence
    if "H" not in latest:
        return [DecodedSentence(hypothesis=line, translation=line) for line in lines]
    for sentence in range(max(fields) + 1):
        if "H" not in fields.get(sentence, {}):
            raise DataError(
                f"{path}: sentence {sentence} has no H- line; decode with "
                "--required-batch-size-multiple 1, or fairseq drops the end of the last batch"
            )
    return [_sentence(fields[sentence]) for sentence in range(len(fields))]


def _sentence(known: dict[str, Any]) -> DecodedSentence:
    return DecodedSentence(
        hypothesis=known["H"],
        translation=known.get("D", known["H"]),
        source=known.get("S", ""),
        source_heads=known.get("X source word"),
        hypothesis_heads=known.get("X hypothesis word"),
        links=known.get("A"),
        layer_links=_by_layer(known, "L "),
        source_distances=_by_layer(known, "X source distance-"),
        hypothesis_distances=_by_layer(known, "X hypothesis distance-"),
    )


def _by_layer(known: dict[str, Any], prefix: str) -> dict[int, Any]:
    return {int(k.removeprefix(prefix)): v for k, v in known.items() if k.startswith(prefix)}


def _scored_text(value: str) -> str:
    _, tab, text = value.partition("\t")
    if not tab:
        raise ValueError("expected a score, a tab and the text")
    return text


def _integers(value: str) -> list[int]:
    try:
        return [int(token) for token in value.split()]
    except ValueError:
        raise ValueError(f"expected heads, got {value[:60]!r}") from None


def _links(value: str) -> set[Link]:
    try:
        return {(int(i), int(j)) for i, j in (token.split("-") for token in value.split())}
    except ValueError:
        raise ValueError(
            f"expected links like 3-4, got {value[:60]!r}; decode with --print-alignment hard"
        ) from None


def _numbers(value: str) -> list[float]:
    try:
        return [float(token) for token in value.split()]
    except ValueError:
        raise ValueError(f"expected distances, got {value[:60]!r}") from None


def _parser(kind: str) -> Callable[[str], Any]:
    if kind.startswith("X"):
        return _integers if kind.endswith("word") else _numbers
    return {"H": _scored_text, "D": _scored_text, "A": _links, "L": _links}.get(kind[0], str)
