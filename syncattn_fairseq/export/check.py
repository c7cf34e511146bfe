"""Check that an exported model gives sentences the same scores, from the same subwords."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..base.errors import DataError
from ..data.record_checks import check_languages, check_subwords
from .fold import FoldedModel

#: Splits to take sentences from; the first one that exists is used.
_SAMPLED = ("valid", "test", "train")
_SENTENCES = 20


@dataclass(frozen=True)
class Sample:
    """A batch of sentence pairs on which the scores of checkpoint and export are compared.

    Attributes:
        net_input: the input of a fairseq model.
        target: the target tokens, ``(B, T)``, padded on the right.
        tokens: the number of target tokens, including the ends of sentences.
    """

    net_input: dict[str, Tensor]
    target: Tensor
    tokens: int

    def sources(self, words: Sequence[str], field: str = "src_tokens") -> list[list[str]]:
        """Return each source sentence as subwords, or as labels, without the end of sentence.

        Args:
            words: the symbols of the dictionary, by index.
            field: the field of ``net_input``: that of the subwords, or that of the labels.
        """
        inside = self.net_input["src_tokens"] > 2  # <s>, <pad> and </s> come first
        rows = zip(self.net_input[field], inside, strict=True)
        return [[words[i] for i in row[there].tolist()] for row, there in rows]

    def targets(self, words: Sequence[str]) -> list[list[str]]:
        """Return each target sentence as subwords, without the end of sentence."""
        return [[words[i] for i in row[row > 2].tolist()] for row in self.target]


def load_sample(task: Any, longest: tuple[int, int]) -> Sample:
    """Load sentence pairs of the corpus, to compare the scores of checkpoint and export on them.

    Args:
        task: a fairseq task.
        longest: the most tokens of a source and of a target.

    Raises:
        DataError: no pair of the corpus is as short.
    """
    for split in _SAMPLED:
        try:
            task.load_dataset(split)
        except FileNotFoundError:
            continue
        dataset = task.datasets[split]
        short, _ = dataset.filter_indices_by_size(np.arange(len(dataset)), longest)
        if not len(short):
            continue
        batch = dataset.collater([dataset[i] for i in short[:_SENTENCES]])
        return Sample(batch["net_input"], batch["target"], int(batch["ntokens"]))
    raise DataError(
        f"{task.cfg.data}: has no sentences in {', '.join(_SAMPLED)} that the model can read, to "
        "compare the scores of model and export; give the folder of the binarised corpus"
    )


@torch.no_grad()
def scores(model: Any, net_input: dict[str, Tensor], target: Tensor) -> list[float]:
    """Return the natural log-probability of each target under a fairseq model."""
    output = model(**net_input)
    log_probabilities = model.get_normalized_probs(output, log_probs=True)
    return target_scores(log_probabilities, target)


def target_scores(log_probabilities: Tensor, target: Tensor) -> list[float]:
    """Return the log-probability of each target ``(B, T)``, given those of tokens ``(B, T, V)``."""
    of_tokens = log_probabilities.gather(2, target.unsqueeze(2)).squeeze(2)
    return of_tokens.masked_fill(target == 1, 0).sum(1, dtype=torch.float64).tolist()


def compare(
    expected: Sequence[float],
    exported: Sequence[float],
    tokens: int,
    exact: bool,
    where: Path | str,
) -> str:
    """Check that the scores of checkpoint and export agree; return the difference as a sentence.

    Args:
        expected: the log-probability of each sentence under the checkpoint.
        exported: the log-probability of each sentence under the export.
        tokens: the number of target tokens in all sentences.
        exact: whether the weights are not quantised, so that only rounding differs.
        where: the name of the model in messages.

    Raises:
        DataError: the scores differ by more than rounding explains.
    """
    difference = sum(abs(a - b) for a, b in zip(expected, exported, strict=True)) / tokens
    if not difference < (1e-4 if exact else 0.2):
        raise DataError(
            f"{where}: the exported model differs from the checkpoint: log-probabilities of "
            f"{len(expected)} sentences differ by {difference:.2g} per token; nothing was written"
        )
    return f"{len(expected)} sentences have the same scores to {difference:.1g} nats per token"


def check_text_steps(folded: FoldedModel, sample: Sample) -> None:
    """Raise `DataError` if subword models or tokenizer settings do not fit the corpus's text."""
    check_languages(folded.preparations, (folded.source, folded.target), folded.task.cfg.data)
    if folded.subwords is None or folded.segmenters is None:
        return
    sides = sample.sources(folded.source_words), sample.targets(folded.target_words)
    for model, segmenter, rows in zip(folded.subwords, folded.segmenters, sides, strict=True):
        check_subwords(model.path, segmenter, rows, folded.task.cfg.data)
