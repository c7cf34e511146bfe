"""Look at every attention head of a model on a binarised text, trained to parse or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import syncattn_fairseq.plugin  # noqa: F401  (mends fairseq, before models are built)
from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.data.dataset import load_marks
from syncattn_fairseq.data.parses import read_labels
from syncattn_fairseq.data.subwords import CONTINUATION
from syncattn_fairseq.inference.attention_heads import ROWS, HeadName, find_parents
from syncattn_fairseq.inference.ensemble import Ensemble
from syncattn_fairseq.inference.forced import ForcedDecoding

from .attachment_baselines import OffsetTable, guess_parses
from .head_scores import View, Words

#: The side of the text that a part attends to itself in.
SIDES = {"encoder": "source", "decoder": "target"}
#: How many sentences a batch has at most.
_BATCH = 32


@dataclass(frozen=True)
class Spread:
    """How widely an attention head spreads its weights, averaged over the subwords of a text.

    Attributes:
        entropy: entropy of a subword's attention, in nats; 0: the head looks at one token alone.
        distance: mean distance, in subwords, of the attention from the subword; None in
            cross-attention, which looks at the other side.
        end: the share of attention on the end of sentence; in the decoder, which has not read the
            end, on the token that it reads first.
    """

    entropy: float
    distance: float | None
    end: float


@dataclass(frozen=True)
class ProbedModel:
    """The measurements of all attention heads of one model on a text.

    Attributes:
        views: the model's self-attention heads as parsers.
        spreads: how each head spreads its attention, by the head's name.
        kinds: the kind of each head, such as ``ordinary``, by the head's name.
        sentences: how many sentences were read.
        left_out: how many sentences were longer than the model can read.
    """

    views: Sequence[View]
    spreads: Mapping[HeadName, Spread]
    kinds: Mapping[HeadName, str]
    sentences: int
    left_out: int


@dataclass(frozen=True)
class _Side:
    """The words of the source or the target of a text, by sentence.

    Attributes:
        subwords: of each sentence, without its end.
        lengths: the number of subwords of each word.
        parents: of the words; empty: the sentence has no parse.
    """

    subwords: Sequence[Sequence[str]]
    lengths: Sequence[Sequence[int]]
    parents: Sequence[Sequence[int]]


class Probe:
    """A binarised text with dependency heads, for measurements of models' attention heads.

    Args:
        data: the folder of the binarised text.
        split: which part of it is parsed.
        labels: the file with the labels of ``source`` and ``target``, if they are known.
    """

    def __init__(self, data: str, split: str, labels: Mapping[str, str] | None = None) -> None:
        self.data = data
        self.split = split
        self.labels = dict(labels or {})
        self._tables: dict[tuple[str, str], OffsetTable] = {}

    def probe(self, path: str) -> ProbedModel:
        """Measure every attention head of a checkpoint on this text.

        Args:
            path: the checkpoint.

        Raises:
            DataError: it has no self-attention heads, the text has no heads, or labels are not
                those of its words.
        """
        ensemble = Ensemble(path, self.data)
        if len(ensemble.models) > 1:
            raise DataError(
                f"{path}: heads can be shown for a single model, not for an ensemble; give one "
                "checkpoint"
            )
        [model], task = ensemble.models, ensemble.task
        model.eval()
        dataset = self._load(task, self.split)
        sides = {side: self._read(ensemble, dataset, side) for side in SIDES.values()}
        if not any(sides.values()):
            raise DataError(
                f"{self.data}: {self.split} has no heads; binarise the text with "
                f"syncattn-preprocess --{self.split}heads"
            )
        labels = {side: self._read_labels(side, sides[side]) for side in self.labels}
        looked: dict[tuple[str, str], dict[int, np.ndarray]] = defaultdict(dict)
        sums: dict[str, np.ndarray] = {}
        kinds: dict[HeadName, str] = {}
        read = 0
        for index, arrays, of_layers in _run(task, model, dataset):
            read += 1
            for part, attention in arrays.items():
                sums[part] = sums.get(part, 0) + _sum_spread(part, attention)
                kinds |= _name_heads(part, of_layers[part])
                side = sides.get(SIDES.get(part, ""))
                if side is None or not attention.size or not side.parents[index]:
                    continue
                for rows in ROWS if part == "decoder" else ROWS[:1]:
                    inner = _select_subwords(attention, part, rows)
                    looked[part, rows][index] = find_parents(inner, side.lengths[index])
        if not any(name.part in SIDES for name in kinds):
            raise DataError(f"{path}: has no self-attention heads; give a Transformer")
        views = []
        for (part, rows), parents in looked.items():
            side = sides[SIDES[part]]
            assert side is not None
            own = {name: kind for name, kind in kinds.items() if name.part == part}
            table = self._count(ensemble, part, rows)
            views.append(_make_view(part, rows, own, side, parents, labels, table))
        spreads = {name: _average(sums[name.part], name) for name in kinds}
        return ProbedModel(views, spreads, kinds, read, len(dataset) - read)

    def _load(self, task: Any, split: str) -> Any:
        if split not in task.datasets:
            task.load_dataset(split)
        return task.dataset(split)

    def _read(self, ensemble: Ensemble, dataset: Any, side: str) -> _Side | None:
        """Return the words of a side with their parents; None if it has no dependency heads."""
        every = [*self._read_words(ensemble, dataset, side, self.split)]
        return _Side(*zip(*every, strict=True)) if every else None

    def _read_words(
        self, ensemble: Ensemble, dataset: Any, side: str, split: str
    ) -> Iterator[tuple[list[str], list[int], list[int]]]:
        """Yield each sentence's subwords, the number of subwords per word, and the words' parents.

        Nothing if the side has no heads.
        """
        pair = ensemble.languages
        language = pair[0] if side == "source" else pair[1]
        gold = load_marks("heads", str(ensemble.data), split, *pair, language)
        if gold is None:
            return
        for index in range(len(dataset)):
            tokens, marks = dataset.dataset[index][side].tolist(), gold[index].tolist()
            starts = [place for place, mark in enumerate(marks) if mark != CONTINUATION]
            ends = [*starts[1:], len(marks)]
            parents = [marks[start] for start in starts]
            lengths = [end - start for start, end in zip(starts, ends, strict=True)]
            known = parents if all(0 <= parent <= len(parents) for parent in parents) else []
            yield [str(token) for token in tokens[: len(marks)]], lengths, known

    def _read_labels(self, side: str, words: _Side | None) -> list[list[str]]:
        path = self.labels[side]
        if words is None:
            raise DataError(
                f"{path}: labels are given, but the {side} has no heads; leave the labels out"
            )
        rows = [row or [] for row in read_labels(path)]
        if len(rows) != len(words.lengths):
            raise DataError(
                f"{path}: has {len(rows)} lines, but {self.split} has {len(words.lengths)} "
                "sentences"
            )
        for number, (row, lengths) in enumerate(zip(rows, words.lengths, strict=True), 1):
            if row and len(row) != len(lengths):
                with naming(f"{path}:{number}"):
                    raise DataError(f"{len(row)} labels, but the sentence has {len(lengths)} words")
        return rows

    def _count(self, ensemble: Ensemble, part: str, rows: str) -> OffsetTable | None:
        """Count offsets in the training text, once for all models; None if it has no heads."""
        side = SIDES[part]
        language = ensemble.languages[side == "target"]
        if not any(ensemble.data.glob(f"train.heads.*.{language}.idx")):
            return None
        if (part, rows) not in self._tables:
            table = OffsetTable(sees_word=rows == "input", left_only=part == "decoder")
            dataset = self._load(ensemble.task, "train")
            for subwords, lengths, parents in self._read_words(ensemble, dataset, side, "train"):
                if parents:
                    table.add(subwords, lengths, parents)
            self._tables[part, rows] = table
        return self._tables[part, rows]


def _run(
    task: Any, model: Any, dataset: Any
) -> Iterator[tuple[int, dict[str, np.ndarray], dict[str, Any]]]:
    """Yield the number of each sentence, from 0, its attention by part, and the heads' kinds."""
    batches = task.get_batch_iterator(
        dataset,
        max_sentences=_BATCH,
        max_positions=model.max_positions(),
        ignore_invalid_inputs=True,
    )
    pad = task.target_dictionary.pad()
    for batch in batches.next_epoch_itr(shuffle=False):
        targets = [row[row.ne(pad)] for row in batch["target"]]
        forced = ForcedDecoding([model], batch["net_input"], targets, task.target_dictionary)
        for index, found in zip(batch["id"].tolist(), forced.read_heads(), strict=True):
            yield index, *found


def _name_heads(part: str, layers: Sequence[Sequence[str]]) -> dict[HeadName, str]:
    """Return the kind of each attention head of a part, by the head's name."""
    return {
        HeadName(part, layer, number): kind
        for layer, kinds in enumerate(layers, 1)
        for number, kind in enumerate(kinds, 1)
    }


def _select_subwords(attention: np.ndarray, part: str, rows: str) -> np.ndarray:
    """Return the rows and columns that stand for subwords, without the end of sentence."""
    reads = part == "decoder" and rows == "input"
    inner = slice(1, None) if reads else slice(None, -1)
    return attention[:, :, inner, inner]


def _sum_spread(part: str, attention: np.ndarray) -> np.ndarray:
    """Sum up how heads spread the attention of a sentence's subwords.

    Returns:
        ``(layers, heads, 5)``: the sums of the entropies, of attention times distance, of attention
        to subwords and of that to the end, and the number of rows.
    """
    rows = attention[:, :, 1:] if part == "decoder" else attention[:, :, :-1]
    inner, end = rows[..., :-1], rows[..., -1]
    if part == "decoder":
        inner, end = rows[..., 1:], rows[..., 0]
    places = [np.arange(size) for size in inner.shape[2:]]
    distances = np.abs(places[0][:, None] - places[1])
    entropies = -(rows * np.log(np.maximum(rows, np.finfo(np.float32).tiny))).sum((-2, -1))
    sums = [entropies, (inner * distances).sum((-2, -1)), inner.sum((-2, -1)), end.sum(-1)]
    return np.stack([*sums, np.full_like(entropies, rows.shape[2])], -1)


def _average(sums: np.ndarray, name: HeadName) -> Spread:
    """Return an attention head's `Spread` from the sums of `_sum_spread`."""
    entropy, distance, inner, end, rows = sums[name.layer - 1, name.number - 1].tolist()
    own = distance / inner if inner else 0.0
    return Spread(entropy / rows, None if name.part == "cross" else own, end / rows)


def _make_view(
    part: str,
    rows: str,
    kinds: Mapping[HeadName, str],
    side: _Side,
    found: Mapping[int, np.ndarray],
    labels: Mapping[str, Sequence[Sequence[str]]],
    table: OffsetTable | None,
) -> View:
    """Compare where attention heads look with the words' parents.

    Args:
        part, rows: of the view.
        kinds: of its heads.
        side: the words.
        found: for each sentence that was read, where its words look, ``(layers, heads, words)``.
        labels: of the words, by side, if they are known.
        table: counts of the training text, if it has heads.
    """
    left_only = part == "decoder"
    order = sorted(found)
    gold = [side.parents[index] for index in order]
    pieces = ((side.subwords[index], side.lengths[index]) for index in order)
    parses = guess_parses(gold, left_only, table, pieces)
    sizes = np.array([len(parents) for parents in gold])
    parents = np.concatenate(gold)
    positions = np.concatenate([np.arange(1, 1 + size) for size in sizes])
    named = None
    if SIDES[part] in labels:
        own = labels[SIDES[part]]
        rows_of_labels = [own[index] or [""] * len(side.parents[index]) for index in order]
        named = np.concatenate([np.array(row, dtype=object) for row in rows_of_labels])
    counted = (parents <= positions) | (not left_only)
    every = np.concatenate([found[index] for index in order], -1).reshape(len(kinds), -1)
    words = Words(
        np.repeat(order, sizes)[counted],
        positions[counted],
        np.repeat(sizes, sizes)[counted],
        parents[counted],
        None if named is None else named[counted],
    )
    controls = {name: np.concatenate([*parse])[counted] for name, parse in parses.items()}
    right = {name: guess == words.parents for name, guess in controls.items()}
    looked = every.T[counted] == words.parents[:, None]
    return View(part, rows, [*kinds], [*kinds.values()], words, looked, right)
