"""Build the model of a checkpoint; every error is a single line with the file's name."""

import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..base.errors import DataError, describe, shorten

_MISMATCH = re.compile(
    r"size mismatch for (\S+): copying a param with shape torch\.Size\(\[([\d, ]*)\]\) from "
    r"checkpoint, the shape in current model is torch\.Size\(\[([\d, ]*)\]\)"
)


def build(task: Any, options: Namespace, weights: Mapping[str, Any]) -> Any:
    """Build a model from the options of a checkpoint, and load the checkpoint's weights.

    Raises:
        DataError: options and weights do not go together.
        Exception: anything, if the options make no sense; use it within `naming_checkpoint`.
    """
    model = task.build_model(options)
    for name, tensor in model.state_dict().items():
        if name in weights and weights[name].shape != tensor.shape:
            where = f"in {task.cfg.data}"
            raise DataError(_describe(name, [*weights[name].shape], [*tensor.shape], where))
    model.load_state_dict(dict(weights), strict=True, model_cfg=options)
    return model


@contextmanager
def naming_checkpoint(*paths: object) -> Iterator[None]:
    """Within the block, turn any error into a `DataError` that names the checkpoints."""
    where = ":".join(map(str, paths))
    try:
        yield
    except (DataError, OSError) as error:
        reason = shorten(describe(error) if isinstance(error, OSError) else error)
        named = any(reason.startswith(f"{path}: ") for path in paths)
        raise DataError(reason if named else f"{where}: {reason}") from None
    except Exception as error:  # impossible options can raise anything
        raise DataError(f"{where}: {explain(error)}") from error


def explain(error: BaseException) -> str:
    """Return a line that says why a model cannot be built or its weights cannot be loaded."""
    if mismatch := _MISMATCH.search(str(error)):
        name, stored, here = mismatch.groups()
        return _describe(name, _numbers(stored), _numbers(here))
    lines = str(error).strip().splitlines()
    reason = f": {shorten(lines[-1].strip(), 200)}" if lines else ""
    return (
        "the options and weights of the checkpoint do not fit together "
        f"({type(error).__name__}{reason}); the file is damaged, or from another version of the "
        "program"
    )


def _numbers(shape: str) -> list[int]:
    return [int(size) for size in shape.split(",") if size]


def _describe(name: str, stored: list[int], here: list[int], where: str = "here") -> str:
    side = "source" if name.startswith("encoder") else "target"
    embeddings = name.endswith(("embed_tokens.weight", "output_projection.weight"))
    if embeddings and len(stored) == len(here) == 2 and stored[1] == here[1]:
        return (
            f"was trained with another dictionary, of {stored[0]} {side} subwords; the "
            f"dictionary {where} has {here[0]}; use the data of the model's training"
        )
    return f"is another model: {name} has the shape {stored} in the checkpoint, and {here} here"
