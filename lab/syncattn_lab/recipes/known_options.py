"""Check the options of a config before a training: hydra and fairseq accept wrong names.

A value of the wrong type stops them, but only when a training has begun.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.user_dir import import_user_dir
from syncattn_fairseq.checkpoints.registered_options import (
    advise,
    find_schema,
    list_options,
    make_parser,
    registry,
)

from .stages import options
from .systems import GENERATION, IGNORED, LIMITS, ONLY_GIVEN, WRITTEN, Place

#: Sections with the options of ``fairseq-generate``, which ``generation`` may hold.
_GENERATING = (GENERATION, "common_eval", "dataset", "common", "distributed_training")
#: Options that ``generation`` may not hold: a config may be a stranger's, and these name code and
#: files.
_NOT_GENERATION = frozenset(
    ("user_dir", "data", "path", "model_overrides", "source_parser", "input_heads", "input_labels")
    + ("lm_path", "eval_bleu_args", "quantization_config_path", "optimizer_overrides")
) | {name.partition(".")[2] for name in WRITTEN}

_COUNTED = r"(layers|attention_heads|embed_dim|ffn_embed_dim|hidden_size)"
#: Smallest and largest values of numeric options, for which fairseq has no limits.
_RANGES = {
    r"generation\.(beam|nbest|batch_size|max_tokens)": (1, inf),
    r"generation\.(min_len|max_len_[ab])": (0, inf),
    r"dataset\.(batch_size|max_tokens)(_valid)?|dataset\.validate_interval": (1, inf),
    r"checkpoint\.save_interval|common\.log_interval": (1, inf),
    r"optimization\.(lr|clip_norm)": (0, inf),
    rf"model\.(en|de)coder_{_COUNTED}": (1, inf),
    r"model\.\w*dropout|criterion\.label_smoothing": (0, 1),
}
#: Settings that end a training, if they are above 0.
_ENDS = (*LIMITS, "optimization.stop_min_lr")


def check_known_options(
    config: Mapping[str, Any], place: Place, plugin: Path, changed: Collection[str]
) -> None:
    """Raise `DataError` if an option of a system is unknown, or its value has the wrong type.

    ``config`` is from `.systems.System.load`, and checked by `.systems.check_system`; ``place`` is
    `.systems.System.place_of`; ``changed`` are the options that the command line gave.

    Raises:
        DataError: an option or the ``_name`` of a section is unknown; a value is of the wrong type,
            or too small or large; nothing ends the training; or the plugin cannot be imported, or
            is named by a file only.
    """
    _import_plugin(plugin, place, "common.user_dir" in changed)
    for section, values in config.items():
        if section in IGNORED:
            continue
        name = str(values.get("_name") or "")
        known = registry(section)
        if name and known and name not in known:
            fault = f"{place(f'{section}._name')}={name}: there is no such {section}"
            raise DataError(fault + advise(section, name, known))
        options_of = list_options(section, name)
        if section == "optimizer" and name and find_schema(section, name) is None:
            options_of = options_of | {"lr"}  # fairseq-hydra-train gives it nothing else
        _check(section, values.keys() - {"_name"}, options_of, place)
        _check_types(section, name, values, place)
    task = list_options("task", config["task"]["_name"])
    known_names = task.union(*(list_options(section, "") for section in _GENERATING))
    values = config[GENERATION]
    for name in sorted(_NOT_GENERATION & values.keys()):
        raise DataError(
            f"{place(f'generation.{name}')}: recipes set this option themselves; leave it out"
        )
    _check(GENERATION, values, known_names | _aliases(), place)
    _parse(GENERATION, _generation_parser(), values, place)
    for section, values in config.items():
        for option, value in values.items():
            _check_range(f"{section}.{option}", value, place)
    ends = [name.split(".") for name in _ENDS]
    if not any((config[section].get(option) or 0) > 0 for section, option in ends):
        raise DataError(
            f"{place(_ENDS[0])}: no setting ends the training; set one of {', '.join(_ENDS)}"
        )


def _import_plugin(folder: Path, place: Place, allowed: bool) -> None:
    """Import this package's plugin and the user's, which registers their options with fairseq."""
    from syncattn_fairseq import plugin  # must import fairseq first

    if folder == Path(plugin.__file__).parent:
        return
    if not allowed:
        raise DataError(f"{place('common.user_dir')}: {ONLY_GIVEN}")
    with naming(place("common.user_dir")):
        import_user_dir(folder)
    make_parser.cache_clear()


def _check(section: str, names: Iterable[Any], known: Collection[str], place: Place) -> None:
    for name in sorted(set(map(str, names)) - set(known)):
        fault = f"{place(f'{section}.{name}')}: there is no such option"
        raise DataError(fault + advise(section, name, known))


def _check_range(name: str, value: Any, place: Place) -> None:
    for pattern, (least, most) in _RANGES.items():
        if re.fullmatch(pattern, name):
            for number in value if isinstance(value, list) else [value]:
                if isinstance(number, int | float) and not least <= number <= most:
                    until = f" to {most}" if most < inf else ""
                    raise DataError(f"{place(name)}={value}: give a number from {least}{until}")


def _check_types(section: str, name: str, values: Mapping[str, Any], place: Place) -> None:
    schema = find_schema(section, name)
    if schema is None:
        options_only = {option: value for option, value in values.items() if option != "_name"}
        _parse(section, make_parser(section, name), options_only, place)
        return
    try:
        _typed(schema).merge_with(
            {f.name: values[f.name] for f in dataclasses.fields(schema) if f.name in values}
        )
    except OmegaConfBaseException as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{place(f'{section}.{error.full_key}')}: {reason}") from None


@cache
def _typed(schema: Any) -> DictConfig:
    types: DictConfig = OmegaConf.structured(schema)
    return types


def _parse(
    section: str, parser: argparse.ArgumentParser, values: Mapping[str, Any], place: Place
) -> None:
    try:
        parser.parse_known_args([*options(values)])
    except argparse.ArgumentError as error:
        option = str(error.argument_name).lstrip("-").replace("-", "_")
        raise DataError(f"{place(f'{section}.{option}')}: {error.message}") from None


@cache
def _aliases() -> frozenset[str]:
    """Return all command-line names of ``fairseq-generate``'s options, without hyphens before."""
    names = (name for action in _generation_parser()._actions for name in action.option_strings)
    return frozenset(name.lstrip("-").replace("-", "_") for name in names) - {"h", "help"}


@cache
def _generation_parser() -> argparse.ArgumentParser:
    from fairseq.options import get_generation_parser

    parser: argparse.ArgumentParser = get_generation_parser()
    parser.exit_on_error = parser.allow_abbrev = False
    return parser
