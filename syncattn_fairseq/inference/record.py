"""An analysis as a line of JSON, as written by ``syncattn-translate --jsonl``.

::

    {"score": -0.21, "forced": false, "fault": "",
     "source": {"text": "The man sleeps.", "words": ["The", "man", "sleeps", "."],
                "spans": [[0, 3], [4, 7], [8, 14], [14, 15]],
                "subwords": ["▁The", "▁man", "▁sleep", "s", "▁."], "lengths": [1, 1, 2, 1],
                "heads": [2, 3, 0, 3], "tree": [2, 3, 0, 3],
                "distances": {"1": [0.1, -0.2, 0.3, 0.9, 0]}},
     "target": {"text": "Der Mann schläft.", ...},
     "links": [[0, 0], [1, 1], [2, 2], [3, 3]], "layer_links": {"6": [[0, 0], ...]}}

* ``score``: mean natural log-probability of the translation's subwords and its end; null if it is
  unknown.
* ``forced``: whether the translation was given to the model (``--force``).
* ``fault``: what may be wrong with the translation, in words; empty: nothing.
* ``lengths``: the number of subwords of each word.
* ``spans``: where each word is in the text, in characters from 0; missing if the text has other
  words, as after a tokenizer that changes characters.
* ``heads``: for each word the word that it attends to most, from 1, 0 for itself; they may form
  cycles. ``tree``: the most probable tree, 0 for its root. A model without dependency heads has
  neither.
* ``distances``: for each gated layer, from 1, the gap before each subword; only of models that
  measure distances.
* ``links``: words of source and target, from 0. ``layer_links``: the same of each decoder layer,
  ``"6"``, or of one head of it, ``"6.3"``, if they were asked for.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..data.spans import Span
from ..data.words import Link, locate_words
from .analysis import Analysis
from .answers import Distances, Parse, Sentence

#: Digits after the point of distances and scores, and the largest number that either may be.
_DIGITS, _LARGEST = 6, 1e6
_OTHER = "not a line of syncattn-translate --jsonl"
#: What a line of text cannot hold: line ends, and halves of characters.
_NOT_IN_A_LINE = re.compile("[\n\r\ud800-\udfff]")


@dataclass(frozen=True)
class SideRecord:
    """The source or target of a `Record` (analysed pair); missing parts are None or empty.

    Attributes:
        text: as it was given, or as the model wrote it.
        words: the words that the subwords make up.
        subwords: what the model read or wrote.
        lengths: the number of subwords of each word.
        heads: the word that each word attends to most, from 1, 0 for itself.
        tree: each word's parent in the most probable tree, from 1, 0 for the root.
        distances: for each gated layer, from 1, the gap before each subword.
        spans: where each word is in the text, in characters from 0; None if it has other words.
    """

    text: str
    words: list[str]
    subwords: list[str]
    lengths: list[int]
    heads: list[int] | None = None
    tree: list[int] | None = None
    distances: dict[int, list[float]] = field(default_factory=dict)
    spans: list[Span] | None = None


@dataclass(frozen=True)
class Record:
    """The content of one line of ``syncattn-translate --jsonl``: an analysed sentence pair.

    Attributes:
        source: the source.
        target: the translation.
        score: mean log-probability of its subwords and its end, or None if it is unknown.
        forced: whether the translation was given to the model.
        fault: what may be wrong with the translation; empty: nothing.
        links: linked words, or None if the model shows none.
        layer_links: those of decoder layers, by the layer and its head, from 1; head 0 stands for
            the mean of all heads.
    """

    source: SideRecord
    target: SideRecord
    score: float | None = None
    forced: bool = False
    fault: str = ""
    links: list[Link] | None = None
    layer_links: dict[tuple[int, int], list[Link]] = field(default_factory=dict)


def make_record(analysis: Analysis, fault: str = "") -> Record:
    """Convert the analysis of a sentence pair to a record, the content of a line of JSON.

    Args:
        analysis: of one sentence pair.
        fault: what may be wrong with the translation; empty: nothing.
    """
    translation = analysis.translation
    parses = analysis.source_parse, analysis.target_parse
    distances = analysis.source_distances, analysis.target_distances
    source = _make_side(analysis.text, analysis.source, parses[0], distances[0])
    target = _make_side(str(translation), translation.sentence, parses[1], distances[1])
    head = analysis.head or 0
    alignments = analysis.layer_alignments
    return Record(
        source,
        target,
        score=None if math.isnan(analysis.score) else round(analysis.score, _DIGITS),
        forced=analysis.forced,
        fault=fault,
        links=None if analysis.alignment is None else analysis.alignment.links,
        layer_links={(layer, head): found.links for layer, found in alignments.items()},
    )


def _make_side(
    text: str, sentence: Sentence, parse: Parse | None, distances: Distances | None
) -> SideRecord:
    layers = distances.layers if distances else {}
    return SideRecord(
        text,
        sentence.words,
        [*sentence.pieces],
        sentence.lengths,
        heads=parse.heads if parse else None,
        tree=parse.tree if parse else None,
        distances={n: [round(gap, _DIGITS) for gap in gaps] for n, gaps in layers.items()},
        spans=locate_words(sentence.words, text),
    )


def write_record(record: Record) -> str:
    """Return the record of an analysed sentence pair as a line of JSON, without a line end."""
    return json.dumps(describe_record(record), ensure_ascii=False)


def describe_record(record: Record) -> dict[str, Any]:
    """Return the record of an analysed pair as a dictionary, written as JSON by `write_record`."""
    row: dict[str, Any] = {"score": record.score, "forced": record.forced, "fault": record.fault}
    for name in ("source", "target"):
        side: SideRecord = getattr(record, name)
        row[name] = {key: value for key, value in vars(side).items() if value not in (None, {})}
    if record.links is not None:
        row["links"] = record.links
    if record.layer_links:
        row["layer_links"] = {
            name_layer(layer): links for layer, links in record.layer_links.items()
        }
    return row


def name_layer(layer: tuple[int, int]) -> str:
    """Return a decoder layer, or a head of it, as text, such as ``6`` or ``6.3``."""
    number, head = layer
    return f"{number}.{head}" if head else str(number)


def read_record(line: str) -> Record:
    """Parse a line of JSON written by `write_record`, and check the line's values.

    Raises:
        ValueError: the line is not JSON, or something in it is missing, of another type, or does
            not fit the words.
    """
    try:
        row = json.loads(line)
    except RecursionError:
        raise ValueError(
            "not a line of syncattn-translate --jsonl: it is nested too deeply"
        ) from None
    except ValueError:
        raise ValueError("not a line of syncattn-translate --jsonl: it is not JSON") from None
    if not isinstance(row, dict):
        raise ValueError("not a line of syncattn-translate --jsonl: expected an object")
    source, target = (_read_side(name, row.get(name)) for name in ("source", "target"))
    sizes = len(source.words), len(target.words)
    layers = row.get("layer_links", {})
    _check("layer_links", layers, isinstance(layers, dict))
    score, forced, fault = row.get("score"), row.get("forced", False), row.get("fault", "")
    _check("score", score, score is None or _is_number(score))
    _check("forced", forced, isinstance(forced, bool))
    _check("fault", fault, _is_text(fault))
    return Record(
        source,
        target,
        score,
        forced,
        fault,
        _read_links("links", row["links"], sizes) if "links" in row else None,
        {_read_layer(name): _read_links(name, links, sizes) for name, links in layers.items()},
    )


def _read_side(name: str, side: Any) -> SideRecord:
    _check(name, side, isinstance(side, dict))
    text, words, subwords = (side.get(key) for key in ("text", "words", "subwords"))
    lengths = side.get("lengths")
    _check(f"{name}.text", text, _is_text(text))
    _check(f"{name}.words", words, _is_list(words, _is_text))
    _check(f"{name}.subwords", subwords, _is_list(subwords, _is_text))
    size = len(words)
    fits = _is_list(lengths, lambda number: type(number) is int and number > 0)
    fits = fits and len(lengths) == size and sum(lengths) == len(subwords)
    _check(f"{name}.lengths", lengths, fits)
    for key in ("heads", "tree"):
        numbers = side.get(key)
        fits = numbers is None or _is_list(numbers, lambda n: type(n) is int and 0 <= n <= size)
        _check(f"{name}.{key}", numbers, fits and len(numbers or words) == size)
    distances = side.get("distances", {})
    _check(f"{name}.distances", distances, isinstance(distances, dict))
    by_layer = {}
    for layer, gaps in distances.items():
        place = f"{name}.distances.{layer}"
        _check(place, layer, _is_layer(layer))
        _check(place, gaps, _is_list(gaps, _is_number) and len(gaps) == len(subwords))
        by_layer[int(layer)] = [float(gap) for gap in gaps]
    spans = side.get("spans")
    _check(f"{name}.spans", spans, spans is None or _are_spans(spans, len(text), size))
    places = None if spans is None else [(begin, end) for begin, end in spans]
    trees = side.get("heads"), side.get("tree")
    return SideRecord(text, words, subwords, lengths, *trees, by_layer, places)


def _are_spans(spans: Any, longest: int, count: int) -> bool:
    def is_span(span: Any) -> bool:
        is_pair = _is_list(span, lambda number: type(number) is int) and len(span) == 2
        return is_pair and 0 <= span[0] <= span[1] <= longest

    return _is_list(spans, is_span) and len(spans) == count


def _read_links(name: str, links: Any, sizes: Sequence[int]) -> list[Link]:
    def is_link(link: Any) -> bool:
        is_pair = _is_list(link, lambda number: type(number) is int) and len(link) == 2
        return is_pair and all(0 <= n < size for n, size in zip(link, sizes, strict=True))

    _check(name, links, _is_list(links, is_link))
    return [(source, target) for source, target in links]


def _read_layer(name: str) -> tuple[int, int]:
    layer, dot, head = name.partition(".")
    _check("layer_links", name, _is_layer(layer) and (not dot or _is_layer(head)))
    return int(layer), int(head or 0)


def _is_layer(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text[:9]) > 0 and len(text) < 9


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not _NOT_IN_A_LINE.search(value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < _LARGEST


def _is_list(value: Any, is_sound: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(is_sound, value))


def _check(name: str, value: Any, is_sound: bool) -> None:
    if not is_sound:
        raise ValueError(f"{name}: unexpected value {json.dumps(value)[:60]}")
