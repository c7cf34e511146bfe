"""``python -m syncattn_fairseq``: list the commands, or write what a shell completes them by."""

import argparse
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from unittest import mock

ROOMS = {"cli": "Text, training data and models:", "lab/cli": "Experiments (the laboratory):"}
ABOUT = re.compile(r'"""``(syncattn-\w+)``: (.*)\.')


def find_commands(room: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, module and purpose of each command in a room, as its file begins."""
    for path in sorted((Path(__file__).parent / room).glob("*.py")):
        if found := ABOUT.match(path.read_text(encoding="utf-8")):
            module = f"{__package__}.{room.replace('/', '.')}.{path.stem}"
            yield found[1], module, found[2].replace("`", "")


def describe() -> str:
    """Return the commands in groups, one a line."""
    lines = ["Each command explains its options: syncattn-... --help"]
    for room, title in ROOMS.items():
        lines += ["", title, *(f"  {name:19}  {about}" for name, _, about in find_commands(room))]
    return "\n".join(lines)


def complete(shell: str) -> str:
    """Return the completion of all commands for a shell."""
    from shtab import complete as complete_one

    found = []
    for module in (module for room in ROOMS for _, module, _ in find_commands(room)):
        # A command that is asked for help shows its parser.
        with (
            mock.patch.object(argparse.ArgumentParser, "print_help", autospec=True) as shown,
            suppress(SystemExit),
        ):
            import_module(module).main(["--help"])
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
        help="write what completes their options in a shell instead",
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
