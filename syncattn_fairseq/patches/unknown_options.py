"""Refuse a model's options that do not exist.

Fault: all versions ignore them in ``fairseq-hydra-train``, if the model has no dataclass.
Test: ``test_unknown_options.py``.
"""

from __future__ import annotations

import functools
from argparse import Namespace
from typing import Any

from ..base.errors import DataError
from ..base.registered_options import advise, list_options


def refuse_unknown_options() -> None:
    """Check a model's options when a training begins."""
    from fairseq.trainer import Trainer

    make = Trainer.__init__

    @functools.wraps(make)
    def check_and_make(self: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
        _check(cfg.model)
        make(self, cfg, *args, **kwargs)

    Trainer.__init__ = check_and_make


def _check(options: Any) -> None:
    """Check the options of a model if they are from a config; a command line checks its own."""
    from fairseq.models import ARCH_CONFIG_REGISTRY
    from omegaconf import OmegaConf

    if not OmegaConf.is_config(options):
        return
    name = str(options.get("_name") or "")
    defaults = Namespace()
    ARCH_CONFIG_REGISTRY.get(name, lambda _: None)(defaults)
    known = list_options("model", name) | {"_name", "arch", *vars(defaults)}
    for option in sorted(options.keys() - known):
        raise DataError(f"model.{option}: there is no such option{advise('model', option, known)}")
