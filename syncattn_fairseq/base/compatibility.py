"""Fixes for fairseq on today's Python and PyTorch."""

from __future__ import annotations

import functools
import importlib
import logging
import sys
from typing import Any

from .literals import evaluate

FAIRSEQ = "fairseq-fixed==0.12.3.1"


def require_fairseq() -> None:
    """Import fairseq; fail with one clear line if the installed version does not work.

    The official release, 0.12.2, is accepted where it works: on Python 3.10 and earlier.

    Raises:
        ImportError: fairseq is missing, or cannot be imported.
    """
    # On import, fairseq recommends a speech package, which a translation program does not need.
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    try:
        importlib.import_module("fairseq.models.transformer")
    except Exception as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise ImportError(
            f"the installed fairseq does not work on Python {version} "
            f"({type(error).__name__}: {error}); install {FAIRSEQ} instead"
        ) from error


def run_no_options() -> None:
    """Let fairseq evaluate its options as literals; it would run any code in them.

    Some options are read with ``eval``, and they may come from a checkpoint.
    """
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] == "fairseq":
            vars(module)["eval"] = evaluate


def avoid_encoder_kernel() -> None:
    """Turn off the fast kernel of official fairseq's encoder layers: PyTorch changed its interface.

    With it, fairseq's own models cannot decode a padded batch. ``fairseq-fixed`` does not use it.
    """
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    if "_load_from_state_dict" in vars(TransformerEncoderLayerBase):
        TransformerEncoderLayerBase.can_use_fastpath = property(
            lambda layer: False, lambda layer, value: None
        )


def avoid_cudnn_attention() -> None:
    """Keep PyTorch's attention off cuDNN, which plans anew for every shape of a batch.

    On recent GPUs, PyTorch tries cuDNN first. A new plan takes up to a second
    (github.com/modelscope/FunASR/issues/3704), and batches of translations have hundreds of shapes.
    """
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)


def mend_ngram_blocking() -> None:
    """Make ``--no-repeat-ngram-size`` work without fairseq's CUDA extension, where it does nothing.

    fairseq compares earlier n-grams with the last columns of a table of tokens, most of which is
    still empty.
    """
    from fairseq.ngram_repeat_block import NGramRepeatBlock

    block = NGramRepeatBlock._no_repeat_ngram

    @functools.wraps(block)
    def block_seen(self: Any, tokens: Any, lprobs: Any, bsz: int, beam_size: int, step: int) -> Any:
        return block(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)

    NGramRepeatBlock._no_repeat_ngram = block_seen
