"""Check the options of a config: hydra accepts any name, and fairseq accepts most.

A value of the wrong type stops them, but only when a training has begun.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ...base.errors import DataError, naming, suggest
from ...base.user_dir import import_user_dir
from .stages import options
from .systems import GENERATION, IGNORED, WRITTEN

_SEE = "; see docs/options.md"
_OWN = f"{_SEE}, or name the plugin of your own that has it: common.user_dir=FOLDER"
#: Sections to which a plugin adds options.
_EXTENDED = ("task", "model", "criterion")
#: Sections with the options of ``fairseq-generate``, which ``generation`` may hold.
_GENERATING = (GENERATION, "common_eval", "dataset", "common", "distributed_training")
#: What it may not hold: a config may be a stranger's, and these name code and files.
_NOT_GENERATION = frozenset(
    ("user_dir", "data", "path", "model_overrides", "source_parser", "input_heads", "input_labels")
    + ("lm_path", "eval_bleu_args", "quantization_config_path", "optimizer_overrides")
) | {name.partition(".")[2] for name in WRITTEN}

#: Why a file may not name a plugin.
ONLY_GIVEN = "a plugin is imported only if the command line names it: SYSTEM:common.user_dir=FOLDER"


class _Origin(NamedTuple):
    """Where options come from, for messages: a file, and the command line for those changed."""

    path: Path
    changed: Collection[str]

    def locate(self, option: str) -> str:
        """Return the beginning of a message about ``SECTION.OPTION``."""
        return f"{'command line' if option in self.changed else self.path}: {option}"


def check_known_options(
    config: Mapping[str, Any], path: Path, plugin: Path, changed: Collection[str] = ()
) -> None:
    """Check that all options that a system sets exist, and have values of their types.

    Args:
        config: from `.systems.System.load`, and checked by `.systems.check_system`.
        path: its file.
        plugin: the folder that fairseq loads.
        changed: the options, ``SECTION.OPTION``, that the command line gave.

    Raises:
        DataError: an option or the ``_name`` of a section is unknown, and the message names a
            similar one; a value is of the wrong type; or the plugin cannot be imported, or is named
            by a file only.
    """
    _import_plugin(plugin, path, "common.user_dir" in changed)
    origin = _Origin(path, changed)
    for section, values in config.items():
        if section in IGNORED:
            continue
        name = str(values.get("_name") or "")
        known = _choices(section)
        if name and known and name not in known:
            fault = f"{origin.locate(f'{section}._name')}={name}: there is no such {section}"
            raise DataError(fault + _advise(section, name, known))
        _check(section, values.keys() - {"_name"}, _options(section, name), origin)
        _check_types(section, name, values, origin)
    task = _options("task", config["task"]["_name"])
    known_names = task.union(*(_options(section, "") for section in _GENERATING))
    values = config.get(GENERATION, {})
    for name in sorted(_NOT_GENERATION & values.keys()):
        raise DataError(f"{origin.locate(f'generation.{name}')}: recipes decide this; leave it out")
    _check(GENERATION, values, known_names | _aliases(), origin)
    _parse(GENERATION, _generation_parser(), values, origin)


def _import_plugin(folder: Path, path: Path, allowed: bool) -> None:
    """Register our options, and those of a user's own plugin, which usually builds on ours."""
    from ... import plugin  # must import fairseq first

    if folder == Path(plugin.__file__).parent:
        return
    if not allowed:
        raise DataError(f"{path}: common.user_dir: {ONLY_GIVEN}")
    with naming(path):
        import_user_dir(folder)
    _choices.cache_clear()
    _parser.cache_clear()


def _check(section: str, names: Iterable[Any], known: Iterable[str], origin: _Origin) -> None:
    for name in sorted(set(map(str, names)) - set(known)):
        fault = f"{origin.locate(f'{section}.{name}')}: there is no such option"
        raise DataError(fault + _advise(section, name, known))


def _advise(section: str, name: str, known: Iterable[str]) -> str:
    """Return what to do about a name that is not known: the end of a message."""
    return suggest(name, known) or (_OWN if section in _EXTENDED else _SEE)


def _check_types(section: str, name: str, values: Mapping[str, Any], origin: _Origin) -> None:
    schema = _schema(section, name)
    if schema is None:
        options_only = {option: value for option, value in values.items() if option != "_name"}
        _parse(section, _parser(section, name), options_only, origin)
        return
    try:
        _typed(schema).merge_with(
            {option: values[option] for option in values.keys() & _fields(schema)}
        )
    except OmegaConfBaseException as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{origin.locate(f'{section}.{error.full_key}')}: {reason}") from None


@cache
def _typed(schema: Any) -> DictConfig:
    """Return a config that accepts values of these types; what is in it does not matter."""
    types: DictConfig = OmegaConf.structured(schema)
    return types


def _parse(
    section: str, parser: argparse.ArgumentParser, values: Mapping[str, Any], origin: _Origin
) -> None:
    """Check values by parsing them as they are given on a command line."""
    try:
        parser.parse_known_args([*options(values)])
    except argparse.ArgumentError as error:
        option = str(error.argument_name).lstrip("-").replace("-", "_")
        raise DataError(f"{origin.locate(f'{section}.{option}')}: {error.message}") from None


def _registry(section: str) -> Mapping[str, Any]:
    """Return the classes that the ``_name`` of a section chooses from."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    if section == "model":
        return {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}
    if section == "task":
        return TASK_REGISTRY
    registry: Mapping[str, Any] = REGISTRIES.get(section, {}).get("registry", {})
    return registry


@cache
def _choices(section: str) -> frozenset[str]:
    return frozenset(_registry(section))


def _options(section: str, name: str) -> frozenset[str]:
    """Return the options of a section with this ``_name``, or of one without a choice."""
    untyped = frozenset(action.dest for action in _parser(section, name)._actions)
    return untyped | _fields(_schema(section, name))


@cache
def _parser(section: str, name: str) -> argparse.ArgumentParser:
    """Return a parser of the options that have no dataclass, those of models among them."""
    kind: Any = _registry(section).get(name)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    if hasattr(kind, "add_args"):
        kind.add_args(parser)
    return parser


def _schema(section: str, name: str) -> Any:
    """Return the dataclass of these options; None: they have no types."""
    from fairseq.dataclass.configs import FairseqConfig

    kind = _registry(section).get(name)
    if kind is not None:
        return getattr(kind, "__dataclass", None)
    group = getattr(FairseqConfig(), section, None)
    return group if dataclasses.is_dataclass(group) else None


def _fields(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(kind)) if kind else frozenset()


@cache
def _aliases() -> frozenset[str]:
    """Return the options of ``fairseq-generate`` as its command line calls them."""
    names = (name for action in _generation_parser()._actions for name in action.option_strings)
    return frozenset(name.lstrip("-").replace("-", "_") for name in names) - {"h", "help"}


@cache
def _generation_parser() -> argparse.ArgumentParser:
    from fairseq.options import get_generation_parser

    parser: argparse.ArgumentParser = get_generation_parser()
    parser.exit_on_error = parser.allow_abbrev = False
    return parser
