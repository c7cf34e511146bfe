"""What ``--help`` says: every argument, in plain words, and at the end an example that is right."""

import argparse
import re
from collections.abc import Iterator
from importlib import import_module
from unittest import mock

import pytest

from tests.cli.parsing import refusal
from tests.test_packaging import SCRIPTS


def parsers(name: str) -> Iterator[argparse.ArgumentParser]:
    with (
        mock.patch.object(argparse.ArgumentParser, "print_help", autospec=True) as shown,
        pytest.raises(SystemExit),
    ):
        import_module(SCRIPTS[name].split(":")[0]).main(["--help"])
    parser = shown.call_args.args[0]
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


@pytest.mark.parametrize("name", SCRIPTS)
def test_help(name):
    for parser in parsers(name):
        text = parser.format_help()
        assert not re.search(r"[`*]|:\w+:`", text), "no markup"
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, f"{parser.prog} {action.option_strings or action.dest}"
            else:
                assert all(choice.help for choice in action._choices_actions)
        _, _, example = text.rpartition("\n\nexample:\n  ")
        assert example.startswith(f"{parser.prog} ")
        assert max(map(len, example.splitlines())) <= 98
        assert not refusal(example.replace("\\\n", " "))
