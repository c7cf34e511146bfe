"""Sentence pairs as models print them, made by hand."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from syncattn_fairseq.data.words import join_text, link_words
from syncattn_fairseq.inference.record import Record, SideRecord, write_record
from syncattn_lab.printed.sentences import PrintedSentence, make_side

Links = Iterable[tuple[int, int]]


def printed(
    target: str,
    translation: str | None = None,
    source: str = "",
    scheme: str = "subword_nmt",
    source_heads: list[int] | None = None,
    target_heads: list[int] | None = None,
    links: Links | None = None,
    layer_links: Mapping[tuple[int, int], Links] | None = None,
    source_distances: Mapping[int, list[float]] | None = None,
    target_distances: Mapping[int, list[float]] | None = None,
    forced: bool = False,
) -> PrintedSentence:
    """Make a pair from the subwords of both sides; links are of subwords."""
    sides = []
    for text, heads, distances in (
        (source, source_heads, source_distances),
        (target, target_heads, target_distances),
    ):
        side = make_side(text.split(), scheme)
        sides.append(replace(side, heads=heads, distances=dict(distances or {})))
    lengths = [side.lengths for side in sides]
    if translation is None:
        translation = join_text(target.split(), scheme)
    return PrintedSentence(
        translation,
        *sides,
        None if links is None else link_words(links, *lengths),
        {layer: link_words(each, *lengths) for layer, each in (layer_links or {}).items()},
        forced,
    )


def line(target: str, translation: str | None = None, source: str = "", **fields: Any) -> str:
    """Return the line of ``syncattn-translate --jsonl`` for what `printed` takes."""
    sentence = printed(target, translation, source, **fields)
    texts = str(sentence.source), sentence.translation
    sides = []
    for text, side in zip(texts, (sentence.source, sentence.target), strict=True):
        shown = side.heads, None, side.distances, side.spans
        sides.append(SideRecord(text, side.words, side.subwords, side.lengths, *shown))
    links = None if sentence.links is None else sorted(sentence.links)
    layers = {layer: sorted(each) for layer, each in sentence.layer_links.items()}
    record = Record(*sides, -1.0, sentence.forced, "", links, layers)
    return write_record(record) + "\n"
