"""The stages of a recipe, each made of a few commands that a person could type."""

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

#: The first words of a command that runs a module of this package; the module's name follows.
OWN = ("python", "-m")


@dataclass(frozen=True)
class Step:
    """A pipeline of commands that is run without a shell; `command` makes a step of one command.

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
        """Return a copy of the step with additional input files and output files."""
        return replace(self, reads=(*self.reads, *reads), makes=(*self.makes, *makes))

    def into(self, path: Path) -> Step:
        """Return a copy of the step, with the output of the last command written to a file."""
        return replace(self, output=path).declare(makes=[path])

    def adding(self, *words: str) -> Step:
        """Return a copy of the step with more arguments at the end of its last command."""
        *others, last = self.commands
        return replace(self, commands=(*others, (*last, *words)))

    def __str__(self) -> str:
        """Return the step as a line of bash, which if killed may leave an incomplete output."""
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
    """A part of a recipe that is run, skipped or repeated as a whole.

    Attributes:
        name: the name for ``--from`` and ``--to``.
        log: path without suffix of the stage's output (``.log``) and of the mark that it is done
            (``.done``).
        steps: the steps of the stage, run one after the other.
        title: the stage's name on the terminal.
        settings: the settings that its result depends on; None: settings are not compared. A recipe
            stops at a stage that was begun or done with other settings.
        after: the ``log`` of each stage that makes an input of this one, see `link_stages`; if one
            of them was done again since, this stage is no longer done.
        resumes: whether an interrupted run continues from the files that it has made; otherwise it
            starts over.
        limits: settings, whose values are numbers, that only say when the stage ends (None, 0 or
            less: never). If they have grown, it continues from where it ended.
        programs: external programs that its commands start.
        updates: the planned updates of a training, to show its progress; None: unknown, or the
            stage is no training.
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
        """The input files of the stage, without files made by earlier steps of the same stage."""
        reads, made = [], list[Path]()
        for step in self.steps:
            reads += [path for path in step.reads if not _are_met([path], made)]
            made += step.makes
        return [*dict.fromkeys(reads)]

    @property
    def makes(self) -> list[Path]:
        """The output files of all steps of the stage."""
        return [*dict.fromkeys(path for step in self.steps for path in step.makes)]


def link_stages(stages: Iterable[Stage], before: Sequence[Stage] = ()) -> list[Stage]:
    """Return stages with ``after`` filled in, the logs of the earlier stages that make inputs.

    Args:
        stages: the stages, in the order in which they run.
        before: the stages that run before all of these.
    """
    linked = [*before]
    for stage in stages:
        after = [other.log for other in linked if _are_met(stage.reads, other.makes)]
        linked.append(replace(stage, after=tuple(after)))
    return linked[len(before) :]


def _are_met(read: Iterable[Path], made: Iterable[Path]) -> bool:
    """Tell whether a file to read may be among the files that are made."""
    return any(_overlap(one, other) for one in read for other in made)


def _overlap(one: Path, other: Path) -> bool:
    """Tell whether two paths, whose names may be patterns, can be the same file."""
    if one.parent != other.parent:
        return False
    same = one.name == other.name  # patterns may have characters that do not stand for themselves
    return same or fnmatchcase(one.name, other.name) or fnmatchcase(other.name, one.name)


def list_files(work: Path, declared: Iterable[Path]) -> list[Path]:
    """List the existing files that match paths or patterns, relative to the folder ``work``.

    Paths and patterns are those of `Step`.
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
        words: the arguments before the options.
        given: the options by name. The value of an option with several values is a list. That of an
            option that is repeated is a list of lists, one for each time. True stands for an option
            without a value. False, None and an empty list leave the option out.
    """
    more = [word for name, value in given.items() for word in _write_option(name, value)]
    return Step((tuple(map(str, [*program.split(), *words, *more])),))


def run_module(module: str, *words: object, **given: Any) -> Step:
    """Make the step that runs a module of this package, with the Python of the recipe.

    Args:
        module: the name of the module.
        words: the arguments before the options.
        given: the options by name, as in `command`.
    """
    return command(" ".join([*OWN, f"{__package__}.{module}"]), *words, **given)


def is_own(words: Sequence[str]) -> bool:
    """Tell whether a command, given as its words, runs a module of this package."""
    module = words[2] if len(words) > 2 else ""
    return tuple(words[:2]) == OWN and module.startswith(f"{__package__}.")


def _write_option(name: str, value: Any) -> list[str]:
    if isinstance(value, list) and value:
        several = value if isinstance(value[0], list) else [value]
        return [str(word) for values in several for word in (flag(name), *values)]
    return [] if value is None or value == [] else [*options({name: value})]


def read_pipeline(text: str, source: Path, output: Path) -> Step:
    """Make the step of a shell-like pipeline, such as ``kytea -out tok | sed s/x/y/``.

    `DataError`: the text is no pipeline, see `split_commands`.
    """
    return Step(tuple(split_commands(text)), source).declare(reads=[source]).into(output)


def split_words(text: str) -> list[str]:
    """Split a command line into its words as a shell does; `DataError` if a quote is open."""
    return [word for command in split_commands(text, pipes=False) for word in command]


def read_options(text: str) -> dict[str, str]:
    """Return the options in a command line and their values, ``""`` for an option without one."""
    words = split_words(text)
    parts = [part for word in words for part in word.split("=", 1 if word[:1] == "-" else 0)]
    pairs = pairwise([*parts, "-"])
    return {a: "" if b.startswith("-") else b for a, b in pairs if a.startswith("-")}


def split_commands(text: str, pipes: bool = True) -> list[tuple[str, ...]]:
    """Split a pipeline into commands, and each command into words.

    `DataError`: a quote is not closed, or a command is missing beside a ``|``.
    """
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
    """Yield command-line options for settings: ``--name value``, or ``--name`` alone for True.

    False yields nothing.
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
    """Return a value as text in hydra's syntax for ``NAME=VALUE``."""
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
