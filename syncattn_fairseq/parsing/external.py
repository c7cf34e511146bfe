"""Parsers that are commands: sentences on standard input, parses on standard output."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import IO

from ..base.errors import BadParse, DataError
from .formats import FORMATS
from .parsed_file import STOPPED, parses_of
from .parser import Parse, Parser, Sentences, parse_in_halves

# The most of what a failed command said that fits into a line.
_SAID = 200

KYTEA = "KyTea, http://www.phontron.com/kytea/"
EDA = "EDA, http://plata.ar.media.kyoto-u.ac.jp/tool/EDA/"


@dataclass(frozen=True)
class Command:
    """A parser that reads sentences and writes parses.

    Args:
        command: of the shell. Reads one sentence per line, with a space between words; the same
            order comes out.
        output_format: what it writes, see :data:`.formats.FORMATS`.
        programs: what the command needs, and where to get it.
        models: files that the parses depend on.
    """

    command: str
    output_format: str
    programs: tuple[tuple[str, str], ...] = ()
    models: tuple[str, ...] = ()

    @classmethod
    def of_user(cls, command: str, output_format: str) -> Command:
        """Take a command as it is: its first word is a program, others may be names of files.

        Raises:
            DataError: quotes that do not end.
        """
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise DataError(f"--command {command!r}: {error}") from None
        files = tuple(word for word in words[1:] if Path(word).is_file())
        return cls(command, output_format, tuple((name, "") for name in words[:1]), files)

    @classmethod
    def eda(cls, model: str) -> Command:
        """EDA (Flannery et al., 2012) for Japanese, on KyTea's words with KyTea's tags.

        Args:
            model: of EDA.
        """
        command = f"kytea -in tok | eda -i kytea -o conll -m {shlex.quote(model)}"
        programs = (("kytea", f"install {KYTEA}"), ("eda", f"install {EDA}"))
        return cls(command, "eda-conll", programs, (model,))

    def files(self) -> list[Path]:
        """Return every file that the parses are known to depend on.

        Raises:
            DataError: a program is not installed.
        """
        found = []
        for program, advice in self.programs:
            path = shutil.which(program)
            if path is None:
                raise DataError(
                    f"{program}: no such program; {advice or 'install it, or mend PATH'}"
                )
            found.append(Path(path))
        return [*found, *map(Path, self.models)]

    def describe(self) -> dict[str, str]:
        """Return what else the parses depend on."""
        return {"parser": self.command, "format": self.output_format}

    def modules(self) -> list[str]:
        """Return what is slow to import: nothing."""
        return []

    def open(self, worker: int) -> Parser:
        """Make the parser for one of several processes."""
        return ExternalParser(self)


class ExternalParser(Parser):
    """Sends sentences through a command; again, without those before it, where it breaks off.

    Words hold no white space.

    Args:
        command: what is started for all sentences of a call.
    """

    def __init__(self, command: Command) -> None:
        self.command = command

    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """See ``Parser``."""
        return parse_in_halves(self._parse, sentences, [range(len(sentences))])

    def _parse(self, sentences: Sentences) -> Iterator[Parse | BadParse]:
        lines = [" ".join(words) for words in sentences]
        with TemporaryFile() as said:
            process = subprocess.Popen(
                self.command.command,
                shell=True,
                start_new_session=True,  # the shell, and what the shell has started
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
            )
            assert process.stdin is not None and process.stdout is not None
            writer = Thread(target=_write, args=(lines, process.stdin), daemon=True)
            writer.start()
            try:
                yield from self._read(lines, process.stdout)
            except (DataError, _BrokenOffError) as error:
                process.stdout.read()  # or else it may wait for us
                if isinstance(error, DataError) and process.wait() == 0:
                    raise
                raise RuntimeError(_ending(process, said)) from None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                writer.join()
                process.stdout.close()

    def _read(self, lines: list[str], output: IO[bytes]) -> Iterator[Parse | BadParse]:
        text = (line.decode(errors="replace").rstrip("\n") for line in output)
        analyses = FORMATS[self.command.output_format](text, "output of the parser")
        for parse, reason in parses_of(lines, analyses, "output of the parser"):
            if reason == STOPPED:
                raise _BrokenOffError
            yield parse if parse is not None else BadParse(reason or "", reason or "")


class _BrokenOffError(Exception):
    """The command has written less than it was asked for."""


def _write(lines: list[str], stream: IO[bytes]) -> None:
    try:
        with stream:
            for line in lines:
                stream.write(f"{line}\n".encode())
    except BrokenPipeError:
        pass  # the reader finds out why


def _ending(process: subprocess.Popen[bytes], said: IO[bytes]) -> str:
    status = process.wait()
    said.seek(0)
    last = said.read().decode(errors="replace").strip().split("\n")[-1][-_SAID:]
    return f"the command stopped before the end, with status {status}" + (last and f": {last}")
