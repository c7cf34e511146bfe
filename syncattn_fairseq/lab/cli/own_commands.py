"""Check calls of our own commands before any of them runs."""

import argparse
import io
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ...base.errors import DataError, naming
from ...cli.command_line import claiming_outputs
from ..recipes.stages import Stage

_PREFIX = "syncattn-"
_PACKAGES = ("syncattn_fairseq.cli", "syncattn_fairseq.lab.cli")
#: Its parser is fairseq's, and no config has options for it.
_FOREIGN = "syncattn-preprocess"


def check_calls(stages: Iterable[Stage], data_file: Path) -> None:
    """Check the arguments of our commands, many of which are from ``_data.yaml``.

    Args:
        stages: what will run.
        data_file: this file.

    Raises:
        DataError: a command would refuse its arguments.
    """
    for stage in stages:
        for words in (words for step in stage.steps for words in step.commands):
            if words[0].startswith(_PREFIX) and words[0] != _FOREIGN:
                with naming(f"{data_file}: {stage.name}"):
                    _check(words)


def _check(words: tuple[str, ...]) -> None:
    with (
        claiming_outputs(claims=False),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()) as message,
    ):
        try:
            _parser_of(words[0]).parse_args(words[1:])
        except SystemExit:
            reason = message.getvalue().strip().removeprefix("error: ").rpartition("; see ")[0]
            raise DataError(f"{words[0]}: {reason or 'wrong options'}") from None


@cache
def _parser_of(command: str) -> argparse.ArgumentParser:
    name = command.removeprefix(_PREFIX)
    for package in _PACKAGES if name.isidentifier() else ():
        if find_spec(f"{package}.{name}"):
            make_parser = getattr(import_module(f"{package}.{name}"), "_parser", None)
            if make_parser is not None:
                parser: argparse.ArgumentParser = make_parser()
                return parser
    raise DataError(f"{command}: there is no such command")
