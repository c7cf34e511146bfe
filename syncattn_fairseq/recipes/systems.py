"""The settings of a system: one YAML file for each system of each corpus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError
from yaml.error import MarkedYAMLError

from ..base.errors import DataError
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
    *("model._name", "checkpoint.save_dir"),
)
_NUMBERS = {"dataset.max_tokens": 1, "common.seed": 0}
_OVERRIDE = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*=.*", re.DOTALL)


def read_config(path: Path) -> Any:
    """Read a file of settings, with numbers as hydra reads them.

    Raises:
        DataError: the file is missing, or is not YAML with names and values.
    """
    try:
        found = OmegaConf.load(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8; convert the file to UTF-8") from None
    except MarkedYAMLError as error:
        place = f"{path}:{error.problem_mark.line + 1}" if error.problem_mark else str(path)
        raise DataError(f"{place}: not YAML: {error.problem or error.context}") from None
    except (YAMLError, OmegaConfBaseException, OSError, ValueError) as error:
        raise DataError(f"{path}: not YAML: {_one_line(error)}") from None
    if not isinstance(found, DictConfig) or not found:
        raise DataError(f"{path}: not a list of names and values; write NAME: VALUE")
    return found


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
        try:
            found[name] = OmegaConf.select(OmegaConf.from_dotlist([text]), name)
        except (YAMLError, OmegaConfBaseException, ValueError) as error:
            raise DataError(f"{text}: not a value: {_one_line(error)}") from None
        if OmegaConf.is_config(found[name]):
            found[name] = OmegaConf.to_container(found[name])
    return found


def load_system(path: Path, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a config merged with those it builds on, in the order of its ``defaults``.

    Args:
        path: such as ``configs/wmt14_en_de/syncattn.yaml``.
        overrides: values by ``SECTION.OPTION`` that replace its own.

    Raises:
        DataError: a file cannot be read.
    """
    config = _load(path)
    for name, value in (overrides or {}).items():
        try:
            OmegaConf.update(config, name, value)
        except OmegaConfBaseException as error:
            raise DataError(f"{path}: {name}={value}: {_one_line(error)}") from None
    try:
        merged: Any = OmegaConf.to_container(config, resolve=True)
    except OmegaConfBaseException as error:
        raise DataError(f"{path}: {_one_line(error)}") from None
    return merged


def _load(path: Path) -> Any:
    own = read_config(path)
    names = own.get("defaults", ["_self_"])
    if not OmegaConf.is_list(names) and not isinstance(names, list):
        raise DataError(f"{path}: defaults: give a list, such as [_self_, _corpus]")
    parts = [own if name == "_self_" else _load(path.with_name(f"{name}.yaml")) for name in names]
    try:
        return OmegaConf.merge(*parts)
    except OmegaConfBaseException as error:
        raise DataError(f"{path}: {_one_line(error)}") from None


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
        if not isinstance(value_of(name), str) or not value_of(name):
            raise DataError(f"{path}: {name}={value_of(name)}: give a name")
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


def _one_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
