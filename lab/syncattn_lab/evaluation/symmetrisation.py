"""Symmetrise word alignments: combine both translation directions of a sentence.

Koehn et al. (IWSLT 2005) start with the links that both directions have, and add neighbouring links
that one of them has. There are two readings of which neighbours may be added, and papers seldom say
which one they used:

========= =================================== ==================================================
variant   a neighbour is added if             exactly as in
========= =================================== ==================================================
``moses`` either of its words is unaligned    Moses's ``symal``; the paper says the same
``lilt``  both of its words are unaligned,    ``combine_bidirectional_alignments.py`` of Lilt's
          so that growth is diagonal only     ``alignment-scripts``, behind many AERs on Vilar et
                                              al.'s German-English gold alignments
========= =================================== ==================================================

A link may take a word from the next one, so the result depends on the order. Moses visits links by
target position, then by source position, Lilt the other way round, and each has its own order for
the neighbours of a link. A link added after the current one is visited in the same pass, and passes
are repeated until one adds nothing. (Lilt's script takes the neighbours in the order of a Python
set; this is the order in Python 3.8 and later.)

fast_align's ``atools`` differs from Moses in a few links per thousand; it is not offered here.

Links are (source, target), 0-based. `forward` comes from a source-to-target model, usually with one
source word for each target word, `backward` from a target-to-source model.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from syncattn_fairseq.data.words import Link


@dataclass(frozen=True)
class Variant:
    """The settings of a variant of grow-diag: the neighbouring links to add, and their order."""

    enough: Callable[[Iterable[bool]], bool]
    """Whether a neighbour may be added, given whether its source and target word are unaligned."""
    order: Callable[[Link], Link]
    """Sort key of the links, which are extended in this order."""
    steps: Sequence[Link]
    """The offsets (source, target) from a link to its neighbours, in the order of their trial."""


VARIANTS: Mapping[str, Variant] = {
    "moses": Variant(
        any,
        lambda link: (link[1], link[0]),
        ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1)),
    ),
    "lilt": Variant(all, lambda link: link, ((-1, -1), (-1, 1), (1, 1), (1, -1))),
}


def grow_diag(forward: AbstractSet[Link], backward: AbstractSet[Link], variant: str) -> set[Link]:
    """Extend the intersection of two alignments by neighbouring links of their union (grow-diag).

    The variant is ``moses`` or ``lilt`` (see the module's table).
    """
    how = VARIANTS[variant]
    candidates, links = {*forward, *backward}, {*forward} & backward
    missing = candidates - links
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    ordered = sorted(candidates, key=how.order)
    growing = True
    while growing and missing:
        growing = False
        for i, j in ordered:
            if (i, j) not in links:
                continue
            for right, down in how.steps:
                source, target = i + right, j + down
                if (source, target) in missing and how.enough(
                    (source not in sources, target not in targets)
                ):
                    missing.remove((source, target))
                    links.add((source, target))
                    sources.add(source)
                    targets.add(target)
                    growing = True
    return links


def add_final(
    links: AbstractSet[Link], forward: AbstractSet[Link], backward: AbstractSet[Link]
) -> set[Link]:
    """Add links whose two words are both unaligned: forward's links first, then backward's links.

    Of two links that share a word, the one nearer to the start wins, so it makes no difference
    whether links are sorted by source or by target position.
    """
    result = set(links)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    for i, j in (*sorted(forward), *sorted(backward)):
        if i not in sources and j not in targets:
            result.add((i, j))
            sources.add(i)
            targets.add(j)
    return result


SYMMETRISATIONS = (
    *("intersection", "union"),
    *(f"grow-diag-{variant}" for variant in VARIANTS),
    *(f"grow-diag-final-and-{variant}" for variant in VARIANTS),
)
"""The names of all methods that combine the alignments of two directions."""


def symmetrise(
    forward: AbstractSet[Link], backward: AbstractSet[Link], methods: Collection[str]
) -> dict[str, set[Link]]:
    """Combine two alignments of a sentence by each of the given methods of `SYMMETRISATIONS`.

    ``grow-diag-final-and`` is `grow_diag`, then `add_final` (Lilt's script calls it
    grow-diagonal-final).
    """
    combined = {"intersection": {*forward} & backward, "union": {*forward, *backward}}
    for variant in VARIANTS:
        if any(method.endswith(variant) for method in methods):
            grown = grow_diag(forward, backward, variant)
            combined[f"grow-diag-{variant}"] = grown
            combined[f"grow-diag-final-and-{variant}"] = add_final(grown, forward, backward)
    return {method: combined[method] for method in methods}
