"""The part of the task that translates binarised text and ``fairseq-interactive``'s input."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from fairseq import utils
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.modules import MultiheadAttention
from fairseq.tasks.translation import TranslationTask
from torch import Tensor

from ..base.errors import DataError
from ..data.dataset import SyntaxPairDataset
from ..data.fields import NOTHING
from ..data.fingerprint import IN_CHECKPOINTS, Fingerprint
from ..data.labels import load_dictionary, locate_dictionary
from ..data.preparation import stored_schemes
from .input_parses import InputParses
from .options import TranslationWithSyntaxConfig


class TranslatingTask(TranslationTask):
    """Base class of the task, for decoding: fairseq's translation task with source parses.

    Attributes:
        fields: the batch fields of the source's parse that the models read.
        fingerprint: the identity of the data, for comparison with that of checkpoints.
        sentences_read: how many lines of ``fairseq-interactive``'s input were read.
    """

    cfg: TranslationWithSyntaxConfig

    def __init__(self, cfg: TranslationWithSyntaxConfig, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.fields = NOTHING
        self.fingerprint = Fingerprint()
        self.sentences_read = 0
        #: Input lines that are not in a batch yet.
        self._input_texts: list[str] = []
        #: Batches of input lines that are not translated yet.
        self._batches_read: deque[dict[str, Any]] = deque()

    @cached_property
    def source_label_dictionary(self) -> Dictionary | None:
        """The dictionary of the source's dependency labels, or None if the data has none."""
        path = locate_dictionary(utils.split_paths(self.cfg.data)[0], self.cfg.source_lang)
        return load_dictionary(path) if path.exists() else None

    @property
    def continues_unparsed(self) -> bool:
        """Whether sentences without a parse are accepted (``--missing-parses ignore``)."""
        return bool(self.cfg.missing_parses == "ignore")

    @cached_property
    def schemes(self) -> tuple[str | None, str | None]:
        """How subwords are marked in source and target, None for a side if the data do not say."""
        stored = stored_schemes(utils.split_paths(self.cfg.data)[0])
        return stored.get(self.cfg.source_lang), stored.get(self.cfg.target_lang)

    def state_dict(self) -> dict[str, Any]:
        """Return the task's state for checkpoints, with the fingerprint (checksums) of the data."""
        kept = self.fingerprint.of_reader(self.fields.reads("labels"))
        return {**super().state_dict(), IN_CHECKPOINTS: kept.as_plain()}

    def get_interactive_tokens_and_lengths(
        self, lines: list[str], encode_fn: Any
    ) -> tuple[list[Tensor], list[int]]:
        """Convert input lines to tokens as fairseq does, and store their text for the parser.

        The text, unlike the tokens, still has unknown subwords.

        A byte order mark at the beginning of the input is not part of the text.
        """
        if self.sentences_read == 0:
            lines = [line.removeprefix("\ufeff") for line in lines[:1]] + lines[1:]
        self._input_texts = [encode_fn(line) for line in lines]
        tokens: tuple[list[Tensor], list[int]] = super().get_interactive_tokens_and_lengths(
            self._input_texts, lambda text: text
        )
        return tokens

    @cached_property
    def input_parses(self) -> InputParses:
        """The reader of the parses of ``fairseq-interactive``'s input."""
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
        """Return a data set of ``fairseq-interactive``'s input lines with their parses.

        Raises:
            DataError: the model reads parses, and there are none.
        """
        texts, self._input_texts = self._input_texts, []
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
            raise DataError(
                "--gold-source-heads needs the parses of the input; add --input-heads or "
                "--source-parser"
            )
        heads, labels = self.input_parses(texts)
        dataset = _InputSentences(
            sentences, heads, None, labels, self.fields, gold=self.cfg.gold_source_heads
        )
        self._require_parses(
            dataset,
            "input",
            "give --input-heads and --input-labels, or --source-parser stanza:LANG",
        )
        dataset.first, dataset.seen = self.sentences_read, self._batches_read
        self.sentences_read += len(src_tokens)
        return dataset

    def build_generator(self, models: Any, args: Any, *rest: Any, **kwargs: Any) -> Any:
        """Build fairseq's generator, and check that the data has the parses that the models read.

        Raises:
            DataError: the model reads parses, and sentences of the data have none; or it has no
                heads for gold parses, or for an option.
        """
        if self.fields.fields and not all(hasattr(model, "source_fields") for model in models):
            raise DataError(
                "the ensemble has models that read parses, and a model of fairseq itself, which "
                "cannot read parses; train that model with --arch syntax_transformer"
            )
        if self.cfg.gold_source_heads and not self.fields.rules:
            raise DataError(
                "--gold-source-heads: the model's encoder has no dependency heads that could "
                "follow gold parents; leave the option out"
            )
        for model in models if self.cfg.alignment_head else []:
            if not hasattr(model.decoder, "choose_head"):
                raise DataError(
                    "--alignment-head: the model can show only the mean over its heads, not a "
                    "single head"
                )
            model.decoder.choose_head(self.cfg.alignment_head)
        for split, dataset in self.datasets.items():
            if split == self.cfg.gen_subset or split != self.cfg.train_subset:
                self._require_parses(
                    dataset,
                    split,
                    "add the missing heads and labels, and run syncattn-preprocess again",
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
        """Translate a batch, given the parses of its source sentences.

        Args:
            generator: fairseq's generator.
            models: the ensemble.
            sample: the batch.
            prefix_tokens, constraints: fairseq's, passed on.
        """
        if self._batches_read:  # fairseq-interactive passes on only the tokens
            net_input = sample["net_input"]
            batch = self._batches_read.popleft()
            device = net_input["src_tokens"].device
            for field in batch["net_input"].keys() - net_input.keys():
                if field != "prev_output_tokens":
                    net_input[field] = batch["net_input"][field].to(device)
            sample = {**sample, "id": batch["id"]}
        with sharing_sources(models, getattr(generator, "beam_size", 1)):
            hypotheses: list[list[dict[str, Any]]] = super().inference_step(
                generator, models, sample, prefix_tokens, constraints
            )
        return hypotheses

    def _require_label_dictionary(self) -> None:
        """Raise `DataError` if the model reads labels and the data has no dictionary of them."""
        if self.fields.reads("labels") and self.source_label_dictionary is None:
            raise DataError(
                f"{self.cfg.data}: has no dictionary of the source's dependency labels, which "
                "the model reads; binarise labels with syncattn-preprocess, or copy "
                f"dict.labels.{self.cfg.source_lang}.txt from the training's data"
            )

    def _require_parses(self, dataset: SyntaxPairDataset, name: str, remedy: str) -> None:
        """Raise `DataError` if the model reads parses and a sentence to translate has none."""
        if self.continues_unparsed:
            return
        missing = dataset.list_unparsed()
        if missing:
            raise DataError(
                f"{name}: {len(missing)} of {len(dataset)} sentences have no parse, which the "
                f"model reads; the first of them is sentence {missing[0] + 1}; {remedy}, or use "
                "--missing-parses ignore"
            )


@contextmanager
def sharing_sources(models: list[Any], beam_size: int) -> Iterator[None]:
    """Return a context in which decoders store the source's keys and values once per beam.

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
    """Data set of ``fairseq-interactive``'s input that keeps its batches.

    fairseq passes on only their tokens.
    """

    #: Number of the data set's first sentence in the whole input.
    first: int
    #: The batches that were made, in order.
    seen: deque[dict[str, Any]]

    def collater(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        batch = super().collater(*args, **kwargs)
        self.seen.append({**batch, "id": batch["id"] + self.first})
        return batch
