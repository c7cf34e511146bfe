"""Parsers that are shell commands: sentences on standard input, parses on standard output."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, ClassVar, Self

from ..base.errors import BadParse, DataError
from .formats import FORMATS
from .parsed_file import STOPPED, match_parses
from .parser import Parse, Parser, ParserSource, Sentences, parse_in_halves

KYTEA = "KyTea, http://www.phontron.com/kytea/"
EDA = "EDA, http://plata.ar.media.kyoto-u.ac.jp/tool/EDA/"

# How much of a failed command's output to quote.
_QUOTED = 200


@dataclass(frozen=True)
class Command(ParserSource):
    """A parser that is a shell command: it reads a sentence per line and writes parses in order.

    Words have a space between them; the output is in one of :data:`.formats.FORMATS`. It needs some
    programs, said with where to get them; models are files that the parses depend on.
    """

    about: ClassVar = "any --command"
    specs: ClassVar[tuple[str, ...]] = ("FORMAT:COMMAND",)
    options: ClassVar = {
        "command": {
            "metavar": "COMMAND",
            "help": "with --parser command: shell command that reads a sentence on each line and "
            "writes the parses in the same order, in the format of --format, such as 'udpipe "
            "--input=horizontal --tag --parse MODEL'",
        }
    }
    needs: ClassVar[tuple[str, ...]] = ("command", "format")

    command: str
    output_format: str
    programs: tuple[tuple[str, str], ...] = ()
    models: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: Namespace) -> Self:
        """Make the parser of the options ``--command`` and ``--format``."""
        return cls.from_user(options.command, options.format)

    @classmethod
    def from_spec(cls, spec: str) -> Command | None:
        """Make the parser for the ``FORMAT:COMMAND`` after ``command:``; None for other text."""
        output_format, _, command = spec.partition(":")
        if not command or output_format not in FORMATS:
            return None
        return cls.from_user(command, output_format)

    @classmethod
    def from_user(cls, command: str, output_format: str) -> Self:
        """Make the parser of a user's command.

        Its program and the files among its arguments are models: if they change, parses are stale.
        """
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise DataError(f"--command {command!r}: {error}") from None
        programs = [path for path in map(shutil.which, words[:1]) if path]
        files = [word for word in words[1:] if Path(word).is_file()]
        return cls(command, output_format, models=(*programs, *files))

    def files(self) -> list[Path]:
        """List the command's programs and models; raise `DataError` if a program is missing."""
        paths = []
        for program, advice in self.programs:
            path = shutil.which(program)
            if path is None:
                raise DataError(f"{program}: no such program; {advice}")
            paths.append(Path(path))
        return [*paths, *map(Path, self.models)]

    def describe(self) -> dict[str, str]:
        """Return the command and the format of its output."""
        return {"parser": self.command, "format": self.output_format}

    def open(self, worker: int | None = None) -> Parser:
        """Return the parser, which runs the command anew for each call."""
        return ExternalParser(self)


@dataclass(frozen=True)
class Eda(Command):
    """The parser EDA (Flannery et al., 2012) for Japanese, on words and tags of KyTea."""

    about: ClassVar = "EDA, on KyTea's tags for the words of the text"
    specs: ClassVar[tuple[str, ...]] = ("MODEL",)
    options: ClassVar = {
        "model": {"type": Path, "metavar": "FILE", "help": "with --parser eda: file of EDA's model"}
    }
    needs: ClassVar[tuple[str, ...]] = ("model",)

    @classmethod
    def from_options(cls, options: Namespace) -> Self:
        """Make the parser for EDA's model in ``--model``."""
        return cls.from_model(str(options.model.resolve()))

    @classmethod
    def from_spec(cls, spec: str) -> Command | None:
        """Make the parser for EDA's model at the path after ``eda:``; None without a path."""
        return cls.from_model(spec) if spec else None

    @classmethod
    def from_model(cls, model: str) -> Self:
        """Make the parser for the path of EDA's model."""
        command = f"kytea -in tok | eda -i kytea -o conll -m {shlex.quote(model)}"
        programs = (("kytea", f"install {KYTEA}"), ("eda", f"install {EDA}"))
        return cls(command, "eda-conll", programs, (model,))


class ExternalParser(Parser):
    """Parser that runs a shell command, and runs it again after a crash.

    Sentences with white space in a word get no parse: the command would see several words.
    """

    def __init__(self, command: Command) -> None:
        self.command = command

    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """Parse sentences with the command; after a crash, parse the rest again in halves."""
        whole = []
        for index, words in enumerate(sentences):
            if " ".join(words).split() == list(words):
                whole.append(index)
            else:
                yield index, BadParse("white space in words", "a word has white space in it")
        yield from parse_in_halves(self._parse, sentences, [whole] if whole else [])

    def _parse(self, sentences: Sentences) -> Iterator[Parse | BadParse]:
        lines = [" ".join(words) for words in sentences]
        with TemporaryFile() as errors:
            process = subprocess.Popen(
                self.command.command,
                shell=True,
                start_new_session=True,  # one group: the shell and what it starts
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            assert process.stdin is not None and process.stdout is not None
            writer = Thread(target=_write, args=(lines, process.stdin), daemon=True)
            writer.start()
            try:
                yield from self._read(lines, process.stdout)
            except (DataError, _BrokenOffError) as error:
                process.stdout.read()  # otherwise it may wait for us
                status = process.wait()
                if isinstance(error, DataError) and status == 0:
                    raise
                ending = _describe_ending(process, errors)
                if status in (126, 127):  # the shell cannot run it
                    raise DataError(
                        f"{self.command.command}: {ending}; correct the command, or install the "
                        "program that the command needs"
                    ) from None
                raise RuntimeError(ending) from None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                writer.join()
                process.stdout.close()

    def _read(self, lines: list[str], output: IO[bytes]) -> Iterator[Parse | BadParse]:
        text = (line.decode(errors="replace").rstrip("\n") for line in output)
        analyses = FORMATS[self.command.output_format](text, "output of the parser")
        for parse in match_parses(lines, analyses, "output of the parser"):
            if isinstance(parse, BadParse) and parse.reason == STOPPED:
                raise _BrokenOffError
            yield parse


class _BrokenOffError(Exception):
    """Error for a command that stopped before it had parsed every sentence."""


def _write(lines: list[str], stream: IO[bytes]) -> None:
    try:
        with stream:
            for line in lines:
                stream.write(f"{line}\n".encode())
    except BrokenPipeError:
        pass  # the reader will find out why


def _describe_ending(process: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    status = process.wait()
    errors.seek(0)
    last = errors.read().decode(errors="replace").strip().split("\n")[-1][-_QUOTED:]
    return f"the command stopped early, with status {status}" + (last and f": {last}")
