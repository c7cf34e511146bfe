"""The options registered by fairseq and plugins, by the sections of fairseq's configs."""

import argparse
import dataclasses
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from ..base.errors import suggest

_SEE = "; see docs/options.md"
_OWN = f"{_SEE}, or name your own plugin that defines the option: common.user_dir=FOLDER"
#: Sections to which a plugin adds options.
_EXTENDED = ("task", "model", "criterion")


def registry(section: str) -> Mapping[str, Any]:
    """Return fairseq's registered classes for a section of options, such as ``model``, by name."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    if section == "model":
        return {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}
    if section == "task":
        return TASK_REGISTRY
    return REGISTRIES.get(section, {}).get("registry", {})


def list_options(section: str, name: str) -> frozenset[str]:
    """Return the names of the options declared by a class registered for a section."""
    found = frozenset(action.dest for action in make_parser(section, name)._actions)
    schema = find_schema(section, name)
    return found | {field.name for field in dataclasses.fields(schema)} if schema else found


@cache
def make_parser(section: str, name: str) -> argparse.ArgumentParser:
    """Return a parser of the options declared by a registered class's ``add_args``."""
    kind: Any = registry(section).get(name)
    made = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    if hasattr(kind, "add_args"):
        kind.add_args(made)
    return made


def find_schema(section: str, name: str) -> Any:
    """Return the dataclass of a registered class's options, or None if it has no dataclass."""
    from fairseq.dataclass.configs import FairseqConfig

    kind = registry(section).get(name)
    if kind is not None:
        return getattr(kind, "__dataclass", None)
    group = getattr(FairseqConfig(), section, None)
    return group if dataclasses.is_dataclass(group) else None


def advise(section: str, name: str, known: Collection[str]) -> str:
    """Return advice for a message about an unknown name: a similar name, or where to look."""
    return suggest(name, known) or (_OWN if section in _EXTENDED else _SEE)
