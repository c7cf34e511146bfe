"""Starting a syntax Transformer from the checkpoint of a plain one."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import nn

from ..modules.part import Part

_LOG = logging.getLogger(__name__)

#: What a part has of the attention that it stands for.
_PLAIN = ("q_proj", "k_proj", "v_proj", "out_proj")


def fill_in(model: nn.Module, state_dict: dict[str, Any]) -> None:
    """Add to a checkpoint's parameters all those of syntactic parts that it knows nothing of.

    With it, ``--finetune-from-model`` and ``--restore-file`` of fairseq take the checkpoint of a
    plain Transformer. Parts that can compute what the plain one does start so (:meth:`.Part.
    start_plain`); the log lists all that is new. A part of which the checkpoint has something is
    left alone: if something is missing still, fairseq says so.

    Args:
        model: the syntax Transformer, whose parts may change.
        state_dict: of the checkpoint, which gains their parameters.
    """
    parts: list[tuple[str, Any]] = [
        (name, module) for name, module in model.named_modules() if isinstance(module, Part)
    ]
    for name, part in parts:
        own = {
            f"{name}.{parameter}": value
            for parameter, value in part.named_parameters()
            if not parameter.startswith(_PLAIN)
        }
        if not own or any(key in state_dict for key in own):
            continue
        with torch.no_grad():
            equal = part.start_plain()
        state_dict.update({key: value.detach().clone() for key, value in own.items()})
        if equal:
            _LOG.info(f"new: {', '.join(own)}; computes at first what the checkpoint does")
        else:
            _LOG.warning(
                f"new: {', '.join(own)}; begins at random, so that the model is worse at first "
                "than the checkpoint"
            )
