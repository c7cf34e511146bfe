"""What a stage of a recipe is: a few command lines that a person could type."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Stage:
    """A step of a recipe.

    Attributes:
        name: what ``--from`` and ``--to`` call it.
        log: file without suffix for its output (``.log``) and for that it is done (``.done``).
        commands: lines of bash, run one after the other.
        once: whether it is skipped when it has been done before.
    """

    name: str
    log: Path
    commands: list[str]
    once: bool = True


def line(*words: object) -> str:
    """Return a command with its arguments as a line of bash."""
    return shlex.join(map(str, words))


def written(command: str, output: Path) -> str:
    """Return a line that writes what a command prints to a file, whole or not at all."""
    return f"{command} > {output}.part && mv {output}.part {output}"


def options(values: dict[str, Any]) -> Iterator[str]:
    """Yield ``--name value`` for each of some settings; one that is off has none."""
    for name, value in values.items():
        if value is not False:
            yield "--" + name.replace("_", "-")
        if not isinstance(value, bool):
            yield ",".join(map(str, value)) if isinstance(value, list) else str(value)
