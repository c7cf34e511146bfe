"""What was planned before a corpus's trainings: ``configs/CORPUS/_plan.yaml``.

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
    per_word: [B, tuned systems]     # headings of systems with different subwords: nats per word
    names:                           # names for systems with settings, such as the best trial
      lpsi_tuned: lpsi:model.dropout=0.5

A system of another corpus is ``CORPUS/SYSTEM``: its results are in that corpus's file, beside this
one's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from ...base.errors import DataError
from .config_file import read_config

_CONTRAST = re.compile(r"(\S+) - (\S+)( \(=\))?", re.ASCII)


@dataclass(frozen=True)
class Contrast:
    """Two systems that are compared.

    Attributes:
        group: its heading.
        system, baseline: the systems; the difference is the first one's minus the second one's.
        seeds: those that both are trained with.
        tested: whether it belongs to the family.
        same: whether it is also tested that both are equivalent.
        per_word: whether NLL is counted per word, since their subwords differ.
    """

    group: str
    system: str
    baseline: str
    seeds: tuple[int, ...]
    tested: bool
    same: bool = False
    per_word: bool = False

    @property
    def name(self) -> str:
        """The contrast in words."""
        return f"{self.system} − {self.baseline}"

    @property
    def systems(self) -> tuple[str, str]:
        """Both."""
        return self.system, self.baseline


@dataclass(frozen=True)
class Plan:
    """The contrasts of a corpus, those that are tested first.

    Attributes:
        contrasts: all of them.
        margin: in nats, the difference below which two systems are the same.
        names: which system a name in the contrasts stands for, if it is not the system's own.
    """

    contrasts: list[Contrast] = field(default_factory=list)
    margin: float = 0.0
    names: dict[str, str] = field(default_factory=dict)

    def list_trainings(self) -> dict[str, list[int]]:
        """List the systems of this corpus, each with its seeds."""
        seeds: dict[str, set[int]] = {}
        for contrast in self.contrasts:
            for name in contrast.systems:
                system = self.names.get(name, name)
                if "/" not in system.partition(":")[0]:
                    seeds.setdefault(system, set()).update(contrast.seeds)
        return {system: sorted(chosen) for system, chosen in seeds.items()}

    def list_corpora(self) -> list[str]:
        """List the other corpora whose systems are compared."""
        names = [name for contrast in self.contrasts for name in contrast.systems]
        systems = [self.names.get(name, name).partition(":")[0] for name in names]
        parts = [system.partition("/") for system in systems]
        return list(dict.fromkeys(corpus for corpus, slash, _ in parts if slash))


def load_plan(folder: Path) -> Plan:
    """Read the plan of a corpus.

    Args:
        folder: of the corpus's configs.

    Raises:
        DataError: there is none, or the file is something else.
    """
    path = folder / "_plan.yaml"
    facts: Any = OmegaConf.to_container(read_config(path))
    per_word, names = facts.pop("per_word", []), facts.pop("names", {})
    if not isinstance(per_word, list):
        raise DataError(f"{path}: per_word: give a list of headings of contrasts")
    if not isinstance(names, dict) or not all(isinstance(x, str) for x in names.values()):
        raise DataError(f"{path}: names: give a system for each name")
    contrasts: list[Contrast] = []
    for part, tested in (("family", True), ("estimates", False), ("added", False)):
        section = facts.pop(part, {})
        if not isinstance(section, dict) or not {*section} <= {"seeds", "contrasts"}:
            raise DataError(f"{path}: {part}: give seeds and contrasts")
        seeds, groups = section.get("seeds", []), section.get("contrasts", {})
        if not isinstance(seeds, list) or not all(type(n) is int and n >= 0 for n in seeds):
            raise DataError(f"{path}: {part}: seeds: give a list of whole numbers from 0")
        if len({*seeds}) < len(seeds) or bool(seeds) != bool(groups):
            raise DataError(f"{path}: {part}: give seeds, each once, and contrasts")
        if not isinstance(groups, dict) or not all(isinstance(g, list) for g in groups.values()):
            raise DataError(f"{path}: {part}: contrasts: give headings, each with a list")
        contrasts += [
            _read(path, str(group), text, tuple(seeds), tested, group in per_word)
            for group, texts in groups.items()
            for text in texts
        ]
    margin = facts.pop("margin", 0)
    if facts or not isinstance(margin, int | float) or not margin >= 0:
        wrong = next(iter(facts), "margin")
        raise DataError(
            f"{path}: {wrong}: a plan has only "
            "margin (a number from 0), family, estimates, added, per_word and names"
        )
    groups = [contrast.group for contrast in contrasts]
    if any(group not in groups for group in per_word):
        raise DataError(f"{path}: per_word: give a list of headings of contrasts")
    if not contrasts:
        raise DataError(f"{path}: no contrasts; give some in family or estimates")
    if any(contrast.same for contrast in contrasts) and not margin:
        raise DataError(f"{path}: (=) needs a margin above 0")
    compared = {name for contrast in contrasts for name in contrast.systems}
    if unknown := [name for name in names if name not in compared]:
        raise DataError(f"{path}: names: {unknown[0]} is in no contrast")
    return Plan(contrasts, margin, names)


def _read(
    path: Path, group: str, text: Any, seeds: tuple[int, ...], tested: bool, per_word: bool
) -> Contrast:
    match = _CONTRAST.fullmatch(str(text))
    if match is None:
        raise DataError(
            f"{path}: {str(text)[:60]!r}; expected SYSTEM - SYSTEM, with (=) or without"
        )
    if match[1] == match[2]:
        raise DataError(f"{path}: {text}: compare two different systems")
    if match[3] and not tested:
        raise DataError(f"{path}: {text}: only contrasts of the family are tested")
    return Contrast(group, match[1], match[2], seeds, tested, match[3] is not None, per_word)
