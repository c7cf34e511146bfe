"""Figures of a single sentence pair, from a model's attention or from a gold parse."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.subwords import subword_parents
from syncattn_fairseq.data.words import Link, is_raw
from syncattn_fairseq.functional.lpsi import distance_gates
from syncattn_fairseq.functional.pascal import density_peak, parent_gaussian
from syncattn_fairseq.functional.sdatt import tree_distances
from syncattn_fairseq.functional.syncattn import project_attention
from syncattn_fairseq.inference.answers import Alignment, Pair, Parse, Sentence
from syncattn_fairseq.inference.attention_heads import HeadName
from syncattn_fairseq.inference.drawing import DrawnSide, check_length, draw_pair
from syncattn_fairseq.inference.model import Model
from syncattn_fairseq.trees.tree import Tree

from ..evaluation.bracketing import find_constituents
from . import charts
from .example import Example, Links, Side
from .sentences import tree_nodes
from .viz import alt

Rows = list[dict[str, Any]]

_SEEN = 4
"""The largest number of edges between words that SDAtt's heads still see."""


class Figure:
    """A picture of several charts in rows, each chart with its own data."""

    def __init__(self) -> None:
        self._rows: list[list[Any]] = [[]]
        self._data: dict[str, Rows] = {}

    def add(self, draw: Any, title: str, **data: Rows) -> None:
        """Add a chart, made by a function of `charts`, to the last row.

        ``data`` are its data sets by name.
        """
        prefix = f"{len(self._rows)}-{len(self._rows[-1])} "
        chart = draw(prefix)
        self._rows[-1].append(chart.properties(title=title) if title else chart)
        self._data |= {prefix + name: rows for name, rows in data.items()}

    def new_row(self) -> None:
        """Begin a new row for the charts that are added next."""
        if self._rows[-1]:
            self._rows.append([])

    def specification(self) -> dict[str, Any]:
        """Return the whole picture as a Vega-Lite specification with its data."""
        rows = [
            alt.hconcat(*row, spacing=34) if len(row) > 1 else row[0] for row in self._rows if row
        ]
        whole = alt.vconcat(*rows, spacing=30) if len(rows) > 1 else rows[0]
        return charts.fill(charts.dress(whole), self._data)


def draw_parses(model: Model, example: Example) -> str:
    """Draw a model's parses of a sentence pair and the alignment of its words, as SVG."""
    [pair] = model.parse([example.source.text], _translations(example))
    [alignment] = model.align([example.source.text], [pair.translation])
    target = example.target or Side(alignment.target.words)
    gold = example.links.all if example.links else None
    return draw_pair(
        _draw_side(_fit(example.source, alignment.source), pair.source),
        _draw_side(_fit(target, alignment.target), pair.target, causal=True),
        {link: None if gold is None else link in gold for link in alignment.links},
    )


def _draw_side(side: Side, parse: Parse | None, causal: bool = False) -> DrawnSide:
    """Return the words of a sentence to draw with the dependency heads that a model predicts.

    Args:
        side: the words, and their gold heads if these are known.
        parse: the model's parse; None: it does not parse this language.
        causal: whether the model cannot look ahead: words whose gold head comes later have no arc.
    """
    if parse is None:
        return DrawnSide(side.words)
    parents: list[int | None] = [*parse.heads]
    right: list[bool | None] = [None for _ in parents]
    for word, gold in enumerate(side.heads or ()):
        right[word] = parents[word] == gold
        if causal and gold > word + 1:
            parents[word] = right[word] = None
    return DrawnSide(side.words, parents, right)


def draw_attention(model: Model, example: Example) -> Figure:
    """Draw a model's self-attention and cross-attention between the words of a sentence pair.

    These are the matrices E (source), C (cross), D (target), and C E Cᵀ, E projected onto the
    target.

    Gold heads and links have rings. The end of sentence is left out.
    """
    [pair] = model.parse([example.source.text], _translations(example))
    [alignment] = model.align([example.source.text], [pair.translation])
    example = replace(example, target=example.target or Side(alignment.target.words))
    figure = Figure()
    for number, matrix in enumerate(attention_matrices(example, alignment, pair)):
        if number == 2:
            figure.new_row()
        rows, columns = (
            _fit(getattr(example, side), getattr(alignment, side)).words
            for side in (matrix.rows, matrix.columns)
        )
        _add_heat(figure, matrix.title, matrix.weights, rows, columns, matrix.gold, matrix.causal)
    return figure


def draw_alignment(model: Model, example: Example, layer: int | None = None) -> Figure:
    """Draw a layer's word alignment as a grid with frames around gold links.

    Without ``layer``, it is the alignment that the model chooses by default.
    """
    [alignment] = model.align([example.source.text], _translations(example), layer=layer)
    source = _fit(example.source, alignment.source).words
    target = _fit(example.target or Side(alignment.target.words), alignment.target).words
    figure = Figure()
    figure.add(charts.links, "", **link_data(alignment.links, source, target, example.links))
    return figure


def draw_heads(
    model: Model, example: Example, names: Sequence[HeadName], rows: str | None = None
) -> Figure:
    """Draw the attention of some heads between words, with rings for gold heads and links.

    Args:
        model: a model whose attention heads can be shown.
        example: the sentence pair; without a target, the model translates.
        names: the names of the heads.
        rows: which token a row of the decoder stands for, see :meth:`.AttentionHeads.of_words`.

    Raises:
        DataError: the model has no such head, or splits the sentences into other words.
    """
    [heads] = model.heads([example.source.text], _translations(example))
    source = _fit(example.source, heads.source)
    target = _fit(example.target or Side(heads.target.words), heads.target)
    gold = {
        "encoder": _tree_cells(source.heads),
        "decoder": {(i, j) for i, j in _tree_cells(target.heads) if j <= i},
        "cross": {(j, i) for i, j in example.links.all} if example.links else set(),
    }
    sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    figure = Figure()
    for number, name in enumerate(names):
        if number and number % 2 == 0:
            figure.new_row()
        part = heads.find(name).part
        of_rows, of_columns = (side.words for side in sides[part])
        weights = heads.of_head(name, None if part == "encoder" else rows)
        title = f"{name}, {heads.kinds[part][name.layer - 1][name.number - 1]}"
        causal = part == "decoder"
        _add_heat(figure, title, weights, of_rows, of_columns, gold[part], causal)
    return figure


def draw_distances(model: Model, example: Example, layer: int | None = None) -> Figure:
    """Draw LPSI's syntactic distances of source and target, the trees they induce, and gates.

    Without ``layer``, the highest layer is drawn.
    """
    [pair] = model.distances([example.source.text], _translations(example))
    figure = Figure()
    gates = []
    for title, found, side in (
        ("Source", pair.source, example.source),
        ("Target", pair.target, example.target),
    ):
        if found is None or not found.sentence.pieces:
            continue
        check_length(found.sentence.words)
        chosen = max(found.layers) if layer is None else layer
        tree = found.tree(chosen)
        assert tree is not None
        items = tree_items(tree, side.tree if side else None)
        figure.add(charts.tree, f"{title}: the tree that layer {chosen} induces", items=items)
        figure.new_row()
        words = found.sentence.words
        cells = [
            _cell(["distance"], words, 0, i, (distance + 1) / 2, f"{distance:.2f}")
            for i, distance in enumerate(found.of_words(chosen))
            if i  # the first plays no role
        ]
        rows = {"rows": _words(["distance"]), "columns": _words(words), "gold": []}
        figure.add(charts.heat, f"{title}: distance before each word", cells=cells, **rows)
        figure.new_row()
        causal = title == "Target"
        opened = distance_gates(torch.tensor(found.layers[chosen]), found.temperature, causal)
        gates.append((f"{title}: gates", opened.numpy(), _shown(found.sentence), causal))
    for title, matrix, pieces, causal in gates:
        _add_heat(figure, title, matrix, pieces, pieces, set(), causal)
    return figure


def draw_parents(example: Example, sentence: Sentence | None = None) -> Figure:
    """Draw the source's gold parse and PASCAL's attention weights for this parse.

    The standard deviation of the weights is one subword. Without ``sentence``, which has the
    subwords, each word counts as one subword.
    """
    heads = _required_heads(example)
    pieces = sentence or Sentence(example.source.words, "none")
    _fit(example.source, pieces)
    parents = subword_parents(heads, pieces.lengths, "middle")
    weights = parent_gaussian(torch.tensor(parents), len(pieces.pieces))
    figure = _begin_with_parse(example.source)
    shown = _shown(pieces)
    cells = {(row, int(column)) for row, column in enumerate(parents) if column == int(column)}
    title, scale = "PASCAL's weights; rings: the parent", density_peak()
    _add_heat(figure, title, weights.numpy(), shown, shown, cells, scale=scale)
    return figure


def draw_tree_distances(example: Example) -> Figure:
    """Draw the source's gold parse and the number of tree edges between every two words.

    Words farther apart than SDAtt sees are white.
    """
    heads = _required_heads(example)
    parents = torch.tensor([head - 1 if head else i for i, head in enumerate(heads)])
    edges = tree_distances(parents).tolist()
    words = example.source.words
    figure = _begin_with_parse(example.source)
    cells = [
        _cell(words, words, i, j, max(0.0, 1 - n / (_SEEN + 1)), str(n)) | {"shown": str(n)}
        for i, row in enumerate(edges)
        for j, n in enumerate(row)
    ]
    title, sides = f"Edges between words; white: more than {_SEEN}", _words(words)
    figure.add(charts.heat, title, rows=sides, columns=sides, gold=[], cells=cells)
    return figure


@dataclass(frozen=True)
class Matrix:
    """A matrix of attention weights between words."""

    title: str
    rows: str
    """The text whose words attend, ``source`` or ``target``."""
    columns: str
    weights: np.ndarray
    gold: set[Link]
    """The gold cells of the matrix, each a row and a column, from 0."""

    @property
    def causal(self) -> bool:
        """Whether words attend only to themselves and earlier words, as in a decoder."""
        return self.rows == self.columns == "target"


def attention_matrices(
    example: Example, alignment: Alignment, pair: Pair[Parse] | None
) -> list[Matrix]:
    """Return a model's self-attention and cross-attention between words, as matrices.

    These are E (source), C (cross), D (target), and C E Cᵀ, E projected onto the target.

    Matrices that the model does not have are left out, and so is the end of sentence. ``alignment``
    has C, ``pair`` has E and D; it is None for a model without dependency heads.
    """
    sides = {"source": alignment.source, "target": alignment.target}
    matrices = []

    def add(title: str, rows: str, columns: str, weights: np.ndarray, gold: set[Link]) -> None:
        words = between_words(weights, sides[rows], sides[columns])
        matrices.append(Matrix(title, rows, columns, words, gold))

    if pair and pair.source:
        gold = _tree_cells(example.source.heads)
        add("E: source words and their heads", "source", "source", pair.source.attention, gold)
    gold = {(j, i) for i, j in example.links.all} if example.links else set()
    add("C: target words and the source", "target", "source", alignment.attention, gold)
    heads = _tree_cells(example.target.heads if example.target else None)
    gold = {(i, j) for i, j in heads if j <= i}
    if pair and pair.target:
        add("D: target words and their heads", "target", "target", pair.target.attention, gold)
    if pair and pair.source:
        projected = project_attention(
            torch.from_numpy(pair.source.attention), torch.from_numpy(alignment.attention)
        ).numpy()
        add("C E Cᵀ: what the source says of them", "target", "target", projected, gold)
    return matrices


def between_words(attention: np.ndarray, rows: Sentence, columns: Sentence) -> np.ndarray:
    """Turn the attention between subwords, ``(m, n)``, into attention between words.

    Attention to the subwords of a word is added up; a word attends like its last subword.
    """
    if not attention.size:
        return attention
    ends = np.array([*accumulate(rows.lengths)]) - 1
    starts = np.array([0, *accumulate(columns.lengths)][:-1])
    found: np.ndarray = np.add.reduceat(attention[ends], starts, axis=1)
    return found


def arc_rows(side: Side, predicted: Sequence[int] | None, causal: bool = False) -> Rows:
    """Return the data rows for the chart `charts.arcs` of a sentence and its predicted heads."""
    return [
        {
            "word": word,
            "gold": side.heads[i] if side.heads else None,
            "predicted": predicted[i] if predicted else None,
            "label": side.labels[i] if side.labels else "",
            "causal": causal,
        }
        for i, word in enumerate(side.words)
    ]


def link_data(
    links: Iterable[Link], source: Sequence[str], target: Sequence[str], gold: Links | None
) -> dict[str, Rows]:
    """Return the data sets for the chart `charts.links` of a predicted and a gold alignment.

    Args:
        links: the predicted links, pairs of a source and a target word from 0.
        source: the words of the source.
        target: the words of the target.
        gold: the gold links, sure and possible; None: unknown.
    """
    return {
        "rows": [{"word": word, "across": len(source)} for word in target],
        "columns": _words(source),
        "cells": [
            {
                "row": j,
                "column": i,
                "verdict": _verdict((i, j), gold),
                "text": f"{target[j]} – {source[i]}",
            }
            for i, j in links
        ],
        "gold": [{"row": j, "column": i, "sure": (i, j) in gold.sure} for i, j in sorted(gold.all)]
        if gold
        else [],
    }


def _verdict(link: Link, gold: Links | None) -> str:
    if gold is None:
        return "unknown"
    return "right" if link in gold.all else "wrong"


def tree_items(tree: Tree, gold: Tree | None = None) -> Rows:
    """Return the data rows for the chart `charts.tree` of a tree, judged by its gold tree."""
    laid = tree_nodes(tree, None if gold is None else set(find_constituents(gold)))
    names = ("start", "end", "height", "parent", "label", "right")
    nodes = [dict(zip(names, node, strict=True)) for node in laid["nodes"]]
    for node in nodes:
        node["verdict"] = {None: "unknown", 1: "right", 0: "wrong"}[node.pop("right")]
        node["label"] = "" if node["label"] == "X" else node["label"]
    leaves = zip(tree.leaves(), laid["parents"], strict=True)
    return [*({"word": word, "parent": parent} for word, parent in leaves), *nodes]


def _add_heat(
    figure: Figure,
    title: str,
    weights: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    gold: set[Link],
    causal: bool = False,
    scale: float = 1.0,
) -> None:
    figure.add(
        charts.heat,
        title,
        rows=_words(rows),
        columns=_words(columns),
        cells=[
            _cell(rows, columns, i, j, round(min(1.0, float(weight) / scale), 4), f"{weight:.2f}")
            for i, row in enumerate(weights)
            for j, weight in enumerate(row)
            if not causal or j <= i
        ],
        gold=[{"row": i, "column": j} for i, j in sorted(gold)],
    )


def _cell(
    rows: Sequence[str], columns: Sequence[str], i: int, j: int, weight: float, number: str
) -> dict[str, Any]:
    text = f"{rows[i]} – {columns[j]}: {number}"
    return {"row": i, "column": j, "weight": weight, "text": text}


def _shown(sentence: Sentence) -> list[str]:
    """Return the subwords of a sentence without SentencePiece's mark of word beginnings."""
    return [piece.lstrip("▁") or piece for piece in sentence.pieces]


def _words(words: Iterable[str]) -> Rows:
    return [{"word": word} for word in words]


def _tree_cells(heads: Sequence[int] | None) -> set[Link]:
    """Return the pair (word, head) of each word, both from 0; the root is its own head."""
    return {(i, head - 1 if head else i) for i, head in enumerate(heads or ())}


def _begin_with_parse(side: Side) -> Figure:
    figure = Figure()
    figure.add(charts.arcs, "The parse", words=arc_rows(side, None))
    figure.new_row()
    return figure


def _translations(example: Example) -> list[str] | None:
    """Return the reference as a list of one text, or None to let the model translate.

    `DataError`: a sentence is too long to draw.
    """
    for side in (example.source, example.target):
        check_length(side.words if side else [])
    return [example.target.text] if example.target else None


def _fit(side: Side, sentence: Sentence) -> Side:
    """Return the words of the text unchanged; `DataError` if the model read another number."""
    check_length(side.words)
    if len(side.words) != len(sentence.words):
        remedy = "give words that are separated by spaces"
        if is_raw(sentence.scheme):
            remedy = "draw a sentence whose parse has the words that the model's splitter finds"
        raise DataError(
            f"{len(side.words)} words, but {len(sentence.words)} in the model's subwords; {remedy}"
        )
    return side


def _required_heads(example: Example) -> list[int]:
    if example.source.heads is None:
        raise DataError("the source has no parse; give --gold PREFIX with PREFIX.heads.LANG")
    check_length(example.source.words)
    return example.source.heads
