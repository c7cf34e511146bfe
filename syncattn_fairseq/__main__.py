"""``python -m syncattn_fairseq``: list the commands, or write a shell-completion script."""

import argparse
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

_ABOUT = re.compile(r'"""``(syncattn-\w+)``: (.*)\.')


@dataclass(frozen=True)
class Command:
    """A command that is installed.

    Attributes:
        name: what one types.
        module: where its function ``main`` is.
        purpose: one sentence, as the module's docstring has it.
        distribution: the name of the distribution that brings it.
    """

    name: str
    module: str
    purpose: str
    distribution: str


def list_commands() -> list[Command]:
    """List the commands of this package and of the laboratory, if that is installed, by name."""
    commands = []
    for entry in entry_points(group="console_scripts"):
        spec = find_spec(entry.module) if entry.name.startswith("syncattn-") else None
        if spec and spec.origin and entry.dist:
            found = _ABOUT.match(Path(spec.origin).read_text(encoding="utf-8"))
            purpose = found[2].replace("`", "") if found else ""
            commands.append(Command(entry.name, entry.module, purpose, entry.dist.name))
    return sorted(commands, key=lambda command: command.name)


def describe() -> str:
    """Return the commands of each distribution, one a line."""
    groups: dict[str, list[Command]] = defaultdict(list)
    for command in list_commands():
        groups[command.distribution].append(command)
    lines = ["Each command explains its options: syncattn-... --help"]
    for name, commands in sorted(groups.items()):
        lines += ["", f"{name}: {distribution(name).metadata['Summary']}"]
        lines += [f"  {command.name:19}  {command.purpose}" for command in commands]
    return "\n".join(lines)


def complete(shell: str) -> str:
    """Return the completion of all commands for a shell."""
    from shtab import complete as complete_one

    found = []
    for command in list_commands():
        # A command that is asked for help shows its parser.
        with (
            mock.patch.object(argparse.ArgumentParser, "print_help", autospec=True) as shown,
            suppress(SystemExit),
        ):
            import_module(command.module).main(["--help"])
        found.append(complete_one(shown.call_args.args[0], shell))
    return "\n".join(found)


def main(argv: list[str] | None = None) -> None:
    """List the commands, or write their completion."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description="List the commands of this package."
    )
    parser.add_argument(
        "--completion",
        choices=["bash", "zsh", "tcsh"],
        help="print a completion script for this shell, and nothing else",
    )
    shell = parser.parse_args(argv).completion
    try:
        print(complete(shell) if shell else describe())
    except ModuleNotFoundError as error:
        if error.name != "shtab":
            raise
        parser.error("this needs shtab; pip install 'syncattn-fairseq[completion]'")


if __name__ == "__main__":
    main()
