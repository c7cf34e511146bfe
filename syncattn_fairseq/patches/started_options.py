"""Start only from a checkpoint whose weights mean the same in the new model.

Fault: all versions compare the weights of ``--finetune-from-model``, of ``--restore-file`` and of a
resumed training, but not the options that have no weights. A model with two heads in place of four
takes the same matrices, computes something else, and nothing is said.
Test: ``test_started_options.py``.
"""

import logging
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..checkpoints.checkpoint_file import LAST, read_options
from .wrapping import wrap

_LOG = logging.getLogger(__name__)

#: Options that change what a model computes with the same weights.
MEANING = (
    "encoder_attention_heads",
    "decoder_attention_heads",
    "activation_fn",
    "no_scale_embedding",
    "encoder_normalize_before",
    "decoder_normalize_before",
    "zero_start",
)
#: Options of positions, which a training may change on purpose: its model relearns word order.
ORDER = ("positions", "no_token_positional_embeddings")
#: Values of these options in a plain Transformer of fairseq, which does not have them.
_PLAIN: dict[str, Any] = {"positions": "absolute", "zero_start": False}

_UNKNOWN = object()


def mend() -> None:
    """Make fairseq check that a model's options fit the checkpoint that training starts from."""
    from fairseq import checkpoint_utils

    @wrap(checkpoint_utils, "load_checkpoint")
    def load_alike(load: Any, cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        path = _find_start(cfg, trainer.checkpoint_suffix)
        model = getattr(trainer.cfg, "model", None)
        if model is not None:
            compare_options(str(path), read_options(path, "model"), model)
        return load(cfg, trainer, **kwargs)


def compare_options(path: str, stored: dict[str, Any], model: Any) -> None:
    """Check that a model's options agree with those of the checkpoint that training starts from.

    Args:
        path: the checkpoint, for messages.
        stored: the options of its model by name. Those that are missing are not compared.
        model: the options of the new model, as attributes.

    Raises:
        DataError: an option in `MEANING` differs. One in `ORDER` is named in a warning.
    """
    filled = {**_PLAIN, **stored} if stored else stored
    differing = [name for name in MEANING if _differs(name, filled, model)]
    if differing:
        changes = ", ".join(
            f"--{name.replace('_', '-')} {filled[name]} (now {_own(name, model)})"
            for name in differing
        )
        raise DataError(
            f"{path}: the model was trained with {changes}; with other options, the same weights "
            "compute something else; use the options of the checkpoint"
        )
    for name in ORDER:
        if _differs(name, filled, model):
            _LOG.warning(
                f"{path}: the model was trained with --{name.replace('_', '-')} {filled[name]} "
                f"(now {_own(name, model)}); at first, the model is worse than the checkpoint"
            )


def _differs(name: str, stored: dict[str, Any], model: Any) -> bool:
    return name in stored and _own(name, model) not in (_UNKNOWN, stored[name])


def _own(name: str, model: Any) -> Any:
    return getattr(model, name, _PLAIN.get(name, _UNKNOWN))


def _find_start(cfg: Any, suffix: str) -> Path:
    """Return the path of fairseq's initial checkpoint, existing or not."""
    if cfg.restore_file != LAST:
        return Path(cfg.restore_file)
    last = Path(cfg.save_dir) / LAST.replace(".pt", f"{suffix}.pt")
    if last.exists() or cfg.finetune_from_model is None:
        return last
    return Path(cfg.finetune_from_model)
