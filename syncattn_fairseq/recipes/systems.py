"""The settings of a published run: one YAML file for each system of each corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from .stages import options

#: Sections whose ``_name`` is an option; its name where that is not the section's.
NAMED = {"model": "arch"}
#: What is not for training.
IGNORED = ("defaults", "generation", "hydra")


def load_system(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return a config with those that it builds on, in the order of its ``defaults``.

    Args:
        path: such as ``configs/wmt14_en_de/syncattn.yaml``.
        overrides: ``SECTION.OPTION=VALUE``, as ``fairseq-hydra-train`` takes them.
    """
    changes = OmegaConf.from_dotlist(list(overrides))
    merged: Any = OmegaConf.to_container(OmegaConf.merge(_load(path), changes), resolve=True)
    return merged


def _load(path: Path) -> Any:
    own: Any = OmegaConf.load(path)
    names = own.get("defaults", ["_self_"])
    parts = [own if name == "_self_" else _load(path.with_name(f"{name}.yaml")) for name in names]
    return OmegaConf.merge(*parts)


def training_options(config: dict[str, Any]) -> Iterator[str]:
    """Yield the words behind ``fairseq-train``, the data first."""
    yield config["task"]["data"]
    for section, values in config.items():
        if section not in IGNORED:
            named = {NAMED.get(section, section): values["_name"]} if "_name" in values else {}
            rest = {name: v for name, v in values.items() if name not in ("_name", "data")}
            yield from options(named | rest)


def generation_options(config: dict[str, Any]) -> Iterator[str]:
    """Yield the options of ``fairseq-generate``."""
    yield from options(config.get("generation", {}))
