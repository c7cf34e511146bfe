"""The classes allowed in a fairseq checkpoint."""

import argparse
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np


def _find_type(name: str, *_: Any) -> np.dtype[Any]:
    """Stand for ``numpy.dtype``: return a number type, unaffected by any stored state."""
    if name not in ("i8", "f8"):
        raise ValueError(f"has an array of the type {name!r}; only i8 and f8 are read")
    return np.dtype(name)


def _start_array(*_: Any) -> np.ndarray[Any, Any]:
    """Return an empty array, in place of numpy's constructor for pickled arrays."""
    return np.empty(0)


def _refuse(*_: Any) -> None:
    """Stand for ``numpy.ndarray``, named but not called in checkpoints."""
    raise ValueError("makes a numpy array in a way that no checkpoint needs")


#: ``--eval-bleu`` keeps its counts as numpy arrays. numpy's own functions would also make arrays
#: of Python objects, at addresses that the file chooses. The names without a dot are for PyTorch,
#: which fills only what it knows; no file can name them.
_ARRAYS: list[Any] = [
    (_find_type, "numpy.dtype"),
    (_refuse, "numpy.ndarray"),
    (_start_array, "numpy.core.multiarray._reconstruct"),
    (_start_array, "numpy._core.multiarray._reconstruct"),
    (np.ndarray, "arrays"),
    (type(np.dtype("i8")), "whole numbers"),
    (type(np.dtype("f8")), "numbers"),
]


def list_classes() -> list[Any]:
    """Return the classes, besides tensors, that may be unpickled from a checkpoint."""
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
        *_ARRAYS,
    ]
