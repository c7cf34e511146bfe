"""Start a syntax Transformer from the checkpoint of a plain one."""

import logging
from typing import Any

import torch
from torch import nn

from ..modules.part import Part

_LOG = logging.getLogger(__name__)

#: Parameters that a part has in common with the attention that it replaces.
_PLAIN = ("q_proj", "k_proj", "v_proj", "out_proj")


def fill_in(model: nn.Module, state_dict: dict[str, Any]) -> None:
    """Add the missing parameters of syntactic parts to the weights of a plain Transformer.

    This lets fairseq's ``--finetune-from-model`` and ``--restore-file`` take the checkpoint of a
    plain Transformer. Parts that can start by computing the same as the plain one do so
    (:meth:`.Part.start_plain`); the log lists all new parameters. If the checkpoint has some
    parameters of a part, none are added: fairseq reports those that are missing.
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
            _LOG.info(
                f"new parts: {', '.join(own)}; the model at first computes the same as the "
                "checkpoint"
            )
        else:
            _LOG.warning(
                f"new parts: {', '.join(own)}; they start at random, so the model is worse at "
                "first than the checkpoint"
            )
