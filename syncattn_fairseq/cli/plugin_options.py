"""List the plugin's options in groups, with the defaults of an architecture."""

import argparse
import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY
from fairseq.tasks.translation import TranslationConfig

from .. import plugin  # noqa: F401  (registers everything)
from ..base.errors import DataError
from ..base.option_fields import as_fairseq, flag
from ..criterions.terms import TERMS
from ..models import config
from ..models.architectures import SIZES, SYSTEMS
from ..models.syntax_rnn import SyntaxRNNConfig
from ..registered_names import CRITERION, TASK
from ..tasks.options import TranslationWithSyntaxConfig

#: The recurrent model, whose options are all in this plugin.
RNN = "syntax_rnn"
MODELS = ("syntax_transformer", RNN)


@dataclasses.dataclass(frozen=True)
class OptionGroup:
    """Options that belong together: dataclass fields of a model, the criterion or the task."""

    owner: str
    title: str
    fields: list[Any]


def list_groups() -> list[OptionGroup]:
    """List the plugin's options in groups, each option once per model, criterion or task.

    The owner of a group is what fairseq reads its options for: a model, the criterion or the task.
    """
    transformer, _ = MODELS
    inherited = {field.name for field in dataclasses.fields(TranslationConfig)}
    losses = (term.Options for term in TERMS.values())
    every_group = [
        *(OptionGroup(transformer, _summarise(o), _fields(o)) for o in config.list_options()),
        OptionGroup(RNN, _summarise(SyntaxRNNConfig), _fields(SyntaxRNNConfig)),
        *(OptionGroup(CRITERION, _summarise(o), _fields(o)) for o in map(as_fairseq, losses)),
        OptionGroup(
            TASK,
            "Parses of the text, and what to print of them",
            [f for f in _fields(TranslationWithSyntaxConfig) if f.name not in inherited],
        ),
    ]
    known: set[tuple[str, str]] = set()
    groups = []
    for group in every_group:
        new = [field for field in group.fields if (group.owner, field.name) not in known]
        known |= {(group.owner, field.name) for field in new}
        if new:
            groups.append(OptionGroup(group.owner, group.title, new))
    return groups


def _fields(options: type) -> list[Any]:
    return [field for field in dataclasses.fields(options) if "help" in field.metadata]


def _summarise(thing: type) -> str:
    return (thing.__doc__ or "").partition("\n")[0].removesuffix(".")


def format_options(architecture: str) -> str:
    """Return the options of an architecture as text for a terminal; `DataError` if unknown."""
    model = ARCH_MODEL_NAME_REGISTRY.get(architecture)
    if model not in MODELS:
        raise DataError(
            f"{architecture}: is not an architecture of this plugin; syncattn-options without a "
            "name lists the architectures"
        )
    defaults = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[architecture](defaults)
    return "\n".join(
        _format_owner(title, [g for g in list_groups() if g.owner == owner], defaults)
        for title, owner in (
            (f"--arch {architecture}", model),
            (f"--criterion {CRITERION}", CRITERION),
            (f"--task {TASK}", TASK),
        )
    )


def _format_owner(title: str, groups: list[OptionGroup], defaults: argparse.Namespace) -> str:
    # argparse fits the text to the terminal.
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, add_help=False)
    for group in groups:
        section = parser.add_argument_group(group.title)
        for field in group.fields:
            section.add_argument(flag(field.name), **_describe(field, defaults))
    return f"{title}\n{'=' * len(title)}\n\n{parser.format_help()}"


def _describe(field: Any, defaults: argparse.Namespace) -> dict[str, Any]:
    about = field.metadata["help"].replace("%", "%%")
    default = getattr(defaults, field.name, field.default)
    if field.type is bool:
        return {"action": "store_true", "help": about + " (on)" * bool(default)}
    default = default.value if isinstance(default, Enum) else default
    suffix = ""
    if default not in ("", None):
        about = about.removesuffix(" (none)")
        suffix = f" (default: {default})"
    if isinstance(field.type, type) and issubclass(field.type, Enum):
        return {"choices": [choice.value for choice in field.type], "help": about + suffix}
    return {"metavar": "N" if field.type is int else "X", "help": about + suffix}


def list_architectures() -> Iterator[tuple[str, str]]:
    """Yield name and description of each architecture of this package, in its base size only."""
    for name, system in SYSTEMS.items():
        yield name, _summarise(system)  # type: ignore[arg-type]
    for name, model in ARCH_MODEL_NAME_REGISTRY.items():
        if model == RNN and name != RNN:
            words = name.removeprefix("rnn_").removesuffix("_double").replace("_", "-")
            context = ", in addition to global attention" if name.endswith("_double") else ""
            yield name, f"Recurrent; attends to the source by {words} attention{context}"


def format_architectures() -> str:
    """Return the list of architectures as text for a terminal."""
    lines = [f"  {name:30}{about}" for name, about in list_architectures()]
    sizes = " and ".join(f"NAME{size}" for size in SIZES if size)
    return "\n".join(
        [
            *("Architectures, and what each of them adds to a plain Transformer:", "", *lines, ""),
            f"Each Transformer NAME also comes as {sizes}.",
            "syncattn-options NAME shows its options and their defaults.",
        ]
    )
