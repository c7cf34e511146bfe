"""Contrastive pairs: does a model give the right translation more probability than a wrong one?

The wrong translation differs by a single error, such as a verb in the wrong number (Sennrich 2017).
A pair is right if the right translation has a higher probability than each wrong one; equal ones
are not. Files are our own, of LingEval97, or of ContraPro::

    SOURCE <tab> RIGHT <tab> WRONG [<tab> KIND [<tab> DISTANCE]]

    [{"source": ..., "reference": ...,                                             LingEval97
      "errors": [{"type": ..., "contrastive": ..., "distance": 3}, ...]}, ...]

    [{"src segment": ..., "ref segment": ..., "src pronoun": ..., "ref pronoun": ..., ContraPro
      "ante distance": 1, "errors": [{"contrastive": ...}, ...]}, ...]

The errors of a sentence in LingEval97 are pairs of their own, those in ContraPro are one pair with
several wrong translations, whose kind is the pronoun and its translation, ``it:er``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json
from syncattn_fairseq.base.numbers import read_whole
from syncattn_fairseq.base.text import read_lines

from .group_scores import ALL, Counts, GroupScore, GroupTable, score_groups

DISTANCES = ("0", "1", "2", "3-4", "5-9", "10-14", "15+")
"""Ranges of the distance in words that the error of a contrastive pair spans."""
_FIRST = (1, 2, 3, 5, 10, 15)
_COLUMNS = ("source", "right", "wrong", "kind", "distance")
#: What a line of text cannot hold.
_NOT_IN_A_LINE = ("\n", "\r")
#: Pairs that are scored at a time.
_BLOCK = 500

Scorer = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""Returns the log-probability of each translation, given the sources and the translations."""


@dataclass(frozen=True)
class ContrastivePair:
    """A source with a right translation and one or more wrong translations.

    Attributes:
        source: the source.
        right: its right translation.
        wrong: one or more wrong ones.
        kind: of the error; empty: unknown.
        distance: in words, or in sentences, of what the error is about; None: unknown.
    """

    source: str
    right: str
    wrong: tuple[str, ...]
    kind: str = ""
    distance: int | None = None


def read_contrastive(path: str | Path) -> list[ContrastivePair]:
    """Read contrastive pairs: JSON from a ``.json`` file, tab-separated columns from any other.

    Raises:
        DataError: something is missing or wrong, or there is no pair.
    """
    read = _read_json if str(path).endswith(".json") else _read_columns
    pairs = [*read(path)]
    if not pairs:
        raise DataError(
            f"{path}: has no pairs; give a source, a right and a wrong translation on each line"
        )
    return pairs


def _read_columns(path: str | Path) -> Iterator[ContrastivePair]:
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if number == 1 and tuple(columns) == _COLUMNS[: len(columns)]:
            continue
        if not 3 <= len(columns) <= len(_COLUMNS):
            raise DataError(
                f"{path}:{number}: the line has {len(columns)} columns; write source, right "
                "translation, wrong translation and, if they are known, kind and distance, "
                "separated by tabs"
            )
        source, right, wrong, kind, distance = [*columns, "", ""][: len(_COLUMNS)]
        yield _make_pair(f"{path}:{number}", source, right, [wrong], kind, distance or None)


def _read_json(path: str | Path) -> Iterator[ContrastivePair]:
    content = read_json(path)
    if not isinstance(content, list):
        raise DataError(f"{path}: is not a list of sentences, as in LingEval97 and ContraPro")
    for number, entry in enumerate(content, 1):
        where = f"{path}: sentence {number}"
        errors = entry.get("errors") if isinstance(entry, dict) else None
        if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
            raise DataError(
                f'{where}: the list "errors" is missing, as in LingEval97 and ContraPro'
            )
        if "ref segment" in entry:
            pronouns = (entry.get(f"{side} pronoun") for side in ("src", "ref"))
            yield _make_pair(
                where,
                entry.get("src segment"),
                entry["ref segment"],
                [error.get("contrastive") for error in errors],
                ":".join(str(pronoun).lower() for pronoun in pronouns),
                entry.get("ante distance"),
            )
            continue
        for error in errors:
            yield _make_pair(
                where,
                entry.get("source"),
                entry.get("reference"),
                [error.get("contrastive")],
                error.get("type", ""),
                error.get("distance"),
            )


def _make_pair(
    where: str, source: Any, right: Any, wrong: Sequence[Any], kind: Any, distance: Any
) -> ContrastivePair:
    """Check and return a contrastive pair; a `DataError` begins with ``where``."""
    if not wrong:
        raise DataError(f"{where}: no wrong translation")
    named = [("source", source), ("right translation", right)]
    named += [("wrong translation", text) for text in wrong]
    for name, text in named:
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{where}: the {name} is missing or empty")
        if any(character in text for character in _NOT_IN_A_LINE):
            raise DataError(f"{where}: the {name} has several lines; write one line")
    if not isinstance(kind, str):
        raise DataError(f"{where}: the kind {str(kind)[:60]!r} is not a text")
    return ContrastivePair(
        source.strip(),
        right.strip(),
        tuple(text.strip() for text in wrong),
        " ".join(kind.split()),
        _read_distance(where, distance),
    )


def _read_distance(where: str, distance: Any) -> int | None:
    if distance is None:
        return None
    try:
        number = read_whole(distance.strip()) if isinstance(distance, str) else distance
        if type(number) is not int or number < 0:
            raise ValueError
    except ValueError:
        raise DataError(
            f"{where}: the distance {str(distance)[:60]!r} is not a whole number from 0"
        ) from None
    return number


def judge_pairs(
    pairs: Sequence[ContrastivePair],
    score: Scorer,
    progress: Callable[[int], None] = lambda done: None,
) -> list[bool]:
    """Return, for each pair, whether the right translation gets the highest log-probability.

    Args:
        pairs: the pairs.
        score: gives log-probabilities. A translation without one, NaN, is not preferred.
        progress: called with the number of pairs that were judged since.
    """
    verdicts: list[bool] = []
    rest = iter(pairs)
    while block := [*islice(rest, _BLOCK)]:
        texts = [(pair.source, text) for pair in block for text in (pair.right, *pair.wrong)]
        sources, translations = zip(*texts, strict=True)
        scores = iter(score(sources, translations))
        for pair in block:
            right, *wrong = islice(scores, 1 + len(pair.wrong))
            verdicts.append(all(right > other for other in wrong))
        progress(len(block))
    return verdicts


def score_contrastive(
    pairs: Sequence[ContrastivePair],
    verdicts: Mapping[str, Sequence[bool]],
    baseline: str | None = None,
) -> list[GroupScore]:
    """Compute the accuracy on contrastive pairs: of all, by kind of error, and by distance.

    Pairs of the same source are drawn and exchanged together.

    Args:
        pairs: the pairs.
        verdicts: by system, whether it judges each pair right.
        baseline: the system that the others are tested against; None: nothing is tested.

    Raises:
        DataError: no system is the baseline.
    """
    kinds = [*dict.fromkeys(pair.kind for pair in pairs)]
    tables = [_make_table(ALL, [ALL] * len(pairs), pairs, verdicts)]
    if len(kinds) > 1:
        tables.append(
            _make_table("kind", [pair.kind or "unknown" for pair in pairs], pairs, verdicts)
        )
    for kind in kinds:
        names = [_find_distance(pair.distance) if pair.kind == kind else "" for pair in pairs]
        if len({*names} - {""}) > 1:
            title = f"distance of {kind or 'unknown'}" if len(kinds) > 1 else "distance"
            tables.append(_make_table(title, names, pairs, verdicts, DISTANCES))
    return score_groups(tables, baseline)


def _find_distance(distance: int | None) -> str:
    return "" if distance is None else DISTANCES[sum(distance >= first for first in _FIRST)]


def _make_table(
    kind: str,
    names: Sequence[str],
    pairs: Sequence[ContrastivePair],
    verdicts: Mapping[str, Sequence[bool]],
    order: Sequence[str] | None = None,
) -> GroupTable:
    """Count right pairs by the name of their group; those without a name do not count."""
    distinct = dict.fromkeys(pair.source for pair in pairs)
    sources = {source: index for index, source in enumerate(distinct)}
    systems: dict[str, Counts] = {}
    for system, right in verdicts.items():
        counts = {name: np.zeros((len(sources), 2)) for name in dict.fromkeys(names) if name}
        for name, pair, is_right in zip(names, pairs, right, strict=True):
            if name:
                counts[name][sources[pair.source]] += is_right, 1
        systems[system] = counts
    return GroupTable(kind, "accuracy", systems, order)
