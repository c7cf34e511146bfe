"""Word alignments: read and write links, turn subword links into word links, compute AER."""

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.link_lines import read_links
from syncattn_fairseq.data.words import Link

from ..printed.sentences import make_link


@dataclass(frozen=True)
class AlignmentScore:
    """Alignment error rate, precision and recall over a corpus, as fractions."""

    aer: float
    precision: float
    recall: float
    margin: float
    """Half the width of the 95 % interval of AER over samples of sentences."""


def alignment_error_rate(
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]],
    hypothesis: Sequence[AbstractSet[Link]],
) -> AlignmentScore:
    """Compute AER, precision and recall (Och and Ney, 2003) over the whole corpus.

    With A the hypothesis, S the sure and P the possible links, which include the sure ones:
    AER = 1 - (|A & S| + |A & P|) / (|A| + |S|), precision = |A & P| / |A|, recall =
    |A & S| / |S|. An empty denominator means that no error is possible: AER is then 0, precision
    and recall are 1. Each argument has a set of links per sentence, ``possible`` also without the
    sure ones.

    Raises:
        DataError: the numbers of sentences differ.
    """
    if not len(sure) == len(possible) == len(hypothesis):
        raise DataError(
            f"alignments of {len(sure)} (sure), {len(possible)} (possible) and "
            f"{len(hypothesis)} (hypothesis) sentences cannot be compared"
        )
    return score_counts(Packed(map(count_links, sure, possible, hypothesis)))


def count_links(
    sure: AbstractSet[Link], possible: AbstractSet[Link], hypothesis: AbstractSet[Link]
) -> tuple[int, int, int, int]:
    """Return the numbers |A & S|, |A & P|, |A| and |S| of a sentence for `alignment_error_rate`."""
    right = hypothesis & (sure | possible)
    return len(hypothesis & sure), len(right), len(hypothesis), len(sure)


def score_counts(each: Sequence[tuple[int, int, int, int]]) -> AlignmentScore:
    """Compute AER, precision and recall of a corpus from its sentences' `count_links`."""
    sure = sum(row[0] for row in each)
    possible = sum(row[1] for row in each)
    predicted = sum(row[2] for row in each)
    gold = sum(row[3] for row in each)
    return AlignmentScore(
        aer=1 - (sure + possible) / (predicted + gold) if predicted + gold else 0.0,
        precision=possible / predicted if predicted else 1.0,
        recall=sure / gold if gold else 1.0,
        margin=_margin(Packed((f + r, p + w) for f, r, p, w in each)),
    )


def _margin(parts: Sequence[tuple[int, int]]) -> float:
    """Return half the 95 % interval of the ratio of two sums (delta method)."""
    above, below = sum(a for a, _ in parts), sum(b for _, b in parts)
    if len(parts) < 2 or not below:
        return 0.0
    squares = sum((a - above / below * b) ** 2 for a, b in parts)
    return 1.96 * math.sqrt(squares * len(parts) / (len(parts) - 1)) / below


def read_alignments(
    path: str | Path, one_based: bool = False
) -> tuple[Sequence[set[Link]], Sequence[set[Link]]]:
    """Read sure and possible links from a file in the Pharaoh or the talp format.

    A line holds the links of one sentence, source-target, separated by spaces, tabs or commas, with
    or without fast_align's score (``0-0 1-2 ||| -3.2``). ``i-j`` is sure, whatever probability
    follows it (``i-j:0.9``). A link that is only possible is ``i?j`` in a Pharaoh file, which
    usually counts from 0, and ``ipj`` in a talp file, which usually counts from 1, like the
    German-English gold alignments of Vilar et al. (IWSLT 2006).

    Args:
        path: the file.
        one_based: whether it counts from 1.

    Returns:
        One set of 0-based sure links and one of (only) possible links for each line.

    Raises:
        DataError: something is not a link.
    """
    sure: Packed[set[Link]] = Packed()
    possible: Packed[set[Link]] = Packed()
    for number, line in enumerate(read_lines(path), start=1):
        links: dict[bool, set[Link]] = {True: set(), False: set()}  # by whether they are sure
        with naming(f"{path}:{number}"):
            found = read_links(line)
        for source, target, is_sure in found:
            link = make_link(source - one_based, target - one_based)
            if min(link) < 0:
                raise DataError(
                    f"{path}:{number}: '{source}-{target}' counts from 0; leave out --one-based"
                )
            links[is_sure].add(link)
        sure.append(links[True])
        possible.append(links[False])
    return sure, possible


def say_one_based(
    gold: tuple[Iterable[set[Link]], Iterable[set[Link]]], printed: Iterable[Iterable[Link]]
) -> str:
    """Return a warning if gold links seem to count from 1, or else an empty text.

    They seem to if none has a 0 but printed links do.
    """
    sentences = (sure | possible for sure, possible in zip(*gold, strict=True))
    linked = [any(0 in link for link in links) for links in sentences if links]
    if any(linked) or not linked or not any(0 in link for links in printed for link in links):
        return ""
    return (
        f"{len(linked)} sentences have gold links, but no link has the number 0, so words seem "
        "to be counted from 1; if they are, give --one-based"
    )


def format_links(links: AbstractSet[Link]) -> str:
    """Format the links of a sentence in the Pharaoh format: ``i-j``, from 0, sorted."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))
