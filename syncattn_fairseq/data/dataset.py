"""Sentence pairs with their parses, and the batch fields made from parses."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import (
    BaseWrapperDataset,
    ConcatDataset,
    LanguagePairDataset,
    data_utils,
    indexed_dataset,
)
from fairseq.data.indexed_dataset import MMapIndexedDataset
from torch import Tensor

from ..base.errors import DataError
from .controls import CONTROLS, SameLength, count_words, draw_other, take_tree
from .fields import NOTHING, LossField, SourceField, SourceFields
from .mmap_blocks import check_checksums, check_dataset, has_entry
from .padding import add_rows, repeat_links
from .shapes import Plan, Shape
from .subwords import NO_HEAD, NO_TOKEN, find_parents, mark_subwords
from .words import detect_scheme, find_word_starts


class SyntaxPairDataset(BaseWrapperDataset):
    """fairseq's dataset of sentence pairs, with the dependency parents of subwords.

    Batches gain ``src_parents`` (B, S) and ``tgt_parents`` (B, T) for the losses: columns of
    ``src_tokens`` and of ``target``, -1 = no parent, as for the end of sentence and padding, and
    whatever else losses ask for (:class:`.LossField`). The encoder's input (:class:`.SourceField`)
    goes into ``net_input``.

    Args:
        pairs: the sentence pairs; without targets if they are only to be translated.
        src_heads, tgt_heads: one integer tensor of marks (:mod:`.subwords`) per sentence, or None.
        src_labels: tensors like ``src_heads``, with the index of a label for a head, or None.
        fields: the batch fields that the model requests.
        gold: make dependency heads attend to the source's parents: pass these to the encoder, as
            ``forced_parents`` in ``net_input``.
        loss_fields: the batch fields that losses request; without heads, those that need none.
        schemes: how both sides' subwords are marked (:mod:`.words`), for words without heads; None
            if this must be seen from the dictionary.
        lengths_on_cpu: also pass the encoder a list of the sentences' lengths, which stays where it
            is when fairseq moves the batch to a GPU.

    Attributes:
        plan: the shapes to which batches are padded (:mod:`.shapes`), with rows of padding after
            their sentences (:mod:`.padding`); None for fairseq's own, as wide as a batch's longest
            sentences.
        drawn: datasets of the controls that are in files (:mod:`.drawn_controls`), by the names of
            side and control; others are drawn when their sentence is read.
    """

    plan: Plan | None = None

    def __init__(
        self,
        pairs: LanguagePairDataset,
        src_heads: Any | None = None,
        tgt_heads: Any | None = None,
        src_labels: Any | None = None,
        fields: SourceFields = NOTHING,
        gold: bool = False,
        loss_fields: Iterable[LossField] = (),
        schemes: tuple[str | None, str | None] = (None, None),
        lengths_on_cpu: bool = False,
    ) -> None:
        super().__init__(pairs)
        self.heads: dict[str, Any] = {"source": src_heads, "target": tgt_heads}
        self.src_labels = src_labels if fields.reads("labels") else None
        self.rule = fields.choose_rule()
        self.fields = fields.list_by_name()
        self.loss_fields = sorted(loss_fields, key=lambda field: field.name)
        controls = {("source", field.control) for field in self.fields}
        controls |= {(field.side, field.control) for field in self.loss_fields}
        self.controls = sorted(pair for pair in controls if pair[1] != "parse")
        self.drawn: dict[tuple[str, str], Any] = {}
        self._alike: dict[str, SameLength] = {}
        self.dictionaries = {"source": pairs.src_dict, "target": pairs.tgt_dict}
        self.schemes = {
            side: scheme or detect_scheme(self.dictionaries[side].symbols)
            for side, scheme in zip(self.heads, schemes, strict=True)
            if (side, "words") in self.controls
        }
        self.gold = gold
        self.lengths_on_cpu = lengths_on_cpu

    @property
    def src(self) -> Any:
        """The dataset of source sentences."""
        return self.dataset.src

    @property
    def tgt(self) -> Any:
        """The dataset of target sentences; None if there is only the source."""
        return self.dataset.tgt

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return a sentence pair, with the dependency heads and labels of its subwords, if any."""
        item = dict(self.dataset[index])
        for side, heads in self.heads.items():
            if heads is not None:
                # The text's last token is the end of sentence; truncation may have cut off more.
                item[f"{side}_marks"] = heads[index][: len(item[side]) - 1]
        if self.src_labels is not None:
            item["source_labels"] = self.src_labels[index][: len(item["source"]) - 1]
        for side, control in self.controls:
            marks = item.get(f"{side}_marks")
            if control == "words":
                marks = self._mark_words(item[side], side) if marks is None else marks
            elif (side, control) in self.drawn:
                marks = self.drawn[side, control][index]
            elif marks is not None:
                marks = self.draw(side, control, index, item[side], marks)
            if marks is not None:
                item[_name_marks(side, control)] = marks
        return item

    def draw(self, side: str, control: str, index: int, tokens: Tensor, marks: Tensor) -> Tensor:
        """Return a fake parse (control) for a sentence, drawn with the sentence as random seed.

        It has the form of ``marks``.

        Args:
            side: ``source`` or ``target``.
            control: the name of the control, one of :mod:`.controls`.
            index: the index of the sentence in the text, from 0.
            tokens, marks: the sentence and its marks, ``(n + 1,)`` and ``(n,)``.
        """
        generator = np.random.default_rng(zlib.crc32(tokens.numpy().tobytes()))
        if control != "another":
            return CONTROLS[control](marks, generator)
        if side not in self._alike:
            heads = self.heads[side]
            words = (count_words(heads[number]) for number in range(len(self)))
            self._alike[side] = SameLength(np.fromiter(words, np.int32, len(self)))
        alike = self._alike[side].find(count_words(marks))
        other = draw_other(index, alike, generator)
        return take_tree(marks, None if other is None else self.heads[side][other])

    def _mark_words(self, tokens: Tensor, side: str) -> Tensor:
        """Return marks of the first subword of each word, for a sentence without heads.

        The last token is the end of sentence.
        """
        pieces = [self.dictionaries[side][token] for token in tokens[:-1]]
        starts = find_word_starts(pieces, self.schemes[side])
        return torch.tensor(mark_subwords(repeat(NO_HEAD), starts), dtype=torch.long)

    def list_unparsed(self) -> list[int]:
        """List the indices of sentences that lack a parse, or labels, that the encoder needs."""
        read = {_name_marks_for(field) for field in self.fields}
        if not read:
            return []
        items = (self[index] for index in range(len(self)))
        return [
            index
            for index, item in enumerate(items)
            if any(bool((item[field] == NO_HEAD).any()) for field in read)
        ]

    def collater(
        self, samples: Sequence[dict[str, Any]], pad_to_length: dict[str, int] | None = None
    ) -> dict[str, Any]:
        """Make a padded batch, with fairseq's fields and the fields computed from parses.

        With a :attr:`plan`, it is padded to the plan's shape that fits, if there is one.
        """
        pairs = self.dataset
        shape = self._choose_shape(samples)
        if shape is not None:
            pad_to_length = {"source": shape.source, "target": shape.target}
        batch: dict[str, Any] = pairs.collater(samples, pad_to_length=pad_to_length)
        if not batch:
            return batch
        added = [] if shape is None else [torch.empty(0)] * (shape.rows - len(samples))
        add_rows(batch, len(added), pairs)
        if shape is not None:
            repeat_links(batch)
        order = _find_positions(batch["id"], torch.tensor([sample["id"] for sample in samples]))
        net_input = batch["net_input"]
        if self.lengths_on_cpu:
            net_input["lengths_on_cpu"] = net_input["src_lengths"].tolist()

        def padded(key: str, tokens: Tensor, left: bool) -> Tensor:
            return pad_marks([*(samples[i][key] for i in order), *added], tokens.size(1), left)

        tokens, left = net_input["src_tokens"], pairs.left_pad_source
        if self.heads["source"] is not None:
            marks = padded("source_marks", tokens, left)
            batch["src_parents"] = find_parents(marks, self.rule)
            if self.gold:
                net_input["forced_parents"] = batch["src_parents"]
        for field in self.fields:
            if _name_marks_for(field) in samples[0]:
                marks = padded(_name_marks_for(field), tokens, left)
                net_input[field.name] = field.collate(marks, tokens, pairs.src_dict)
        if self.heads["target"] is not None:
            marks = padded("target_marks", batch["target"], pairs.left_pad_target)
            batch["tgt_parents"] = find_parents(marks, "chain")
        for loss_field in self.loss_fields:
            key = _name_marks(loss_field.side, loss_field.control)
            if key in samples[0]:
                if loss_field.side == "target":
                    tokens, left = batch["target"], pairs.left_pad_target
                else:
                    tokens, left = net_input["src_tokens"], pairs.left_pad_source
                marks = padded(key, tokens, left)
                dictionary = self.dictionaries[loss_field.side]
                batch[loss_field.name] = loss_field.collate(marks, tokens, dictionary)
        return batch

    def _choose_shape(self, samples: Sequence[dict[str, Any]]) -> Shape | None:
        """Return the plan's shape for a batch; None if all are too small, or without a plan."""
        if self.plan is None or not samples:
            return None
        sides = ("source", "target")
        return self.plan.fit(len(samples), *(max(len(s[side]) for s in samples) for side in sides))


def _name_marks(side: str, control: str) -> str:
    return f"{side}_marks" if control == "parse" else f"{side}_{control}_marks"


def _name_marks_for(field: SourceField) -> str:
    return "source_labels" if field.kind == "labels" else _name_marks("source", field.control)


def pad_marks(marks: Sequence[Tensor], width: int, left: bool) -> Tensor:
    """Pad the heads or labels of sentences' subwords to a matrix aligned with the batch's tokens.

    The end of sentence and padding get `NO_TOKEN`. Each sentence has n tokens, whose marks are
    ``(n,)``, and its end; the result is ``(B, width)``.
    """
    lengths = torch.tensor([len(m) for m in marks]).unsqueeze(1)
    first = width - 1 - lengths if left else torch.zeros_like(lengths)
    columns = torch.arange(width)
    padded = torch.full((len(marks), width), NO_TOKEN)
    padded[(columns >= first) & (columns < first + lengths)] = torch.cat(list(marks)).long()
    return padded


def _find_positions(sought: Tensor, ids: Tensor) -> list[int]:
    in_order, positions = ids.sort()
    indices: list[int] = positions[torch.searchsorted(in_order, sought)].tolist()
    return indices


class Unparsed:
    """Dataset in place of the heads or labels of a text without parses; each is missing."""

    def __init__(self, sizes: np.ndarray) -> None:
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> Tensor:
        return torch.full((int(self.sizes[index]),), NO_HEAD)


def load_marks(
    kind: str,
    folder: str,
    split: str,
    source: str,
    target: str,
    language: str,
    combine: bool = False,
    upsample_primary: int = 1,
) -> Any | None:
    """Load the binarised heads or labels of one language of a split, as fairseq loads the text.

    Args:
        kind: ``heads`` or another suffix of binarised marks.
        folder: the folder of the binarised corpus.
        split: the name of the split, such as ``train``.
        source, target: the source and the target language.
        language: the language of the marks.
        combine: also load ``train1``, ``train2``, ...; parts without marks are unparsed.
        upsample_primary: how many times the first part is in the dataset.

    Returns:
        A memory-mapped dataset of marks, or None if no sentence of any part has a parse.

    Raises:
        DataError: the marks do not belong to the text.
    """
    parts: list[Any] = []
    any_parse = False
    for prefix, pair in find_parts(Path(folder), split, source, target, combine):
        text_path, marks_path = (f"{prefix}{k}.{pair}.{language}" for k in ("", f".{kind}"))
        text = data_utils.load_indexed_dataset(text_path)  # sizes are a view of its memory map
        lengths = text.sizes - 1
        if not MMapIndexedDataset.exists(marks_path):
            parts.append(Unparsed(lengths))
            continue
        check_dataset(marks_path)
        check_checksums(text_path, marks_path)
        any_parse = any_parse or has_entry(marks_path, 0)
        parts.append(MMapIndexedDataset(marks_path))
        if not np.array_equal(parts[-1].sizes, lengths):
            raise DataError(
                f"{marks_path}: not the {kind} of {text_path}; "
                f"binarise the text and its {kind} together, with syncattn-preprocess"
            )
    if not any_parse:
        return None
    if len(parts) == 1:
        return parts[0]
    return ConcatDataset(parts, [upsample_primary] + [1] * (len(parts) - 1))


def list_texts(
    folder: str, split: str, source: str, target: str, combine: bool
) -> Iterator[tuple[str, str]]:
    """Yield the path, without suffix, and the language of each binarised text of a split.

    Args:
        folder: the folder of the binarised corpus.
        split: the name of the split, such as ``train``.
        source, target: the source and the target language.
        combine: whether to include ``train1``, ``train2``, ...
    """
    for prefix, pair in find_parts(Path(folder), split, source, target, combine):
        for language in (source, target):
            path = f"{prefix}.{pair}.{language}"
            if indexed_dataset.dataset_exists(path, impl=None):  # the target may be missing
                yield path, language


def find_parts(
    folder: Path, split: str, source: str, target: str, combine: bool
) -> Iterator[tuple[Path, str]]:
    """Yield the path prefix and the language pair of each part (``train``, ``train1``) of a split.

    They are the parts that fairseq loads.

    Args:
        folder: the folder of the binarised corpus.
        split: the name of the split, such as ``train``.
        source, target: the source and the target language.
        combine: whether to include ``train1``, ``train2``, ...
    """
    for number in count():
        prefix = folder / f"{split}{number or ''}"
        for pair in (f"{source}-{target}", f"{target}-{source}"):
            if indexed_dataset.dataset_exists(f"{prefix}.{pair}.{source}", impl=None):
                yield prefix, pair
                break
        else:
            return
        if not combine:
            return
