"""Translation of text with parses."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks import register_task
from omegaconf import OmegaConf

from ..base.errors import DataError
from ..data.dataset import SyntaxPairDataset, Unparsed, list_texts, load_marks
from ..data.fields import NOTHING, LossField
from ..data.labels import check_same_dictionaries, load_dictionary
from ..data.mmap_blocks import check_dataset, check_symbols
from ..registered_names import TASK
from .fast import bf16_products, fuse_optimizer, multiplies_bf16, replace_dropout
from .options import TranslationWithSyntaxConfig
from .translating import TranslatingTask


@register_task(TASK, dataclass=TranslationWithSyntaxConfig)
class TranslationWithSyntaxTask(TranslatingTask):
    """fairseq's translation task, with the binarised parses in the batches.

    It trains any model that fairseq can train for translation, on the same data. A model that
    reads parses says so in its ``source_fields``.
    """

    cfg: TranslationWithSyntaxConfig

    def __init__(self, cfg: TranslationWithSyntaxConfig, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        if cfg.num_batch_buckets > 0 and int(np.__version__.split(".")[0]) >= 2:
            raise DataError(
                "--num-batch-buckets: fairseq's bucketing needs numpy < 2; leave the option out"
            )
        self.loss_fields: frozenset[LossField] = frozenset()
        self.models_take_lengths: list[bool] = []

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> Any:
        """Set the task up as fairseq does.

        Raises:
            DataError: parameters would be sharded, or folders of data do not go together.
        """
        # Only a complete configuration, as commands have, knows the backend.
        if OmegaConf.is_config(cfg) and (
            OmegaConf.select(cfg, "ddp_backend", throw_on_resolution_failure=False)
            == "fully_sharded"
        ):
            raise DataError(
                "--ddp-backend fully_sharded: losses read parameters of syntactic heads outside "
                "their layers, where shards are not gathered; leave the option out"
            )
        task = super().setup_task(cfg, **kwargs)
        check_same_dictionaries(utils.split_paths(cfg.data), (cfg.source_lang, cfg.target_lang))
        return task

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """Load a dictionary as fairseq does, but name the file if it is damaged.

        Raises:
            DataError: the file is damaged.
        """
        return load_dictionary(Path(filename))

    def build_model(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        """Build a model, and note what it reads, since data is loaded later."""
        model = super().build_model(cfg, *args, **kwargs)
        self.fields |= getattr(model, "source_fields", NOTHING)
        self.models_take_lengths.append(getattr(model, "takes_lengths_on_cpu", False))
        if self.cfg.gold_source_heads and len(self.fields.rules) > 1:
            raise DataError(
                "--gold-source-heads: the ensemble's dependency heads are of different kinds; "
                "decode with models of one kind"
            )
        replace_dropout(model, self.cfg.fast)
        return model

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Do forward and backward of a batch."""
        fuse_optimizer(optimizer, self.cfg.fast)
        with bf16_products(self.cfg.fast and multiplies_bf16()):
            return super().train_step(sample, model, criterion, optimizer, *args, **kwargs)

    def build_criterion(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        """Build a criterion, and note what its losses read, since data is loaded later.

        Raises:
            DataError: the model reads labels, and the data has no dictionary of them.
        """
        self._require_label_dictionary()
        criterion = super().build_criterion(cfg, *args, **kwargs)
        if hasattr(criterion, "list_fields"):
            self.loss_fields |= criterion.list_fields()
        return criterion

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """Load the text of a split as fairseq does, and its parses.

        Raises:
            DataError: the parses do not fit the text, or are missing although the model reads them;
                or a file is damaged or has words beyond its dictionary.
        """
        paths = utils.split_paths(self.cfg.data)
        folder = paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0]
        source, target = self.cfg.source_lang, self.cfg.target_lang
        texts = [*list_texts(folder, split, source, target, combine)]
        for path, _ in texts:
            check_dataset(path)
        super().load_dataset(split, epoch, combine, **kwargs)
        pairs = self.datasets[split]
        if self.cfg.load_alignments and split == self.cfg.train_subset and not pairs.align_dataset:
            raise DataError(
                f"{folder}: {split} has no links for --load-alignments; put them beside its heads, "
                f"as FP.align, and binarise them: syncattn-preprocess --add align"
            )

        def load(kind: str, language: str, needed: bool = False) -> Any | None:
            upsample = self.cfg.upsample_primary
            marks = load_marks(kind, folder, split, source, target, language, combine, upsample)
            if marks is not None or not needed:
                return marks
            if not self.continues_unparsed:
                raise DataError(
                    f"{folder}: {split} has no source {kind}, which the model reads; binarise it "
                    "together with its parses, with syncattn-preprocess, or use "
                    "--missing-parses ignore"
                )
            return Unparsed(pairs.src_sizes - 1)

        src_heads = load("heads", source, needed=self.fields.reads("heads"))
        if self.cfg.gold_source_heads and src_heads is None:
            raise DataError(
                f"{folder}: {split} has no source heads for --gold-source-heads; "
                "binarise it with syncattn-preprocess"
            )
        self.datasets[split] = SyntaxPairDataset(
            pairs,
            src_heads,
            None if pairs.tgt is None else load("heads", target),
            load("labels", source, needed=True) if self.fields.reads("labels") else None,
            fields=self.fields,
            gold=self.cfg.gold_source_heads,
            loss_fields=self.loss_fields,
            schemes=self.schemes,
            lengths_on_cpu=bool(self.models_take_lengths) and all(self.models_take_lengths),
        )
        # Now that checksums have found damage.
        for path, language in texts:
            words = self.source_dictionary if language == source else self.target_dictionary
            check_symbols(path, len(words))

    def get_batch_iterator(self, *args: Any, epoch: int = 1, **kwargs: Any) -> Any:
        """Batch as fairseq does, but make the same batches after a restart.

        fairseq makes the batches of all epochs at once. They depend on the epoch in which the
        process starts, so a run resumed in epoch 2 would have other batches than an uninterrupted
        one. We always make those of epoch 1.
        """
        if not torch.cuda.is_available():
            # fairseq buffers batches in a thread that it never stops. If a run ends within an
            # epoch while the thread is in C++ code, it aborts with a failing exit status, although
            # its work is done. Loader processes work ahead anyway; on a GPU the thread is worth
            # keeping, since it also copies batches.
            kwargs["data_buffer_size"] = 0
        # Options or data in several folders can ask for other batches in each epoch.
        fixed = not any(
            kwargs.get(reason) for reason in ("disable_iterator_cache", "update_epoch_batch_itr")
        )
        iterator = super().get_batch_iterator(*args, epoch=1 if fixed else epoch, **kwargs)
        if iterator.iterations_in_epoch == 0:  # not in use yet
            iterator.epoch = epoch
        return iterator
