from typing import Any

import numpy as np
import pytest
from fairseq.data import FairseqDataset
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401  (fairseq's functions are replaced)
from syncattn_fairseq.base.errors import DataError


class Numbers(FairseqDataset):  # type: ignore[misc]
    """Sentences of 1 to 13 subwords."""

    def __len__(self) -> int:
        return 13

    def ordered_indices(self) -> np.ndarray:
        return np.arange(13)

    def num_tokens(self, index: int) -> int:
        return index + 1

    size = num_tokens

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return indices + 1


@pytest.fixture
def task() -> Any:
    """One of fairseq's own tasks."""
    task = TranslationTask.__new__(TranslationTask)
    task.cfg, task.datasets, task.dataset_to_epoch_iter = OmegaConf.create({}), {}, {}
    return task


@pytest.mark.parametrize(
    "limits", [{"max_sentences": 5}, {"max_tokens": 20}, {"max_tokens": 400}, {"max_sentences": 13}]
)
def test_no_task_loses_sentences(task, limits):
    batches = task.get_batch_iterator(
        Numbers(), required_batch_size_multiple=8, **limits
    ).frozen_batches
    assert sorted(number for batch in batches for number in batch) == list(range(13))


def test_few_sentences_that_are_too_long_may_be_left_out(task):
    kept = task.filter_indices_by_size(
        np.arange(13), Numbers(), max_positions=10, ignore_invalid_inputs=True
    )
    assert kept.tolist() == [*range(10)]


def test_what_fits_into_no_batch_is_one_line(task):
    with pytest.raises(DataError, match="^--max-tokens 12: sentence 13 has 13 subwords"):
        task.get_batch_iterator(Numbers(), max_tokens=12)


def test_what_the_model_cannot_read_is_one_line(task):
    task.datasets["valid"] = data = Numbers()
    with pytest.raises(
        DataError, match=r"^valid: 3 of 13 .* allows \(10\); .* 11, with 11; .*-skip"
    ):
        task.get_batch_iterator(data, max_sentences=5, max_positions=10)
    left = task.get_batch_iterator(
        data, max_sentences=5, max_positions=10, ignore_invalid_inputs=True
    )
    assert sum(map(len, left.frozen_batches)) == 10
    with pytest.raises(DataError, match=r"^input: 13 of 13 .* shorten these sentences$"):
        task.get_batch_iterator(
            Numbers(), max_sentences=5, max_positions=0, ignore_invalid_inputs=True
        )
