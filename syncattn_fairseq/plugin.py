"""The plugin: importing this module registers the task, the models and the criterion with fairseq.

``--user-dir syncattn_fairseq`` leads here. A user's own ``--user-dir`` and Python programs start
with ``import syncattn_fairseq.plugin``, before or after ``import fairseq``.
"""

from importlib import import_module

from .base.extras import require

require("train", "torch", "omegaconf")

for name in (
    # They shape the messages of the others, and check that fairseq works.
    "one_line",
    "quiet",
    "fairseq_version",
    "evaluated_options",
    "colons_in_paths",
    "compiler_imports",
    "padding_waits",
    "cudnn_attention",
    "ngram_blocking",
    "reordered_state",
    "attention_steps",
    "checkpoint_classes",
    # What writes checkpoints comes before what changes their contents (it refuses otherwise).
    "whole_checkpoints",
    "plain_options",
    "checkpoint_errors",
    "started_options",
    "checkpoint_task",
    "resumed_data",
    "patience",
    "safety_saves",
    "finite_losses",
    "returned_memory",
    "every_sentence",
    "cpu_training",
    "unknown_options",
    "amp_scale",
    "bf16_device",
    "logged_tensors",
    "unknown_words",
    "soft_alignments",
    "swish",
):
    import_module(f".patches.{name}", __package__).mend()

from . import models, tasks  # noqa: E402
from .criterions import label_smoothed_cross_entropy_with_syntax  # noqa: E402

__all__ = ["label_smoothed_cross_entropy_with_syntax", "models", "tasks"]
