"""The stages of a recipe, each a few commands that a person could type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.option_fields import flag

#: How a step begins that runs a module of this package, whose name follows.
OWN = ("python", "-m")


@dataclass(frozen=True)
class Step:
    """A pipeline of commands, run without a shell; `command` makes one of a single command.

    Attributes:
        commands: the words of each command.
        source: file that the first command reads from its standard input; None: nothing.
        output: file for what the last command prints, complete or not there at all; None: the log.
        reads: the files that the commands read. They are seen from the folder that the recipe runs
            in. A file's name may be a pattern (``checkpoint_*.pt``), which may fit no file.
        makes: the files that the commands make, in the same way. Logs are not among them.
    """

    commands: tuple[tuple[str, ...], ...]
    source: Path | None = None
    output: Path | None = None
    reads: tuple[Path, ...] = ()
    makes: tuple[Path, ...] = ()

    def declare(self, reads: Iterable[Path] = (), makes: Iterable[Path] = ()) -> Step:
        """Return the step with additional input and output files."""
        return replace(self, reads=(*self.reads, *reads), makes=(*self.makes, *makes))

    def into(self, path: Path) -> Step:
        """Return the step with a file for the output of its last command."""
        return replace(self, output=path).declare(makes=[path])

    def adding(self, *words: str) -> Step:
        """Return the step with more words at the end of the last command."""
        *others, last = self.commands
        return replace(self, commands=(*others, (*last, *words)))

    def __str__(self) -> str:
        """Return the same as a line of bash, which may leave an incomplete output though."""
        first, *rest = (shlex.join(command) for command in self.commands)
        words = [first]
        if self.source:
            words.append(f"< {shlex.quote(str(self.source))}")
        words += [f"| {command}" for command in rest]
        if self.output:
            words.append(f"> {shlex.quote(str(self.output))}")
        return " ".join(words)


@dataclass(frozen=True)
class Stage:
    """A part of a recipe.

    Attributes:
        name: what ``--from`` and ``--to`` call it.
        log: path without suffix of its output (``.log``) and of the mark that it is done
            (``.done``).
        steps: what it does, one after the other.
        title: its name on the terminal.
        settings: what its result depends on; None: it is not compared. A recipe stops at a stage
            that was begun or done with other settings.
        after: the ``log`` of each stage that makes what it reads, see `link_stages`; if one of them
            was done again since, this stage is no longer done.
        resumes: whether an interrupted run continues from the files that it has made; otherwise it
            starts over.
        limits: numbers among the settings that only say when it ends (None, 0 or less: never). If
            they have grown, it continues from where it ended.
        programs: external programs that its commands start.
        updates: the planned updates of a training, for its progress; None: unknown, or not one.
    """

    name: str
    log: Path
    steps: list[Step]
    title: str = ""
    settings: Mapping[str, Any] | None = None
    after: tuple[Path, ...] = ()
    resumes: bool = False
    limits: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    updates: int | None = None

    @property
    def reads(self) -> list[Path]:
        """The input files of the stage, without outputs of its own earlier steps, as in `Step`."""
        reads, made = [], list[Path]()
        for step in self.steps:
            reads += [path for path in step.reads if not _are_met([path], made)]
            made += step.makes
        return [*dict.fromkeys(reads)]

    @property
    def makes(self) -> list[Path]:
        """The output files of the stage, as in `Step`."""
        return [*dict.fromkeys(path for step in self.steps for path in step.makes)]


def link_stages(stages: Iterable[Stage], before: Sequence[Stage] = ()) -> list[Stage]:
    """Return stages with links to the earlier stages that make their inputs.

    Args:
        stages: in the order in which they run.
        before: the stages that run before all of them.
    """
    linked = [*before]
    for stage in stages:
        after = [other.log for other in linked if _are_met(stage.reads, other.makes)]
        linked.append(replace(stage, after=tuple(after)))
    return linked[len(before) :]


def _are_met(read: Iterable[Path], made: Iterable[Path]) -> bool:
    """Tell whether any of the files to read is among the outputs."""
    return any(_overlap(one, other) for one in read for other in made)


def _overlap(one: Path, other: Path) -> bool:
    """Tell whether two paths, whose names may be patterns, can be the same file."""
    if one.parent != other.parent:
        return False
    same = one.name == other.name  # patterns may have characters that do not stand for themselves
    return same or fnmatchcase(one.name, other.name) or fnmatchcase(other.name, one.name)


def list_files(work: Path, declared: Iterable[Path]) -> list[Path]:
    """List the existing files for declared paths, as in `Step`, relative to the folder.

    A file that is not there is left out.
    """
    found = set[Path]()
    for path in declared:
        folder = work / path.parent
        whole = (folder / path.name).is_file()
        files = [folder / path.name] if whole else folder.glob(path.name)
        found |= {path.with_name(file.name) for file in files if file.is_file()}
    return sorted(found)


def command(program: str, /, *words: object, **given: Any) -> Step:
    """Make the step of a single command.

    ``command("syncattn-score", references=path, system=[["a", x], ["b", y]], by_length=True)`` is
    ``syncattn-score --references path --system a x --system b y --by-length``.

    Args:
        program: the program, perhaps with words that always follow it: ``syncattn-bpe learn``.
        words: what stands before the options.
        given: the options by name. The value of an option with several values is a list. That of an
            option that is repeated is a list of lists, one for each time. True stands for an option
            without a value. False, None and an empty list leave the option out.
    """
    more = [word for name, value in given.items() for word in _write_option(name, value)]
    return Step((tuple(map(str, [*program.split(), *words, *more])),))


def run_module(module: str, *words: object, **given: Any) -> Step:
    """Make the step to run a module of this folder, with the Python of the recipe.

    Args:
        module: the name of the module.
        words: what stands before the options.
        given: the options by name, as in `command`.
    """
    return command(" ".join([*OWN, f"{__package__}.{module}"]), *words, **given)


def is_own(words: Sequence[str]) -> bool:
    """Tell whether a command is one of `run_module`."""
    module = words[2] if len(words) > 2 else ""
    return tuple(words[:2]) == OWN and module.startswith(f"{__package__}.")


def _write_option(name: str, value: Any) -> list[str]:
    if isinstance(value, list) and value:
        several = value if isinstance(value[0], list) else [value]
        return [str(word) for values in several for word in (flag(name), *values)]
    return [] if value is None or value == [] else [*options({name: value})]


def read_pipeline(text: str, source: Path, output: Path) -> Step:
    """Make the step of a pipeline, such as ``kytea -out tok | sed s/x/y/``; else `DataError`."""
    return Step(tuple(split_commands(text)), source).declare(reads=[source]).into(output)


def split_words(text: str) -> list[str]:
    """Split text into words as a shell does; `DataError` if a quote is not closed."""
    return [word for command in split_commands(text, pipes=False) for word in command]


def read_options(text: str) -> dict[str, str]:
    """Return the options in text, such as ``--lang de``, with their values; empty: none."""
    words = split_words(text)
    parts = [part for word in words for part in word.split("=", 1 if word[:1] == "-" else 0)]
    pairs = pairwise([*parts, "-"])
    return {a: "" if b.startswith("-") else b for a, b in pairs if a.startswith("-")}


def split_commands(text: str, pipes: bool = True) -> list[tuple[str, ...]]:
    """Split text into commands and words; `DataError`: an open quote, or nothing beside a ``|``."""
    reader = shlex.shlex(text, posix=True, punctuation_chars="|" if pipes else "")
    reader.whitespace_split, reader.commenters = True, ""
    commands: list[list[str]] = [[]]
    try:
        for word in reader:
            if pipes and word == "|":
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError as error:
        raise DataError(f"{text!r}: {error}; quote as in a shell") from None
    if pipes and not all(commands):
        raise DataError(f"{text!r}: a command is missing next to a |")
    return [tuple(command) for command in commands]


def options(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``--name value`` for each setting of fairseq; ``--name`` for True, nothing for False.

    The values of a list are joined by commas. A value that begins with a hyphen is joined to its
    name, or it would be an option of its own.
    """
    for name, value in values.items():
        option = flag(name)
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        if isinstance(value, bool):
            yield from [option] if value else []
        elif text.startswith("-"):
            yield f"{option}={text}"
        else:
            yield from (option, text)


def hydra_value(value: Any) -> str:
    """Return a value as written for hydra after ``NAME=``."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(hydra_value, value))}]"
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text) and yaml.safe_load(text) == text
    if not isinstance(value, str) or plain:
        return text
    quoted = re.sub(r"(\\*)'", r"\1\1\\'", text)
    return "'" + re.sub(r"(\\+)$", r"\1\1", quoted) + "'"
