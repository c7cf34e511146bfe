"""Refuse unknown options of a model.

Fault: all versions ignore them in ``fairseq-hydra-train``, if the model has no dataclass.
Test: ``test_small_patches.py``.
"""

from argparse import Namespace
from typing import Any

from ..base.errors import DataError
from ..checkpoints.registered_options import advise, list_options
from .wrapping import wrap


def mend() -> None:
    """Make fairseq refuse unknown options of a model when a training begins."""
    from fairseq.trainer import Trainer

    @wrap(Trainer, "__init__")
    def check_and_make(make: Any, self: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
        _check(cfg.model)
        make(self, cfg, *args, **kwargs)


def _check(options: Any) -> None:
    """Check model options from a config file, since only the command line checks options."""
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
