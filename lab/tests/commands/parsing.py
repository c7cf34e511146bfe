"""Whether commands understand their arguments, without running them."""

import argparse
import io
import shlex
from contextlib import redirect_stderr
from importlib import import_module
from typing import Any
from unittest import mock

from tests.test_packaging import SCRIPTS

#: The modules that recipes run as their own steps.
STEPS = [f"syncattn_lab.recipes.{name}" for name in ("fetch", "collect", "generate")]
#: What one types, and the module that it runs.
COMMANDS = {name: target.split(":")[0] for name, target in SCRIPTS.items()}
COMMANDS |= {f"python -m {module}": module for module in STEPS}


def main_of(name: str) -> Any:
    """Return the function that is a command."""
    return import_module(COMMANDS[name]).main


def split_call(line: str) -> tuple[str, list[str]]:
    """Return the command of a line of the shell, and its arguments."""
    words = shlex.split(line)
    count = 3 if words[0] == "python" else 1
    return " ".join(words[:count]), words[count:]


class _Understood(Exception):
    pass


def refusal(line: str) -> str:
    """Return what a command of ours says against a line of the shell; '' for nothing."""
    name, arguments = split_call(line.partition(" | ")[0])
    for sign in ("<", ">"):
        if sign in arguments:
            del arguments[arguments.index(sign) : arguments.index(sign) + 2]

    def stop(parse: Any) -> Any:
        def parsed(*args: Any, **kwargs: Any) -> None:
            parse(*args, **kwargs)
            raise _Understood

        return parsed

    parser = argparse.ArgumentParser
    methods = ("parse_args", "parse_intermixed_args")
    with (
        redirect_stderr(io.StringIO()) as said,
        mock.patch.object(parser, methods[0], stop(parser.parse_args)),
        mock.patch.object(parser, methods[1], stop(parser.parse_intermixed_args)),
    ):
        try:
            main_of(name)(arguments)
        except _Understood:
            return ""
        except SystemExit:
            pass
    return said.getvalue() or "no arguments were read"
