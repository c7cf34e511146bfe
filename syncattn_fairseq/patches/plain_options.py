"""Store a model's options in a checkpoint as a dictionary.

Fault: all versions store them as an ``argparse.Namespace``, which PyTorch 2.6 and later load only
if a plugin allows it. With the patch, fairseq alone can load the checkpoints of its own models.
Test: ``test_small_patches.py``.
"""

from argparse import Namespace
from typing import Any

from .wrapping import wrap


def mend() -> None:
    """Make fairseq store a model's options in checkpoints as a dictionary."""
    from fairseq import checkpoint_utils

    @wrap(checkpoint_utils, "torch_persistent_save")
    def persist_plainly(persist: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        cfg = obj.get("cfg") if isinstance(obj, dict) else None
        if isinstance(cfg, dict) and isinstance(cfg.get("model"), Namespace):
            cfg["model"] = vars(cfg["model"])
        return persist(obj, *args, **kwargs)
