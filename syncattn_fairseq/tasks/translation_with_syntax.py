"""Translation of text with parses."""

import logging
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Optional, TextIO

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.modules import MultiheadAttention
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II, OmegaConf
from torch import Tensor

from ..base.errors import DataError
from ..base.option_fields import option
from ..data.dataset import SyntaxPairDataset, Unparsed, list_texts, load_marks
from ..data.fields import NOTHING, LossField
from ..data.labels import check_same_dictionaries, load_dictionary, locate_dictionary
from ..data.mmap_blocks import check_dataset, check_symbols
from ..data.preparation import stored_schemes
from ..data.shapes import Plan, make_plan, measure_batches
from ..registered_names import TASK
from .analysis_printer import AnalysisPrinter
from .fast import fuse_optimizer, replace_dropout
from .graphs import GraphedTraining, Recorder, find_model_obstacle, find_recorder
from .input_parses import InputParses
from .products import bf16_products, multiplies_bf16, tf32_products

logger = logging.getLogger(__name__)


@dataclass
class TranslationWithSyntaxConfig(TranslationConfig):
    """fairseq's options for translation, and ours."""

    upsample_primary: int = option(1, "how often to repeat train if there are train1, train2, ...")
    safety_save_updates: int = option(
        0,
        "also save checkpoint_last.pt every N updates, without validating (0 = "
        "never); --save-interval-updates validates, which counts towards --patience",
    )
    fast: bool = option(
        False,
        "train faster; such a training can be repeated and resumed exactly, but differs from one "
        "without the option. On a CPU: products of large matrices in bfloat16 if the processor has "
        "them, none for padding, cheap random numbers for dropout, Adam in one pass. On a GPU: "
        "CUDA graphs of forward and backward passes, one for each of the shapes to which batches "
        "are padded, and products of float32 in TF32",
    )
    missing_parses: ChoiceEnum(["stop", "ignore"]) = option(  # type: ignore[valid-type]
        "stop",
        "if text to translate has no parses, but the model reads them: stop, or "
        "continue without them (no scaling, unknown labels)",
    )
    input_heads: Optional[str] = option(  # noqa: UP045 (fairseq reads it)
        None, "fairseq-interactive: file with the heads of each line of the input"
    )
    input_labels: Optional[str] = option(  # noqa: UP045
        None, "fairseq-interactive: file with the dependency labels of each line"
    )
    source_parser: Optional[str] = option(  # noqa: UP045
        None, "fairseq-interactive: parser of the input, such as stanza:en"
    )
    print_parses: bool = option(
        False,
        "print the heads of each source and hypothesis (X- lines; with --results-path, "
        "into parses-SUBSET.txt there)",
    )
    print_distances: bool = option(
        False, "also print the syntactic distances of each source and hypothesis"
    )
    print_layer_alignments: bool = option(
        False, "also print the links of every decoder layer (L- lines)"
    )
    alignment_head: int = option(
        0,
        "the head of a decoder layer that --print-alignment and "
        "--print-layer-alignments read, from 1 (0 = mean of all heads)",
    )
    gold_source_heads: bool = option(
        False,
        "for analysis: make the encoder's dependency heads attend to the gold parse, "
        "not to what they predict",
    )
    gen_subset: str = II("dataset.gen_subset")
    results_path: Optional[str] = II("common_eval.results_path")  # noqa: UP045
    ddp_backend: str = II("distributed_training.ddp_backend")
    cpu: bool = II("common.cpu")


@register_task(TASK, dataclass=TranslationWithSyntaxConfig)
class TranslationWithSyntaxTask(TranslationTask):
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
        self.fields = NOTHING
        self.loss_fields: frozenset[LossField] = frozenset()
        self.models_take_lengths: list[bool] = []
        self.nbest = 1
        self.parse_file_begun = False
        self.input_texts: list[str] = []
        self.sentences_read = 0
        self.batches_read: deque[dict[str, Any]] = deque()
        #: The shapes of the training's batches, with ``--fast``.
        self.plan: Plan | None = None
        self.graphs: GraphedTraining | None = None
        self.model_obstacle = ""
        self._planned: Any = None

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

    @cached_property
    def source_label_dictionary(self) -> Dictionary | None:
        """The source's dependency labels, None if the data has none."""
        path = locate_dictionary(utils.split_paths(self.cfg.data)[0], self.cfg.source_lang)
        return load_dictionary(path) if path.exists() else None

    @property
    def continues_unparsed(self) -> bool:
        """Whether text without parses is used without them (``--missing-parses ignore``)."""
        return bool(self.cfg.missing_parses == "ignore")

    @cached_property
    def schemes(self) -> tuple[str | None, str | None]:
        """How the subwords of both sides are marked; None if this was not stored."""
        stored = stored_schemes(utils.split_paths(self.cfg.data)[0])
        return stored.get(self.cfg.source_lang), stored.get(self.cfg.target_lang)

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
        self.model_obstacle = self.model_obstacle or find_model_obstacle(model)
        return model

    @cached_property
    def recorder(self) -> Recorder | None:
        """What records the passes of updates; None without ``--fast`` or on a CPU."""
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
        """Do forward and backward of a batch."""
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
        """Multiply with fewer digits, if that is wanted and the machine can."""
        if self.recorder is not None:
            return tf32_products()
        if not self.cfg.fast or not multiplies_bf16():
            return nullcontext()
        return bf16_products(int if self.plan is None else self.plan.round_rows)

    def begin_epoch(self, epoch: int, model: Any) -> None:
        """Log the graphs of the last epoch, as before each validation."""
        if self.graphs is not None:
            self.graphs.report()

    begin_valid_epoch = begin_epoch

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

    def _require_label_dictionary(self) -> None:
        """Check that labels have numbers, if the model reads labels."""
        if self.fields.reads("labels") and self.source_label_dictionary is None:
            raise DataError(
                f"{self.cfg.data}: no dictionary of the source's dependency labels, which the "
                "model reads; binarise labels with syncattn-preprocess, or copy dict.labels."
                f"{self.cfg.source_lang}.txt from the training's data"
            )

    def _require_parses(self, dataset: SyntaxPairDataset, name: str, remedy: str) -> None:
        """Check that every sentence to translate has a parse, if the model reads parses."""
        if self.continues_unparsed:
            return
        missing = dataset.list_unparsed()
        if missing:
            raise DataError(
                f"{name}: {len(missing)} of {len(dataset)} sentences have no parse, which the "
                f"model reads; the first is number {missing[0] + 1}; {remedy}, or use "
                "--missing-parses ignore"
            )

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
        if self.cfg.fast:
            self._plan_shapes(iterator)
        return iterator

    def _plan_shapes(self, iterator: Any) -> None:
        """Choose the shapes of the training's batches, whenever they are made."""
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
        message = "--fast: %d shapes hold %d batches, padding adds %.1f %% of tokens"
        logger.info(message, len(self.plan), len(batches), 100 * self.plan.added)

    def get_interactive_tokens_and_lengths(
        self, lines: list[str], encode_fn: Any
    ) -> tuple[list[Tensor], list[int]]:
        """Encode lines as fairseq does, and keep the text, which still has unknown subwords.

        A byte order mark at the beginning of the input is not part of the text.
        """
        if self.sentences_read == 0:
            lines = [line.removeprefix("\ufeff") for line in lines[:1]] + lines[1:]
        self.input_texts = [encode_fn(line) for line in lines]
        tokens: tuple[list[Tensor], list[int]] = super().get_interactive_tokens_and_lengths(
            self.input_texts, lambda text: text
        )
        return tokens

    @cached_property
    def input_parses(self) -> InputParses:
        """The parses of the input."""
        if self.cfg.source_parser or self.cfg.input_labels:
            self._require_label_dictionary()
        return InputParses(
            self.source_dictionary,
            self.source_label_dictionary,
            self.cfg.input_heads,
            self.cfg.input_labels,
            self.cfg.source_parser,
            self.schemes[0],
        )

    def build_dataset_for_inference(
        self, src_tokens: list[Tensor], src_lengths: list[int], constraints: Any = None
    ) -> SyntaxPairDataset:
        """Make a dataset of the input of ``fairseq-interactive``, and get its parses.

        Raises:
            DataError: the model reads parses, and there are none.
        """
        texts, self.input_texts = self.input_texts, []
        if not texts:  # fairseq's hub interface encodes by itself
            texts = [self.source_dictionary.string(tokens) for tokens in src_tokens]
        sentences = LanguagePairDataset(
            src_tokens,
            src_lengths,
            self.source_dictionary,
            tgt_dict=self.target_dictionary,
            constraints=constraints,
        )
        if self.cfg.gold_source_heads and not (self.cfg.input_heads or self.cfg.source_parser):
            raise DataError("--gold-source-heads: give --input-heads or --source-parser, too")
        heads, labels = self.input_parses(texts)
        dataset = _InputSentences(
            sentences, heads, None, labels, self.fields, gold=self.cfg.gold_source_heads
        )
        self._require_parses(
            dataset,
            "input",
            "give --input-heads and --input-labels, or --source-parser stanza:LANG",
        )
        dataset.first, dataset.seen = self.sentences_read, self.batches_read
        self.sentences_read += len(src_tokens)
        return dataset

    def build_generator(self, models: Any, args: Any, *rest: Any, **kwargs: Any) -> Any:
        """Build fairseq's generator, and check that the data has what translating it needs.

        Raises:
            DataError: the model reads parses, and sentences of the data have none; or it has no
                heads for gold parses, or for an option.
        """
        self.nbest = getattr(args, "nbest", 1)
        if self.fields.fields and not all(hasattr(model, "source_fields") for model in models):
            raise DataError(
                "the ensemble: some models read parses, and one is fairseq's own, which cannot be "
                "given them; train that one with --arch syntax_transformer"
            )
        if self.cfg.gold_source_heads and not self.fields.rules:
            raise DataError(
                "--gold-source-heads: the model's encoder has no dependency heads that could "
                "follow them; leave the option out"
            )
        for model in models if self.cfg.alignment_head else []:
            if not hasattr(model.decoder, "choose_head"):
                raise DataError("--alignment-head: the model can only show the mean of its heads")
            model.decoder.choose_head(self.cfg.alignment_head)
        for split, dataset in self.datasets.items():
            if split == self.cfg.gen_subset or split != self.cfg.train_subset:
                self._require_parses(
                    dataset,
                    split,
                    "complete its heads and labels and run syncattn-preprocess again",
                )
        return super().build_generator(models, args, *rest, **kwargs)

    def inference_step(
        self,
        generator: Any,
        models: list[Any],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Any = None,
    ) -> list[list[dict[str, Any]]]:
        """Translate a batch; print parses, distances and links if asked to."""
        net_input = sample["net_input"]
        if self.batches_read:  # fairseq-interactive passes on only the tokens
            batch = self.batches_read.popleft()
            device = net_input["src_tokens"].device
            for field in batch["net_input"].keys() - net_input.keys():
                if field != "prev_output_tokens":
                    net_input[field] = batch["net_input"][field].to(device)
            sample = {**sample, "id": batch["id"]}
        with sharing_sources(models, getattr(generator, "beam_size", 1)):
            hypotheses: list[list[dict[str, Any]]] = super().inference_step(
                generator, models, sample, prefix_tokens, constraints
            )
        if self.cfg.print_parses or self.cfg.print_distances or self.cfg.print_layer_alignments:
            with self._analysis_output() as output:
                # With a forced reference there is one hypothesis, whatever --nbest says.
                for n in range(min(self.nbest, max(map(len, hypotheses)))):
                    best = [h[min(n, len(h) - 1)]["tokens"] for h in hypotheses]
                    self.printer.print(models, net_input, sample["id"], best, output)
        return hypotheses

    @cached_property
    def printer(self) -> AnalysisPrinter:
        """The printer of parses, distances and links."""
        words = self.source_dictionary, self.target_dictionary
        return AnalysisPrinter(*words, self.cfg, self.schemes)

    @contextmanager
    def _analysis_output(self) -> Iterator[TextIO]:
        """Open the output for them: standard output, or a file next to fairseq's own."""
        if self.cfg.results_path is None or self.sentences_read:  # fairseq-interactive prints
            yield sys.stdout
            return
        path = Path(self.cfg.results_path) / f"parses-{self.cfg.gen_subset}.txt"
        with path.open("a" if self.parse_file_begun else "w", encoding="utf-8") as file:
            self.parse_file_begun = True
            yield file


@contextmanager
def sharing_sources(models: list[Any], beam_size: int) -> Iterator[None]:
    """Let decoders keep what they know of a source once for all hypotheses of its beam.

    fairseq's attention has this for BART; left on, it would spoil the next training. There, it
    saves memory traffic and costs kernels, of which a GPU has too many already (0.85 of the speed).
    """
    parts = [
        part
        for model in models
        for part in model.modules()
        if hasattr(part, "beam_size")
        and not (
            isinstance(part, MultiheadAttention) and next(part.parameters()).device.type != "cpu"
        )
    ]
    for part in parts:
        part.beam_size = beam_size
    try:
        yield
    finally:
        for part in parts:
            part.beam_size = 1


class _InputSentences(SyntaxPairDataset):
    """Input of ``fairseq-interactive``; keeps the batches, since fairseq passes on only tokens."""

    #: Number of the first sentence in the whole input.
    first: int
    #: The batches, in order.
    seen: deque[dict[str, Any]]

    def collater(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        batch = super().collater(*args, **kwargs)
        self.seen.append({**batch, "id": batch["id"] + self.first})
        return batch
