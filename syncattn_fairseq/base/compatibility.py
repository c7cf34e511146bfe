"""Where fairseq and today's Python and PyTorch disagree."""

from __future__ import annotations

import importlib
import logging
import sys

FAIRSEQ = "fairseq-fixed==0.12.3.1"


def require_fairseq() -> None:
    """Import fairseq; leave with one clear line if the one that is installed does not work.

    The official release, 0.12.2, is used where it works, which is on Python 3.10 at the latest.

    Raises:
        ImportError: it is missing, or cannot be imported.
    """
    # fairseq recommends a package for speech on import, in a program that translates text.
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    try:
        importlib.import_module("fairseq.models.transformer")
    except Exception as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise ImportError(
            f"the fairseq that is installed does not work on Python {version} "
            f"({type(error).__name__}: {error}); install {FAIRSEQ} in its place"
        ) from error


def avoid_encoder_kernel() -> None:
    """Keep official fairseq's encoder layers from a kernel that today's PyTorch calls otherwise.

    With it, no model of fairseq's own decodes a batch with padding. ``fairseq-fixed`` has none.
    """
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    if "_load_from_state_dict" in vars(TransformerEncoderLayerBase):
        TransformerEncoderLayerBase.can_use_fastpath = property(
            lambda layer: False, lambda layer, value: None
        )
