"""The plan made before a corpus's trainings: ``configs/CORPUS/_plan.yaml``.

::

    margin: 0.04                     # in nats; systems that differ by less are the same
    family:                          # tested; corrected for all of its contrasts together
      seeds: [6, 7, 8, 9, 10]
      contrasts:
        A, equal places:             # a heading
          - constant_gate - lpsi (=) # (=): are they the same?
          - constant_gate - transformer
    estimates:                       # intervals only
      seeds: [6, 7, 8]
      contrasts: {...}
    added: {seeds: [6, 7], contrasts: {...}}   # intervals only, planned after the others
    by_blocks: true                  # test within seeds, which systems share; otherwise by Welch
    per_word: [B, tuned systems]     # headings of systems with different subwords: nats per word
    names:                           # names for systems with settings, such as the best trial
      lpsi_tuned: lpsi:model.dropout=0.5

A system of another corpus is ``CORPUS/SYSTEM``: its results are in that corpus's file, beside this
one's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from syncattn_fairseq.base.errors import DataError

from ..evaluation.contrast import Contrast
from .config_file import make, read_config

_PARTS = ("family", "estimates", "added")
_CONTRAST = re.compile(r"(\S+) - (\S+)( \(=\))?", re.ASCII)


@dataclass(frozen=True)
class Plan:
    """The pairs of systems to compare on a corpus, those with a significance test first.

    Attributes:
        contrasts: all planned contrasts.
        names: the system with settings that a name in the contrasts stands for, by that name.
    """

    contrasts: list[Contrast] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def list_trainings(self) -> dict[str, list[int]]:
        """Return the planned seeds of each system of this corpus, by the system's name."""
        seeds: dict[str, set[int]] = {}
        for contrast in self.contrasts:
            for name in contrast.systems:
                system = self.names.get(name, name)
                if "/" not in system.partition(":")[0]:
                    seeds.setdefault(system, set()).update(contrast.seeds or ())
        return {system: sorted(chosen) for system, chosen in seeds.items()}

    def list_corpora(self) -> list[str]:
        """List the corpora, other than the plan's own, whose systems the plan compares."""
        names = [name for contrast in self.contrasts for name in contrast.systems]
        systems = [self.names.get(name, name).partition(":")[0] for name in names]
        parts = [system.partition("/") for system in systems]
        return list(dict.fromkeys(corpus for corpus, slash, _ in parts if slash))


@dataclass(frozen=True)
class _Part:
    seeds: list[int]
    contrasts: dict[str, list[str]]


@dataclass(frozen=True)
class _File:
    margin: int | float = 0
    family: _Part | None = None
    estimates: _Part | None = None
    added: _Part | None = None
    by_blocks: bool = False
    per_word: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


def load_plan(folder: Path) -> Plan:
    """Read the plan of a corpus from the folder of its configs.

    Raises:
        DataError: there is no plan, or the file is not one.
    """
    path = folder / "_plan.yaml"
    facts: Any = OmegaConf.to_container(read_config(path))
    return make_plan(facts, path)


def make_plan(facts: dict[str, Any], path: Path) -> Plan:
    """Make a plan from the contents of its file, which error messages name as ``path``.

    Raises:
        DataError: the contents are not a plan.
    """
    parts = {name: make(_Part, f"{path}: {name}", facts[name]) for name in _PARTS if name in facts}
    file: _File = make(_File, path, {**facts, **parts})
    contrasts: list[Contrast] = []
    for name, part in parts.items():
        contrasts += _list_contrasts(path, file, part, tested=name == "family")
    for name, part in parts.items():
        if not part.seeds or min(part.seeds) < 0 or len({*part.seeds}) < len(part.seeds):
            raise DataError(f"{path}: {name}: seeds: give whole numbers from 0, each once")
    if not file.margin >= 0:
        raise DataError(f"{path}: margin: give a number from 0")
    groups = [contrast.group for contrast in contrasts]
    if unknown := [group for group in file.per_word if group not in groups]:
        raise DataError(f"{path}: per_word: {unknown[0]} is not a heading of contrasts")
    if not contrasts:
        raise DataError(
            f"{path}: the plan has no contrasts; list contrasts under family or estimates"
        )
    compared = {name for contrast in contrasts for name in contrast.systems}
    if unknown := [name for name in file.names if name not in compared]:
        raise DataError(f"{path}: names: no contrast has the system {unknown[0]}")
    return Plan(contrasts, file.names)


def _list_contrasts(path: Path, file: _File, part: _Part, tested: bool) -> Iterator[Contrast]:
    """Yield the contrasts in one part of a plan, such as ``family``, whose contrasts are tested."""
    for group, texts in part.contrasts.items():
        for text in texts:
            system, baseline, same = _read(path, text)
            if same and not tested:
                raise DataError(
                    f"{path}: {text}: only contrasts of the family can be tested for equivalence "
                    "(=)"
                )
            if same and not file.margin:
                raise DataError(f"{path}: {text}: the equivalence test (=) needs a margin above 0")
            yield Contrast(
                system,
                baseline,
                group,
                tuple(part.seeds),
                tested,
                margin=file.margin if same else 0.0,
                by_blocks=file.by_blocks,
                per_word=group in file.per_word,
            )


def _read(path: Path, text: str) -> tuple[str, str, bool]:
    """Return system and baseline of ``A - B`` or ``A - B (=)``; ``(=)`` tests equivalence."""
    match = _CONTRAST.fullmatch(text)
    if match is None:
        raise DataError(f"{path}: {text[:60]!r}; expected SYSTEM - SYSTEM, with (=) or without")
    if match[1] == match[2]:
        raise DataError(f"{path}: {text}: compare two different systems")
    return match[1], match[2], match[3] is not None
