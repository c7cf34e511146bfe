"""The options of the task."""

from dataclasses import dataclass
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from ..base.option_fields import option


@dataclass
class TranslationWithSyntaxConfig(TranslationConfig):
    """The task's options: fairseq's for translation, and those for parses and for speed."""

    upsample_primary: int = option(
        1, "how many times the split train is repeated if there are also train1, train2, ..."
    )
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
        "what to do if the text to translate has no parses, but the model reads parses: stop, or "
        "translate without parses (no scaling, unknown labels)",
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
    alignment_head: int = option(
        0,
        "the head of a decoder layer that --print-alignment reads, from 1 (0 = mean of all heads)",
    )
    gold_source_heads: bool = option(
        False,
        "for analysis: make the encoder's dependency heads attend to the gold parents, not to "
        "the predicted parents",
    )
    gen_subset: str = II("dataset.gen_subset")
    ddp_backend: str = II("distributed_training.ddp_backend")
    cpu: bool = II("common.cpu")
