"""What a system needs besides the texts of a corpus: recipes make nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ...data.parses import LINKS
from ...registered_names import CRITERION
from .stages import options

if TYPE_CHECKING:
    from ...models.description import Description

#: Translations mixed with parses of the source.
MULTI_TASK = "multitask"


def describe_model(config: dict[str, Any]) -> Description:
    """Ask the model of a system what it reads and shows.

    Args:
        config: the system's, from `System.load`; its options are known ones.

    Raises:
        DataError: options do not go together.
    """
    from ... import plugin  # noqa: F401  (registers our models)
    from ...models.description import describe

    values = {name: value for name, value in config["model"].items() if name != "_name"}
    return describe(config["model"]["_name"], [*options(values)])


def list_needs(config: dict[str, Any], model: Description) -> set[str]:
    """List what a system needs: ``heads.LANG``, ``labels.LANG``, `LINKS`, or `MULTI_TASK`.

    Args:
        config: as for `describe_model`.
        model: what that has returned.
    """
    task = config["task"]
    if task["data"].endswith(MULTI_TASK):
        return {MULTI_TASK}
    languages = {side: task[f"{side}_lang"] for side in ("source", "target")}
    needs = {f"{k}.{languages['source']}" for k in ("heads", "labels") if model.fields.reads(k)}
    sides = {side for term in _build_losses(config) for side in term.list_parses(model.exposed)}
    needs |= {LINKS} if task.get("load_alignments") else set()
    return needs | {f"heads.{languages[side]}" for side in sides}


def _build_losses(config: dict[str, Any]) -> list[Any]:
    """Build the syntactic losses of a system's criterion, as if for training."""
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
    from fairseq.data import Dictionary

    from ...criterions.terms import TERMS

    values = config["criterion"]
    if values["_name"] != CRITERION:
        return []
    cfg = SimpleNamespace(**{**vars(CRITERION_DATACLASS_REGISTRY[CRITERION]()), **values})
    words = Dictionary()
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    return [term(cfg, task) for term in TERMS.values()]
