"""Score every self-attention head of a model as a parser, with or without training as a parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.dataset import pad_marks
from syncattn_fairseq.data.subwords import CONTINUATION, NO_TOKEN, find_parents
from syncattn_fairseq.inference.ensemble import Ensemble

from .attachment import AttachmentScore
from .attachment_baselines import OffsetTable, score_baselines
from .self_attention import attend

#: Whose parent a row is asked for: that of the word that it reads, or that it predicts.
ROWS = ("input", "predicted")
#: How many tokens a batch has at most.
_BATCH = 2048


@dataclass(frozen=True)
class ProbedHead:
    """A self-attention head and how often it looks at the parent.

    Attributes:
        side: ``source`` or ``target``.
        layer: from 1.
        kind: of the head, such as ``ordinary``.
        number: within its kind in this layer, from 1.
        rows: one of `ROWS`; a source's rows read their word.
        correct: of how many words the last subword attends most to a subword of the parent, or of
            the word itself where that is the root.
        counted: how many words were counted; on the target those whose parent is to the left.
    """

    side: str
    layer: int
    kind: str
    number: int
    rows: str
    correct: int
    counted: int

    @property
    def uas(self) -> float:
        """Unlabelled attachment score, as a fraction."""
        return self.correct / self.counted if self.counted else 0.0

    @property
    def name(self) -> str:
        """Where the head is."""
        return f"layer {self.layer}, {self.kind} {self.number}"


class Probe:
    """A binarised text with heads, to probe models on.

    Args:
        data: the folder of the binarised text.
        split: which part of it is parsed.
    """

    def __init__(self, data: str, split: str) -> None:
        self.data = data
        self.split = split

    @torch.no_grad()
    def probe(self, path: str) -> list[ProbedHead]:
        """Score all self-attention heads of a checkpoint.

        Raises:
            DataError: it is no Transformer, or the text has no heads.
        """
        ensemble = Ensemble(path, self.data)
        [model], task = ensemble.models, ensemble.task
        if not hasattr(model.encoder, "layers") or not hasattr(model.encoder, "view"):
            raise DataError(f"{path}: has no self-attention heads of ours; give a Transformer")
        dataset = self._load(task, self.split)
        counts: dict[tuple[str, int, str, str], Tensor] = {}
        words = dict.fromkeys(("source", "target"), 0)
        batches = task.get_batch_iterator(dataset, max_tokens=_BATCH)
        for batch in batches.next_epoch_itr(shuffle=False):
            seen: set[str] = set()
            for side, layer, kind, attention in _run(model, batch):
                gold = dataset.heads[side]
                if gold is None:
                    continue
                marks = [gold[index] for index in batch["id"].tolist()]
                left = side == "source" and dataset.dataset.left_pad_source
                found = pad_marks(marks, attention.size(-1), left)
                for rows in ROWS if side == "target" else ROWS[:1]:
                    correct, counted = count(attention, found, side == "target", rows)
                    key = side, layer, kind, rows
                    counts[key] = counts.get(key, torch.zeros(())) + correct
                words[side] += counted if side not in seen else 0
                seen.add(side)
        return [
            ProbedHead(side, layer, kind, number, rows, int(correct), words[side])
            for (side, layer, kind, rows), each in counts.items()
            for number, correct in enumerate(each.tolist(), 1)
        ]

    def score_baselines(self, path: str) -> dict[str, dict[str, AttachmentScore]]:
        """Score parses made without syntax, by side, with counts of the training text."""
        task = Ensemble(path, self.data).task
        test, train = (self._load(task, split) for split in (self.split, "train"))
        found = {}
        for side in ("source", "target"):
            if test.heads[side] is None or train.heads[side] is None:
                continue
            table = OffsetTable(sees_word=side == "source", left_only=side == "target")
            for subwords, lengths, heads in _read(train, side):
                if heads:
                    table.add(subwords, lengths, heads)
            text = list(_read(test, side))
            pieces = [(subwords, lengths) for subwords, lengths, _ in text]
            gold = [heads for *_, heads in text]
            found[side] = score_baselines(gold, side == "target", table, pieces)
        return found

    def _load(self, task: Any, split: str) -> Any:
        if split not in task.datasets:
            task.load_dataset(split)
        dataset = task.dataset(split)
        if all(heads is None for heads in dataset.heads.values()):
            raise DataError(
                f"{self.data}: {split} has no heads; binarise it with --{split}heads, which "
                "syncattn-preprocess has"
            )
        return dataset


def _read(dataset: Any, side: str) -> Iterator[tuple[list[str], list[int], list[int]]]:
    """Yield the subwords of each sentence, the number of each word's, and the words' heads."""
    for index in range(len(dataset)):
        tokens, marks = dataset.dataset[index][side].tolist(), dataset.heads[side][index].tolist()
        starts = [place for place, mark in enumerate(marks) if mark != CONTINUATION]
        ends = [*starts[1:], len(marks)]
        heads = [marks[start] for start in starts]
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        known = heads if all(head >= 0 for head in heads) else []
        yield [str(token) for token in tokens[: len(marks)]], lengths, known


def _run(model: Any, batch: dict[str, Any]) -> Iterator[tuple[str, int, str, Tensor]]:
    """Yield the attention ``(B, h, T, T)`` of each kind of heads of each layer of each side."""
    inputs = dict(batch["net_input"])
    tokens, earlier = inputs["src_tokens"], inputs.pop("prev_output_tokens")
    out = model.encoder(**inputs, return_all_hiddens=True)
    states = model.decoder(earlier, encoder_out=out)[1]["inner_states"]
    sides = {"source": (model.encoder, tokens, out["encoder_states"])}
    sides["target"] = model.decoder, earlier, states
    for side, (module, read, layers) in sides.items():
        padding = read.eq(module.padding_idx)
        for number, (layer, x) in enumerate(zip(module.layers, layers, strict=False), 1):
            for kind, attention in attend(layer, x, padding, module.view, side == "target"):
                yield side, number, kind, attention


def count(attention: Tensor, marks: Tensor, left_only: bool, rows: str) -> tuple[Tensor, int]:
    """Count the words whose last subword attends most to the parent, or the root's to itself.

    Args:
        attention: ``(B, h, T, T)``; on the target, row and column t read the token before t.
        marks: ``(B, T)``, as for `find_parents`.
        left_only: whether only words count whose parent is the root or to their left.
        rows: on the target, which token a row and a column stand for, see `ROWS`.

    Returns:
        The number of such words for each head, ``(h,)``, and of the words counted.
    """
    length = marks.size(1)
    columns = torch.arange(length).expand_as(marks)
    tokens = marks != NO_TOKEN
    starts = tokens & (marks != CONTINUATION)
    own = torch.where(starts, columns, -1).cummax(1).values.masked_fill(~tokens, -1)
    ends = tokens & (own != torch.nn.functional.pad(own, (0, 1), value=-1)[:, 1:])
    parents = find_parents(marks, "first")
    counted = ends & (parents >= 0) & (~torch.tensor(left_only) | (parents <= own))
    looked = attention.argmax(-1)
    if left_only and rows == "input":  # row t + 1 reads token t
        looked = torch.nn.functional.pad(looked[:, :, 1:] - 1, (0, 1), value=-1)
    found = own.unsqueeze(1).expand_as(looked).gather(2, looked.clamp_min(0))
    found = found.masked_fill(looked < 0, -1)
    right = (found == parents.unsqueeze(1)) & counted.unsqueeze(1)
    return right.sum((0, 2)), int(counted.sum())


def choose_best(heads: Sequence[ProbedHead]) -> list[ProbedHead]:
    """Return the best head of each side, of each kind of rows, and of each kind of heads."""
    best: dict[tuple[str, str, str], ProbedHead] = {}
    for head in heads:
        key = head.side, head.rows, head.kind
        if key not in best or head.correct > best[key].correct:
            best[key] = head
    return list(best.values())
