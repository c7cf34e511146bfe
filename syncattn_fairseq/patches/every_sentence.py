"""Keep every sentence in a batch, and name any sentence too long for a batch in a single line.

Faults: all versions drop the last batch, with the longest sentences, if its size is not a multiple
of ``--required-batch-size-multiple``, by default 8, whatever the task, in training, validation and
translation; and they end with a traceback if a sentence has too many subwords.
Test: ``test_every_sentence.py``.
"""

from typing import Any

import numpy as np

from ..base.errors import DataError
from .wrapping import wrap


def mend() -> None:
    """Make fairseq batch every sentence, and name in one line a sentence too long for a batch."""
    from fairseq.data import FairseqDataset
    from fairseq.tasks import FairseqTask
    from fairseq.tasks.translation import TranslationTask
    from fairseq.trainer import Trainer
    from fairseq.utils import resolve_max_positions

    @wrap(FairseqDataset, "batch_by_size")
    def batch_all(
        batch: Any,
        self: Any,
        indices: Any,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> Any:
        try:
            return batch(self, indices, max_tokens, max_sentences, 1)
        except AssertionError:
            check_tokens(self, indices, max_tokens)
            raise

    @wrap(FairseqTask, "filter_indices_by_size")
    def select_some(
        select: Any,
        self: Any,
        indices: Any,
        dataset: Any,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
    ) -> Any:
        kept, long = dataset.filter_indices_by_size(indices, max_positions)
        if long and (len(kept) == 0 or not ignore_invalid_inputs):
            names = [name for name, loaded in self.datasets.items() if loaded is dataset]
            leave_out = ", or use --skip-invalid-size-inputs-valid-test"
            first = getattr(dataset, "first", 0) + min(long) + 1  # of fairseq-interactive's input
            raise DataError(
                f"{names[0] if names else 'input'}: {len(long)} of {len(indices)} sentences have "
                f"more subwords than the model or an option allows ({_show(max_positions)}); the "
                f"first is sentence {first}, with {_show(dataset.size(min(long)))}; raise "
                "--max-tokens, --max-source-positions and --max-target-positions, or shorten "
                f"these sentences{'' if ignore_invalid_inputs else leave_out}"
            )
        return select(self, indices, dataset, max_positions, ignore_invalid_inputs)

    @wrap(Trainer, "__init__")
    def make_and_check(
        make: Any, self: Any, cfg: Any, task: Any, model: Any, *args: Any, **kw: Any
    ) -> None:
        make(self, cfg, task, model, *args, **kw)
        if isinstance(task, TranslationTask) and not cfg.dataset.disable_validation:
            # Before an epoch of training, not after it.
            limits = resolve_max_positions(task.max_positions(), model.max_positions())
            leave_out = cfg.dataset.skip_invalid_size_inputs_valid_test
            for data in task.datasets.values():
                numbers = select_some(task, np.arange(len(data)), data, limits, leave_out)
                check_tokens(data, numbers, cfg.dataset.max_tokens_valid)


def check_tokens(dataset: Any, numbers: Any, most: int | None) -> None:
    """Raise `DataError` if a sentence has more than ``most`` tokens, the limit of a batch.

    With None, there is no limit.
    """
    for number in numbers if most else ():
        if dataset.num_tokens(number) > most:
            raise DataError(
                f"--max-tokens {most}: sentence {number + 1} has {dataset.num_tokens(number)} "
                "subwords, the end of sentence included; raise --max-tokens and "
                "--max-tokens-valid to at least this number"
            )


def _show(sizes: Any) -> str:
    """Return the printed form of a size, or of a pair of sizes for source and target."""
    both = isinstance(sizes, tuple | list | np.ndarray)
    return " and ".join(str(int(size)) for size in (sizes if both else [sizes]))
