"""fairseq's translation task, with parses of the text."""

import logging
from contextlib import nullcontext
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks import register_task
from omegaconf import OmegaConf

from ..base.errors import DataError
from ..criterions.label_smoothed_cross_entropy_with_syntax import (
    LabelSmoothedCrossEntropyWithSyntax,
)
from ..criterions.terms.term import LANGUAGE_SIDES
from ..data.binarise import KINDS
from ..data.dataset import SyntaxPairDataset, Unparsed, list_texts, load_marks
from ..data.drawn_controls import read_drawn_controls
from ..data.fields import NOTHING, LossField
from ..data.fingerprint import read_fingerprint
from ..data.labels import check_same_dictionaries, load_dictionary
from ..data.mmap_blocks import check_dataset, check_symbols
from ..data.parses import LINKS
from ..data.shapes import Plan, make_plan, measure_batches
from ..data.training_parts import load_links, look_at_parts, say_what_lacks
from ..models.config import as_namespace
from ..registered_names import TASK
from .fast import fuse_optimizer, replace_dropout
from .graphs import GraphedTraining, Recorder, find_model_obstacle, find_recorder
from .options import TranslationWithSyntaxConfig
from .products import bf16_products, multiplies_bf16, tf32_products
from .translating import TranslatingTask

logger = logging.getLogger(__name__)


def may_read_parses(model: Any, cfg: Any) -> bool:
    """Return whether a model with these options reads parses or learns to predict parses."""
    if not hasattr(model, "describe"):
        return not is_fairseqs(model)
    described = model.describe(as_namespace(cfg))
    learn = {f"{side}_dependency" for side in LANGUAGE_SIDES}
    return described.fields != NOTHING or not learn.isdisjoint(described.exposed)


def is_fairseqs(part: Any) -> bool:
    """Return whether the class of a model or criterion is defined in fairseq itself."""
    return type(part).__module__.partition(".")[0] == "fairseq"


@register_task(TASK, dataclass=TranslationWithSyntaxConfig)
class TranslationWithSyntaxTask(TranslatingTask):
    """fairseq's translation task, which adds binarised parses to the batches.

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
        #: Annotations of the training text's parts, such as ``heads.en``; None before a check.
        self.annotations: frozenset[str] | None = None
        self.models_take_lengths: list[bool] = []
        #: Whether each model, and each criterion, may read parses; empty before one is built.
        self.models_read: list[bool] = []
        self.criteria_read: list[bool] = []
        #: The shapes to which training batches are padded, with ``--fast``.
        self.plan: Plan | None = None
        self.graphs: GraphedTraining | None = None
        self.model_obstacle = ""
        self._planned: Any = None

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> Any:
        """Create the task from its options; check that all folders of data share dictionaries.

        Raises:
            DataError: parameters would be sharded, folders of data do not go together, or a file of
                them is not the one that the text was binarised with.
        """
        # Only a complete configuration, as commands have, knows the backend.
        if OmegaConf.is_config(cfg) and (
            OmegaConf.select(cfg, "ddp_backend", throw_on_resolution_failure=False)
            == "fully_sharded"
        ):
            raise DataError(
                "--ddp-backend fully_sharded: the losses read parameters that are not gathered "
                "outside their layers; leave the option out"
            )
        task = super().setup_task(cfg, **kwargs)
        folders, languages = utils.split_paths(cfg.data), (cfg.source_lang, cfg.target_lang)
        check_same_dictionaries(folders, languages)
        task.fingerprint = read_fingerprint([*map(Path, folders)], languages)
        return task

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """Load a dictionary as fairseq does, but name a damaged file in the error.

        Raises:
            DataError: the file is damaged.
        """
        return load_dictionary(Path(filename))

    def build_model(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        """Build a model, and note the batch fields it reads, for the later loading of data."""
        model = super().build_model(cfg, *args, **kwargs)
        self.fields |= getattr(model, "source_fields", NOTHING)
        self.models_take_lengths.append(getattr(model, "takes_lengths_on_cpu", False))
        self.models_read.append(may_read_parses(model, cfg))
        if self.cfg.gold_source_heads and len(self.fields.rules) > 1:
            raise DataError(
                "--gold-source-heads: the models of the ensemble have different kinds of "
                "dependency heads; decode with models of the same kind"
            )
        replace_dropout(model, self.cfg.fast)
        self.model_obstacle = self.model_obstacle or find_model_obstacle(model)
        return model

    @cached_property
    def recorder(self) -> Recorder | None:
        """The recorder of training passes as CUDA graphs, or None without ``--fast`` or a GPU."""
        if not self.cfg.fast:
            return None
        on_gpu = torch.cuda.is_available() and not self.cfg.cpu
        return find_recorder(torch.device("cuda" if on_gpu else "cpu"))

    def train_step(
        self,
        sample: dict[str, Any],
        model: Any,
        criterion: Any,
        optimizer: Any,
        update_num: int,
        ignore_grad: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run forward and backward pass of a batch; return loss, sample size and numbers to log.

        Args:
            sample: the batch.
            model, criterion, optimizer: as for fairseq's task.
            update_num: the number of earlier updates.
            ignore_grad: whether the gradient is multiplied by 0, as for a dummy batch.
        """
        fuse_optimizer(optimizer, self.cfg.fast)
        with self._fast_products():
            if self.recorder is not None and not ignore_grad:
                own = model, criterion, optimizer
                if self.graphs is None or not self.graphs.belongs_to(*own):
                    self.graphs = GraphedTraining(*own, self.recorder)
                trained = self.graphs.step(sample, update_num)
                if trained is not None:
                    return trained
            return super().train_step(
                sample, model, criterion, optimizer, update_num, ignore_grad, **kwargs
            )

    def _fast_products(self) -> Any:
        """Return a context with matrix products in lower precision if ``--fast`` is on."""
        if self.recorder is not None:
            return tf32_products()
        if not self.cfg.fast or not multiplies_bf16():
            return nullcontext()
        return bf16_products(int if self.plan is None else self.plan.round_rows)

    def begin_epoch(self, epoch: int, model: Any) -> None:
        """Log the number and memory of new CUDA graphs, before each epoch and each validation."""
        if self.graphs is not None:
            self.graphs.report()

    begin_valid_epoch = begin_epoch

    def build_criterion(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        """Build a criterion, and note the batch fields it reads, for the later loading of data.

        Raises:
            DataError: the model reads labels, and the data has no dictionary of them.
        """
        self._require_label_dictionary()
        criterion = super().build_criterion(cfg, *args, **kwargs)
        if hasattr(criterion, "list_fields"):
            self.loss_fields |= criterion.list_fields()
        own = isinstance(criterion, LabelSmoothedCrossEntropyWithSyntax)
        self.criteria_read.append(criterion.reads_parses() if own else not is_fairseqs(criterion))
        return criterion

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """Load a split's text as fairseq does, and the parses read by model and losses.

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
        known: frozenset[str] = frozenset()
        if split == self.cfg.train_subset and combine:
            known = self._look_at_parts()
        super().load_dataset(split, epoch, combine, **kwargs)
        pairs, upsample = self.datasets[split], self.cfg.upsample_primary
        if self.cfg.load_alignments and combine:
            pairs.align_dataset = load_links(folder, split, source, target, upsample)
        trains = split == self.cfg.train_subset
        if self.cfg.load_alignments and trains and not (pairs.align_dataset or LINKS in known):
            raise DataError(
                f"{folder}: {split} has no links for --load-alignments; write the links to "
                "FP.align, beside the heads, and binarise them: syncattn-preprocess --add align"
            )

        def load(kind: str, language: str, needed: bool = False) -> Any | None:
            marks = load_marks(kind, folder, split, source, target, language, combine, upsample)
            if marks is not None:
                return marks
            if f"{kind}.{language}" in known or (needed and self.continues_unparsed):
                return Unparsed((pairs.src_sizes if language == source else pairs.tgt_sizes) - 1)
            if needed:
                raise self._refuse_unparsed(folder, split, kind)
            return None

        reads_heads = self._reads_heads()
        needed = self.fields.reads("heads")
        src_heads = load("heads", source, needed) if reads_heads else None
        if self.cfg.gold_source_heads and src_heads is None:
            raise DataError(
                f"{folder}: {split} has no source heads for --gold-source-heads; "
                "binarise it with syncattn-preprocess"
            )
        self.datasets[split] = SyntaxPairDataset(
            pairs,
            src_heads,
            load("heads", target) if reads_heads and pairs.tgt is not None else None,
            load("labels", source, needed=True) if self.fields.reads("labels") else None,
            fields=self.fields,
            gold=self.cfg.gold_source_heads,
            loss_fields=self.loss_fields,
            schemes=self.schemes,
            lengths_on_cpu=bool(self.models_take_lengths) and all(self.models_take_lengths),
        )
        read_drawn_controls(self.datasets[split], folder, split, source, target, combine)
        # Now that checksums have found damage.
        for path, language in texts:
            words = self.source_dictionary if language == source else self.target_dictionary
            check_symbols(path, len(words))

    def _look_at_parts(self) -> frozenset[str]:
        """Check the parses and links of all parts of the training text when the first is loaded.

        Returns:
            What any of them has besides its text, such as ``heads.en``.

        Raises:
            DataError: one has no parses, which the model reads, or is not there.
        """
        if self.annotations is None:
            source, target = self.cfg.source_lang, self.cfg.target_lang
            folders = utils.split_paths(self.cfg.data)
            read = [kind for kind in KINDS if self.fields.reads(kind)]
            needs = {f"{kind}.{source}" for kind in read}
            needs |= {f"heads.{source}", f"heads.{target}"} if self._reads_heads() else set()
            needs |= {LINKS} if self.cfg.load_alignments else set()
            parts = look_at_parts(folders, self.cfg.train_subset, source, target, needs)
            for part, kind in [] if self.continues_unparsed else product(parts, read):
                if f"{kind}.{source}" not in part.has:
                    raise self._refuse_unparsed(part.path.parent, part.path.name, kind)
            for line in say_what_lacks(parts):
                logger.info("%s", line)
            self.annotations = frozenset[str]().union(*(part.has for part in parts))
        return self.annotations

    def _refuse_unparsed(self, folder: object, split: str, kind: str) -> DataError:
        """Return the error for a text without the parses read by the model."""
        return DataError(
            f"{folder}: {split} has no source {kind}, which the model reads; binarise the text "
            "together with its parses, or add the parses: syncattn-preprocess --add "
            f"{kind}.{self.cfg.source_lang} (see docs/data.md); or use --missing-parses ignore"
        )

    def _reads_heads(self) -> bool:
        """Return whether model or losses may read heads of parses, whose loading takes time."""
        if self.cfg.gold_source_heads or not (self.models_read and self.criteria_read):
            return True
        return any(self.models_read + self.criteria_read)

    def get_batch_iterator(self, *args: Any, epoch: int = 1, **kwargs: Any) -> Any:
        """Return fairseq's iterator over batches, but with the same batches after a restart.

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
        if self.cfg.fast:
            self._plan_shapes(iterator)
        return iterator

    def _plan_shapes(self, iterator: Any) -> None:
        """Choose the shapes for padding training batches, whenever batches are made."""
        dataset, batches = iterator.dataset, iterator.frozen_batches
        trains = dataset is self.datasets.get(self.cfg.train_subset)
        if not trains or batches is self._planned:
            return
        self._planned = batches
        pairs, earlier = dataset.dataset, self.plan
        self.plan = make_plan(measure_batches(batches, pairs.src_sizes, pairs.tgt_sizes))
        if self.recorder is None or self.model_obstacle:
            return
        dataset.plan = self.plan
        if self.graphs is not None and earlier is not None and not self.plan.equals(earlier):
            self.graphs.forget()
        message = "--fast: %d batches are padded to %d shapes, which adds %.1f %% of tokens"
        logger.info(message, len(self.plan), len(batches), 100 * self.plan.added)
