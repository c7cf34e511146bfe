"""The classes that a fairseq checkpoint may hold."""

from __future__ import annotations

import argparse
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np


def list_classes() -> list[Any]:
    """List the classes that a checkpoint may hold besides tensors."""
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
