"""Choose attention heads and print where they look, for ``syncattn-show --heads``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import count_lines
from syncattn_fairseq.inference.attention_heads import ROWS, AttentionHeads, HeadName
from syncattn_fairseq.parsing.parser import Parse as DependencyTree

if TYPE_CHECKING:
    from syncattn_fairseq.inference import Model

    from ..report.example import Example, Side

#: The most sentences of the test set from which the strongest heads are chosen.
_CHOOSING = 200
#: The text within which the self-attention of each part looks.
_SIDES = {"encoder": "source", "decoder": "target"}


def choose_heads(args: argparse.Namespace, model: Model) -> tuple[list[HeadName], str | None]:
    """Return the attention heads to show, and which token a row of the decoder stands for.

    Heads are those that the arguments name, or else the strongest.

    Args:
        args: the arguments ``heads``, ``rows``, ``gold`` and ``number``.
        model: the model of the heads.

    Raises:
        DataError: a name is wrong, or none is given and no gold parse to choose by.
    """
    names = [HeadName.parse(name) for name in args.heads]
    if names:
        return names, args.rows
    if not args.gold:
        raise DataError(
            "--heads: name heads, such as encoder.1.1, or give a test set with PREFIX.heads.en, "
            "in which the strongest heads are found: --gold PREFIX"
        )
    numbers = [n for n in range(1, 1 + _count(args, model)) if n not in args.number]
    found, rows = find_strongest(model, _read(args.gold, model, numbers), args.rows)
    if not found:
        raise DataError(
            f"--heads: the strongest heads cannot be found: no sentence of {args.gold}, besides "
            "the shown sentences, has a parse over the words that the model reads; name heads, "
            "such as encoder.1.1"
        )
    return found, rows


def _count(args: argparse.Namespace, model: Model) -> int:
    source, _ = model.languages
    return min(count_lines(Path(f"{args.gold}.{source}")), _CHOOSING)


def _read(prefix: str, model: Model, numbers: Iterable[int]) -> list[Example]:
    from ..report.example import read_example

    return [read_example(prefix, *model.languages, number) for number in numbers]


def find_strongest(
    model: Model, examples: Sequence[Example], rows: str | None
) -> tuple[list[HeadName], str | None]:
    """Find the encoder head and the decoder head that look at gold dependency heads most often.

    Args:
        model: the model of the heads.
        examples: sentence pairs with gold parses.
        rows: which token a row of the decoder stands for; None: whichever finds more.

    Returns:
        The names of the heads, and which token a row of the decoder head stands for.
    """
    parsed = [x for x in examples if x.source.heads or (x.target and x.target.heads)]
    sources = [example.source.text for example in parsed]
    targets = [example.target.text if example.target else "" for example in parsed]
    found = model.heads(sources, targets, parses=list_parses(model, parsed)) if parsed else []
    best: dict[str, tuple[float, HeadName, str]] = {}
    for part, side in _SIDES.items():
        for choice in ROWS if part == "decoder" else ROWS[:1]:
            if part == "decoder" and rows not in (None, choice):
                continue
            total: np.ndarray | None = None
            for heads, example in zip(found, parsed, strict=True):
                gold = getattr(example, side)
                guess = heads.parents(part, choice)
                if not gold or not gold.heads or guess.shape[2:] != (len(gold.heads),):
                    continue
                if not guess.size:
                    continue
                right = (guess == np.array(gold.heads)).sum(-1)
                total = right if total is None else total + right
            if total is not None and total.max() > best.get(part, (-1,))[0]:
                layer, number = np.unravel_index(total.argmax(), total.shape)
                name = HeadName(part, int(layer) + 1, int(number) + 1)
                best[part] = float(total.max()), name, choice
    chosen = best["decoder"][2] if "decoder" in best else rows
    return [name for _, name, _ in best.values()], chosen


def list_parses(model: Model, examples: Sequence[Example]) -> list[DependencyTree] | None:
    """Return the gold parses of the sources as input of a model that reads parses, or None.

    The result is None if the model reads no parse, or if a source has no gold parse.

    Args:
        model: the model.
        examples: the sentence pairs.
    """
    if not model.reads:
        return None
    parses = []
    for source in (example.source for example in examples):
        if source.heads is None or ("labels" in model.reads and source.labels is None):
            return None
        spans = source.spans or ()
        parses.append(DependencyTree(source.heads, source.labels or [], spans=spans))
    return parses


def describe_heads(
    heads: AttentionHeads,
    names: Sequence[HeadName],
    rows: str | None,
    target: str,
    example: Example | None,
) -> Iterator[str]:
    """Yield lines that draw where each attention head looks in a sentence pair.

    Args:
        heads: the attention heads of the sentence pair.
        names: the names of the heads to show.
        rows: which token a row of the decoder stands for, see :meth:`.AttentionHeads.of_words`.
        target: what to call the target text.
        example: the pair with its gold annotation; None: unknown.
    """
    from syncattn_fairseq.inference.answers import Alignment

    from ..report import terminal

    for name in names:
        part, layer, number = heads.find(name)
        title = f"{name}, {heads.kinds[part][layer - 1][number - 1]}"
        if part == "cross":
            weights = heads.cross[layer - 1, number - 1]
            inner = slice(1, None) if rows == "input" else slice(None, -1)
            links = Alignment(heads.source, heads.target, weights[inner, :-1]).links
            drawn = terminal.draw_links(links, heads.source.words, heads.target.words)
            yield from ("", f"{title}: {target} to source", drawn)
            continue
        sentence = heads.source if part == "encoder" else heads.target
        guess = heads.parents(part, rows if part == "decoder" else None)[layer - 1, number - 1]
        arcs: list[int | None] = guess.tolist()
        gold: Side | None = getattr(example, _SIDES[part], None)
        parents = gold.heads if gold and len(gold.words) == len(sentence.words) else None
        labels = gold.labels if gold and parents else None
        if part == "decoder":  # which cannot look ahead
            for word, parent in enumerate(parents or (), 1):
                if parent > word:
                    arcs[word - 1] = None
        drawn = terminal.draw_arcs(sentence.words, arcs, parents, labels)
        where = "source" if part == "encoder" else f"{target} ({rows or ROWS[0]})"
        yield from ("", f"{title}: {where}", drawn)
