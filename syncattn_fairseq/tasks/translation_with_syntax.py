"""Translation of text with parses."""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Optional, TextIO

import numpy as np
import torch
from fairseq import utils
from fairseq.data import LanguagePairDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II
from torch import Tensor

from ..data.dataset import SyntaxPairDataset, load_heads
from ..data.errors import DataError
from .parse_printer import ParsePrinter


@dataclass
class TranslationWithSyntaxConfig(TranslationConfig):
    """fairseq's options of translation, and ours."""

    upsample_primary: int = field(
        default=1, metadata={"help": "how often train counts beside train1, train2, ..."}
    )
    print_parses: bool = field(
        default=False,
        metadata={
            "help": "print the heads of each source and hypothesis (X- lines; with --results-path "
            "to parses-SUBSET.txt there)"
        },
    )
    gold_source_heads: bool = field(
        default=False,
        metadata={
            "help": "for analysis: the encoder's dependency heads attend to the binarised parse "
            "in place of what they predict"
        },
    )
    gen_subset: str = II("dataset.gen_subset")
    results_path: Optional[str] = II("common_eval.results_path")  # noqa: UP045 (fairseq reads it)


@register_task("translation_with_syntax", dataclass=TranslationWithSyntaxConfig)
class TranslationWithSyntaxTask(TranslationTask):
    """fairseq's translation, whose batches carry the parses that were binarised with the text.

    Any model that fairseq can train for translation can be trained here, on the same data.
    """

    cfg: TranslationWithSyntaxConfig

    def __init__(self, cfg: TranslationWithSyntaxConfig, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        if cfg.num_batch_buckets > 0 and int(np.__version__.split(".")[0]) >= 2:
            raise ValueError(
                "--num-batch-buckets: fairseq's bucketing needs numpy < 2; leave the option out"
            )
        self.nbest = 1
        self.parse_file_begun = False
        self.sentences_read = 0
        self.batches_read: deque[Tensor] = deque()

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """Load the text of a split as fairseq does, and the heads beside it.

        Raises:
            DataError: heads that do not fit the text, or none where gold heads are asked for.
        """
        super().load_dataset(split, epoch, combine, **kwargs)
        paths = utils.split_paths(self.cfg.data)
        folder = paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0]
        source, target = self.cfg.source_lang, self.cfg.target_lang
        src_heads, tgt_heads = (
            load_heads(folder, split, source, target, side, combine, self.cfg.upsample_primary)
            for side in (source, target)
        )
        if self.cfg.gold_source_heads and src_heads is None:
            raise DataError(
                f"{folder}: {split} has no source heads for --gold-source-heads; "
                "binarise it with syncattn-preprocess"
            )
        self.datasets[split] = SyntaxPairDataset(
            self.datasets[split], src_heads, tgt_heads, gold=self.cfg.gold_source_heads
        )

    def get_batch_iterator(self, *args: Any, **kwargs: Any) -> Any:
        """Batch as fairseq does, but lose no sentence.

        fairseq drops the last batch, with the longest sentences, if its size is not a multiple of
        ``--required-batch-size-multiple``, 8 unless the user knows.
        """
        kwargs["required_batch_size_multiple"] = 1
        if not torch.cuda.is_available():
            # fairseq buffers batches in a thread that it never stops. A run that ends within an
            # epoch may catch it in C++ code and abort, all done, with a failing exit status.
            # Loader processes work ahead anyway; on a GPU the thread also pays for copies.
            kwargs["data_buffer_size"] = 0
        return super().get_batch_iterator(*args, **kwargs)

    def build_dataset_for_inference(
        self, src_tokens: list[Tensor], src_lengths: list[int], constraints: Any = None
    ) -> LanguagePairDataset:
        """Make a dataset of what ``fairseq-interactive`` has read."""
        if not self.cfg.print_parses:
            return super().build_dataset_for_inference(src_tokens, src_lengths, constraints)
        dataset = _NumberedSentences(
            src_tokens,
            src_lengths,
            self.source_dictionary,
            tgt_dict=self.target_dictionary,
            constraints=constraints,
        )
        dataset.first, dataset.seen = self.sentences_read, self.batches_read
        self.sentences_read += len(src_tokens)
        return dataset

    def build_generator(self, models: Any, args: Any, *rest: Any, **kwargs: Any) -> Any:
        """Build fairseq's generator, and note how many hypotheses will be printed."""
        self.nbest = getattr(args, "nbest", 1)
        return super().build_generator(models, args, *rest, **kwargs)

    def inference_step(
        self,
        generator: Any,
        models: list[Any],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Any = None,
    ) -> list[list[dict[str, Any]]]:
        """Translate a batch; print its parses if they are asked for."""
        hypotheses: list[list[dict[str, Any]]] = super().inference_step(
            generator, models, sample, prefix_tokens, constraints
        )
        if self.cfg.print_parses:
            ids = sample["id"] if "id" in sample else self.batches_read.popleft()
            with self._parse_output() as output:
                # A reference that is forced is one hypothesis, whatever --nbest says.
                for n in range(min(self.nbest, max(map(len, hypotheses)))):
                    best = [h[min(n, len(h) - 1)]["tokens"] for h in hypotheses]
                    self.parse_printer.print(models, sample["net_input"], ids, best, output)
        return hypotheses

    @cached_property
    def parse_printer(self) -> ParsePrinter:
        """What prints parses."""
        return ParsePrinter(self.source_dictionary, self.target_dictionary)

    @contextmanager
    def _parse_output(self) -> Iterator[TextIO]:
        """Open what parses are printed to: standard output, or a file beside fairseq's own."""
        if self.cfg.results_path is None:
            yield sys.stdout
            return
        path = Path(self.cfg.results_path) / f"parses-{self.cfg.gen_subset}.txt"
        with path.open("a" if self.parse_file_begun else "w", encoding="utf-8") as file:
            self.parse_file_begun = True
            yield file


class _NumberedSentences(LanguagePairDataset):
    """Sentences that ``fairseq-interactive`` has read; it keeps their numbers to itself."""

    #: Number of the first sentence, among all that were read.
    first: int
    #: Numbers of each batch's sentences, in the order of the batches.
    seen: deque[Tensor]

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        batch: dict[str, Any] = super().collater(samples, **kwargs)
        self.seen.append(batch["id"] + self.first)
        return batch
