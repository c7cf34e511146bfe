"""Score analyses and gold data of other words by the groups of words that both share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.data.spans import Units
from syncattn_fairseq.data.words import Link

from ..printed.sentences import PrintedSentence, PrintedSide
from .gold_words import GoldWords, find_groups
from .scoring import Gold, Output


def group_words(
    outputs: Mapping[str, Output], gold: Gold, words: Mapping[str, Sequence[GoldWords]]
) -> tuple[dict[str, Output], Gold]:
    """Merge the words of analyses and of gold data into groups whose boundaries both share.

    Groups are those of `.gold_words.find_groups`.

    The source of gold becomes the text of the groups, separated by spaces.

    Args:
        outputs: the output of each system, by its name.
        gold: the gold data, whose heads, labels and links are those of the gold words.
        words: the gold words of ``source``, ``target`` or both.

    Raises:
        DataError: sentences or the words of systems differ, or gold is not of these words.
    """
    known: dict[str, Sequence[list[int] | None]] = {}
    grouped = {}
    for name, output in outputs.items():
        sides = [side for side in words if side == "source" or output.forced is not None]
        analysed: Packed[PrintedSentence] = Packed()
        found: dict[str, Packed[list[int] | None]] = {side: Packed() for side in sides}
        for number, sentence in enumerate(output.analysed):
            starts: dict[str, list[bool]] = {}
            for side in sides:
                printed: PrintedSide = getattr(sentence, side)
                of_words = None
                if words[side][number].spans and printed.words and not printed.hides_words:
                    with naming(f"system {name}: sentence {number + 1}: {side}"):
                        units = find_groups(printed, words[side][number])
                    starts[side], of_words = units.starts, units.of_words
                found[side].append(of_words)
            analysed.append(sentence.group_words(starts.get("source"), starts.get("target")))
        part = "beam" if output.forced is None else "forced"
        grouped[name] = replace(output, **{part: analysed})
        for side in sides:
            if not any(found[side]):  # it printed no words
                continue
            if side == "source" and side not in known:
                gold = replace(gold, source=Packed(_list_sources(gold, analysed, found[side])))
            if known.setdefault(side, found[side]) != found[side]:
                raise DataError(
                    f"system {name}: splits the {side} into other words than the first systems; "
                    "give analyses of models that use the same splitter"
                )
    return grouped, _move_gold(gold, known)


def _list_sources(
    gold: Gold, analysed: Sequence[PrintedSentence], known: Sequence[list[int] | None]
) -> Iterator[str]:
    """Yield the text of each source as groups, or unchanged if the groups are not known."""
    assert gold.source is not None  # its words were read of it
    for text, sentence, of_words in zip(gold.source, analysed, known, strict=True):
        words = ("".join(word.split()) for word in sentence.source.words)
        yield text if of_words is None else " ".join(words)


def _move_gold(gold: Gold, known: Mapping[str, Sequence[list[int] | None]]) -> Gold:
    """Return the gold data of groups, given the group of each gold word, or None if unknown."""
    moved: dict[str, Any] = {}
    for side, groups in known.items():
        given = {name: getattr(gold, name) for name in (f"{side}_heads", f"{side}_labels")}
        moved |= {name: Packed[Any]() for name, rows in given.items() if rows is not None}
        for number, of_words in enumerate(groups):
            rows = {name: given[name][number] for name in given if name in moved}
            with naming(f"{side}: sentence {number + 1}"):
                for name, row in _move_rows(rows, of_words or []).items():
                    moved[name].append(row)
    if gold.alignments is not None:
        moved["alignments"] = tuple(Packed(_move_links(each, known)) for each in gold.alignments)
    return replace(gold, **moved)


def _move_rows(rows: Mapping[str, Any], of_words: list[int]) -> dict[str, Any]:
    """Return the heads of groups, and their labels if there are any; None without heads."""
    heads = next(iter(rows.values()), None)
    if not heads or not of_words:
        return dict.fromkeys(rows)
    for name, row in rows.items():
        if row and len(row) != len(of_words):
            fault = f"{len(row)} {name.partition('_')[2]} for {len(of_words)} words"
            raise DataError(f"{fault}; give the output of the parser that wrote the spans")
    units = Units([], of_words)
    moved: dict[str, Any] = {}
    for name, row in rows.items():
        of_heads = name.endswith("heads")
        moved[name] = units.map_heads(row) if of_heads else row and units.map_labels(row, heads)
    return moved


def _move_links(
    alignments: Sequence[set[Link]], known: Mapping[str, Sequence[list[int] | None]]
) -> Iterator[set[Link]]:
    for number, links in enumerate(alignments):
        for place, side in enumerate(("source", "target")):
            of_words = known[side][number] if side in known else None
            if of_words is None:
                continue
            if any(link[place] >= len(of_words) for link in links):
                count = f"{len(of_words)} words of the {side}"
                raise DataError(
                    f"gold links of sentence {number + 1}: a link is outside the {count}"
                )
            if side == "source":
                links = {(of_words[i], j) for i, j in links}
            else:
                links = {(i, of_words[j]) for i, j in links}
        yield links
