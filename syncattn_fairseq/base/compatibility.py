"""Where fairseq and today's Python and PyTorch disagree."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np
import torch

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


def allow_checkpoint_classes() -> None:
    """Let ``torch.load`` read what fairseq writes.

    Since PyTorch 2.6 a checkpoint may only hold tensors and classes that are named in advance.
    fairseq's hold its configuration, and the second of two processes that resume gets that sent
    as an OmegaConf object. The check itself stays on.
    """
    torch.serialization.add_safe_globals(_checkpoint_classes())


def _checkpoint_classes() -> list[Any]:
    """List what a checkpoint may hold beside tensors."""
    from fairseq.distributed.utils import _TensorPlaceholder
    from omegaconf import DictConfig, ListConfig, base, nodes

    return [
        argparse.Namespace,
        Any,
        DictConfig,
        ListConfig,
        OrderedDict,
        defaultdict,
        dict,
        list,
        int,
        float,
        str,
        bool,
        base.ContainerMetadata,
        base.Metadata,
        nodes.AnyNode,
        nodes.StringNode,
        nodes.IntegerNode,
        nodes.FloatNode,
        nodes.BooleanNode,
        nodes.EnumNode,
        _TensorPlaceholder,
        # --eval-bleu keeps its counts as numpy arrays
        np.ndarray,
        np.dtype,
        type(np.dtype("int64")),
        type(np.dtype("float64")),
        np.zeros(1).__reduce__()[0],
    ]
