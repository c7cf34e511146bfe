"""The settings of a system: one YAML file for each system of each corpus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ..base.errors import DataError
from .config_file import one_line, read_config, read_value
from .stages import options

#: The option for the ``_name`` of a section if it is not called like the section.
NAMED = {"model": "arch"}
#: Sections that are not for training; ``generation`` has options of fairseq-generate.
IGNORED = ("defaults", "generation", "hydra")
#: Sections that fairseq has.
SECTIONS = (
    *("common", "common_eval", "distributed_training", "dataset", "optimization", "checkpoint"),
    *("bmuf", "eval_lm", "interactive", "model", "task", "criterion", "optimizer"),
    *("lr_scheduler", "scoring", "bpe", "tokenizer", "ema"),
)
#: Settings that must be text, and those that must be whole numbers, in every system.
_TEXTS = (
    *("task._name", "task.data", "task.source_lang", "task.target_lang"),
    *("model._name", "criterion._name", "common.user_dir", "checkpoint.save_dir"),
)
_NUMBERS = {"dataset.max_tokens": 1, "common.seed": 0}
#: Names of files and languages.
_NAME = re.compile(r"\w[\w.@+-]*")
_OVERRIDE = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*=.*", re.DOTALL)


def read_overrides(texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of ``SECTION.OPTION=VALUE`` by name.

    Raises:
        DataError: a text is not of this form, or there is no such section.
    """
    found: dict[str, Any] = {}
    for text in texts:
        if not _OVERRIDE.fullmatch(text):
            raise DataError(f"{text}: write settings as SECTION.OPTION=VALUE")
        name = text.partition("=")[0]
        section = name.partition(".")[0]
        if section not in (*SECTIONS, *IGNORED):
            raise DataError(f"{text}: no section {section!r}; choose from {', '.join(SECTIONS)}")
        found[name] = read_value(text)
    return found


def load_system(path: Path, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a config merged with those it builds on, in the order of its ``defaults``.

    Args:
        path: such as ``configs/wmt14_en_de/syncattn.yaml``.
        overrides: values by ``SECTION.OPTION`` that replace its own.

    Raises:
        DataError: a file cannot be read.
    """
    config = _load(path, {path})
    for name, value in (overrides or {}).items():
        try:
            OmegaConf.update(config, name, value)
        except OmegaConfBaseException as error:
            raise DataError(f"{path}: {name}={value}: {one_line(error)}") from None
    merged: Any = OmegaConf.to_container(config)
    return merged


def _load(path: Path, files: set[Path]) -> Any:
    """Read a file and those it builds on, unless they are among ``files``, which hydra refuses."""
    own = read_config(path)
    values: Any = OmegaConf.to_container(own)
    _check_interpolations(values, path)
    names = values.get("defaults", ["_self_"])
    if (
        not isinstance(names, list)
        or not names
        or not all(_NAME.fullmatch(str(name)) for name in names)
    ):
        raise DataError(f"{path}: defaults: give a list of files here, such as [_self_, _corpus]")
    if len({*names}) < len(names):
        raise DataError(f"{path}: defaults: name each file once")
    parts = []
    for name in names:
        part = path.with_name(f"{name}.yaml")
        if part in files:
            raise DataError(f"{path}: defaults: {name} builds on itself, or was named before")
        if name != "_self_":
            files.add(part)
        parts.append(own if name == "_self_" else _load(part, files))
    try:
        return OmegaConf.merge(*parts)
    except OmegaConfBaseException as error:
        raise DataError(f"{path}: {one_line(error)}") from None


def _check_interpolations(values: Any, path: Path) -> None:
    """Refuse ``${OPTION}``, which could stand for any number of values."""
    if isinstance(values, str) and "${" in values:
        raise DataError(f"{path}: {values[:60]}: write the value in place of ${{...}}")
    if isinstance(values, dict | list):
        for inner in values.values() if isinstance(values, dict) else values:
            _check_interpolations(inner, path)


def check_system(config: Mapping[str, Any], path: Path) -> None:
    """Check that a system has what recipes read from it.

    Args:
        config: from `load_system`.
        path: its file.

    Raises:
        DataError: something is missing or of the wrong type.
    """
    for section, values in config.items():
        if section not in (*SECTIONS, *IGNORED):
            raise DataError(f"{path}: no section {section!r}; choose from {', '.join(SECTIONS)}")
        if section != "defaults" and not isinstance(values, Mapping):
            raise DataError(f"{path}: {section}: expected names and values, not {values!r}")

    def value_of(name: str) -> Any:
        section, _, option = name.partition(".")
        if option not in config.get(section, {}):
            raise DataError(f"{path}: the key {name} is missing")
        return config[section][option]

    for name in _TEXTS:
        value = value_of(name)
        if not isinstance(value, str) or not value.isprintable() or not value:
            raise DataError(f"{path}: {name}={value!r}: give a name")
    for name in ("task.source_lang", "task.target_lang"):
        check_language(value_of(name), path)
    folder = Path(value_of("checkpoint.save_dir"))
    if not folder.name or ".." in folder.parts:
        raise DataError(f"{path}: checkpoint.save_dir={folder}: give a folder of its own")
    for name, least in _NUMBERS.items():
        if type(value_of(name)) is not int or value_of(name) < least:
            raise DataError(
                f"{path}: {name}={value_of(name)}: give a whole number, at least {least}"
            )
    steps = config.get("optimization", {}).get("update_freq", [1])
    if not isinstance(steps, list) or not steps or any(type(n) is not int or n < 1 for n in steps):
        raise DataError(
            f"{path}: optimization.update_freq={steps}: give a list of one whole number, at "
            "least 1, such as [4]"
        )


def check_language(name: Any, path: Path) -> None:
    """Check that a language can be part of the names of files.

    Raises:
        DataError: it cannot.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DataError(f"{path}: {name!r} is not the name of a language, such as en")


def training_options(config: dict[str, Any]) -> Iterator[str]:
    """Yield the arguments of ``fairseq-train``, the data first."""
    yield config["task"]["data"]
    for section, values in config.items():
        if section not in IGNORED:
            named = {NAMED.get(section, section): values["_name"]} if "_name" in values else {}
            rest = {name: v for name, v in values.items() if name not in ("_name", "data")}
            yield from options(named | rest)


def generation_options(config: dict[str, Any]) -> Iterator[str]:
    """Yield the options of ``fairseq-generate``."""
    yield from options(config.get("generation", {}))
