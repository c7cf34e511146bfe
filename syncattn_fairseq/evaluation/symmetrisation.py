"""Two alignments of the same sentence, one of each translation direction, made into one.

Koehn et al. (IWSLT 2005) begin with the links that both directions have and grow them by
neighbouring links that one of them has. Which neighbour may be added has been read in two ways,
and papers seldom say which one they used:

========= =================================== ==================================================
variant   a neighbour is added if             as in
========= =================================== ==================================================
``moses`` either of its words is unaligned    the paper, and Moses's ``symal``
``lilt``  both of its words are unaligned,    ``alignment-scripts`` of Lilt, behind many AERs on
          so that growth is diagonal only     Vilar et al.'s German-English gold alignments
========= =================================== ==================================================

A link may take a word from the next one, so the result depends on the order. It is that of
``symal`` in both variants: links by target position, then by source position; around each its
neighbours as in `_NEIGHBOURS`; a link added behind the current one is visited in the same pass, and
passes are repeated until one adds nothing. (Lilt's script goes by source position first, and takes
neighbours in the order in which Python happens to keep a set.)

Links are (source, target), 0-based. `forward` is what a model of source to target says, as a rule
one source word for each target word, `backward` what a model of target to source says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from .alignment import Link

VARIANTS: Mapping[str, Callable[[Iterable[bool]], bool]] = {"moses": any, "lilt": all}
"""How many of the two words of a neighbour must be unaligned."""

_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
"""Steps of target and source position."""


def intersection(forward: AbstractSet[Link], backward: AbstractSet[Link]) -> set[Link]:
    """Keep the links that both directions have."""
    return {*forward} & backward


def union(forward: AbstractSet[Link], backward: AbstractSet[Link]) -> set[Link]:
    """Keep the links that either direction has."""
    return {*forward, *backward}


def grow_diag(forward: AbstractSet[Link], backward: AbstractSet[Link], variant: str) -> set[Link]:
    """Grow the intersection by neighbouring links of the union, diagonal neighbours included.

    Args:
        forward: links of one sentence.
        backward: links of the same sentence.
        variant: ``moses`` or ``lilt`` (see the module's table).

    Raises:
        KeyError: for an unknown variant.
    """
    enough = VARIANTS[variant]
    candidates = union(forward, backward)
    links = intersection(forward, backward)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    ordered = _in_order(candidates)
    growing = True
    while growing:
        growing = False
        for i, j in ordered:
            if (i, j) not in links:
                continue
            for down, right in _NEIGHBOURS:
                source, target = i + right, j + down
                if (source, target) in candidates and enough(
                    (source not in sources, target not in targets)
                ):
                    links.add((source, target))
                    sources.add(source)
                    targets.add(target)
                    growing = True
    return links


def final_and(
    links: AbstractSet[Link], forward: AbstractSet[Link], backward: AbstractSet[Link]
) -> set[Link]:
    """Add the links of which both words are unaligned, first forward's, then backward's.

    Args:
        links: what there is already.
        forward: links of one direction.
        backward: links of the other.
    """
    result = set(links)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    for i, j in (*_in_order(forward), *_in_order(backward)):
        if i not in sources and j not in targets:
            result.add((i, j))
            sources.add(i)
            targets.add(j)
    return result


def grow_diag_final_and(
    forward: AbstractSet[Link], backward: AbstractSet[Link], variant: str
) -> set[Link]:
    """Apply `grow_diag`, then `final_and` (with ``lilt`` that script's grow-diagonal-final)."""
    return final_and(grow_diag(forward, backward, variant), forward, backward)


SYMMETRISATIONS: Mapping[str, Callable[[AbstractSet[Link], AbstractSet[Link]], set[Link]]] = {
    "intersection": intersection,
    "union": union,
    **{f"grow-diag-{variant}": partial(grow_diag, variant=variant) for variant in VARIANTS},
    **{
        f"grow-diag-final-and-{variant}": partial(grow_diag_final_and, variant=variant)
        for variant in VARIANTS
    },
}
"""All ways by name, each a function of the forward and the backward links of one sentence."""


def _in_order(links: AbstractSet[Link]) -> list[Link]:
    return sorted(links, key=lambda link: (link[1], link[0]))
