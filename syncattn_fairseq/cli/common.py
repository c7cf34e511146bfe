"""Shared error handling and arguments of the commands.

A command starts in a tenth of a second: its module imports only what its arguments need, and the
functions that do the work import the rest.
"""

from __future__ import annotations

import argparse
import errno
import functools
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from .. import __version__
from ..base.errors import DataError, describe, describe_lack_of_memory, printable
from ..base.extras import describe_missing
from ..base.files import replacing
from ..base.inputs import keeping_pipes
from ..base.numbers import read_decimal, read_whole
from ..base.text import is_encodable
from ..data.words import SCHEMES, is_scheme
from ..patches.fairseq_version import MISSING
from .command_line import CommandLine, claiming_outputs

if TYPE_CHECKING:
    from ..data.segmenters import SubwordModel
    from ..inference import Model

#: The purpose of ``--user-dir`` in commands that load models.
OF_MODEL = (
    "needed if the model was trained with it; a plugin that only the model names is not imported"
)

T = TypeVar("T")

#: Seconds after which a signal that was lost comes again.
_AGAIN = 1.0
#: What a terminal shows in colour: a cross and what follows it, and verdicts in tables.
_COLOURED = re.compile(r"✗ .*$|(?<=  )(?:better|worse)(?= *$|  )", re.MULTILINE)

#: A pattern of the modules outside this package.
OTHERS = r"(?!syncattn_fairseq\b|__main__$)"


def command(run: Callable[[Sequence[str] | None], None]) -> Callable[..., int]:
    """Make a function a command's entry point that reports an error by a line and an exit status.

    Bad input gives one line on standard error and status 1. An interruption gives one line and
    status 130. If the reader of the output has gone, the command just ends. Warnings of other
    libraries are hidden unless Python is told to show them (``-W``). Pipes can be read more than
    once.
    """

    @functools.wraps(run)
    def main(argv: Sequence[str] | None = None) -> int:
        try:
            _open_closed_streams()
            _check_words(sys.argv[1:] if argv is None else argv)
            with warnings.catch_warnings(), keeping_pipes(), _ending_in_order(), claiming_outputs():
                if not sys.warnoptions:
                    warnings.filterwarnings("ignore", module=OTHERS)
                run(argv)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python would try to write the rest at exit, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # the second one ends us at once
            print("error: interrupted", file=sys.stderr)
            return 130
        except (DataError, OSError) as error:
            print(f"error: {printable(_describe(error))}", file=sys.stderr)
            return 1
        except (MemoryError, RuntimeError) as error:
            if (lack := describe_lack_of_memory(error)) is None:
                raise
            print(f"error: {printable(lack)}", file=sys.stderr)
            return 1
        except ImportError as error:
            # The plugin says what is wrong; other modules that import these libraries do not.
            line: object = error
            if isinstance(error, ModuleNotFoundError):
                if error.name in ("fairseq", "fairseq_cli"):
                    line = MISSING
                elif error.name in ("torch", "omegaconf"):
                    line = describe_missing("train", error.name)
                else:
                    raise
            elif error.name not in ("fairseq", "omegaconf", "starlette", "torch", "uvicorn"):
                raise
            print(f"error: {line}", file=sys.stderr)
            return 1
        return 0

    return main


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Within the block, SIGTERM and SIGINT leave nothing half-written behind, as errors do not.

    Python ignores errors in some places, such as the end of an object or of an import: there, a
    signal would be lost. So it comes again until it ends what is done.
    """
    usual: dict[int, Any] = {
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGINT: signal.default_int_handler,
    }
    taken = [number for number, handler in usual.items() if signal.getsignal(number) is handler]
    if not taken or current_thread() != main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    received: list[int] = []

    def end(number: int, frame: object) -> None:
        received.append(number)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
        raise _make_end(number)

    def end_again(number: int, frame: object) -> None:
        if not _is_ending(sys.exc_info()[1]):
            raise _make_end(received[-1])

    alarm = signal.signal(signal.SIGALRM, end_again)
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        for number in taken:
            signal.signal(number, usual[number])


def _make_end(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def _is_ending(error: BaseException | None) -> bool:
    """Return whether an error, or an earlier error in the context, ends the program."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return True
        error = error.__context__
    return False


def _open_closed_streams() -> None:
    """Open replacements for closed standard streams (``>&-``); a closed output is an error.

    Python has None for them, and the next file to be opened would get their number.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        # Reading from this fails, as from a closed stream.
        stream = os.fdopen(os.open(os.devnull, os.O_WRONLY), "r" if name == "stdin" else "w")
        setattr(sys, name, stream)
    if "stdout" in closed:
        raise DataError("standard output is closed; to throw it away, write >/dev/null")


def _check_words(words: Sequence[str]) -> None:
    for word in words:
        if not is_encodable(word):
            raise DataError(f"argument {word!r}: not UTF-8; if it is a file, rename it")


def _describe(error: Exception) -> str:
    """Describe an error, even if a library has raised the error with nothing but a path."""
    if len(error.args) == 1 and isinstance(error, FileNotFoundError):
        return f"{error}: no such file or folder"
    if len(error.args) == 1 and isinstance(error, FileExistsError):
        return f"{error}: exists already"
    if isinstance(error, OSError) and error.errno == errno.EBADF and error.filename is None:
        return "standard input is closed"
    return (describe(error) if isinstance(error, OSError) else str(error)) or type(error).__name__


class _HelpFormatter(argparse.HelpFormatter):
    """Fills each paragraph separately, keeps the example, and names numbers N and paths FILE."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        parts = text.split("\n\n")
        return "\n\n".join(p if p.startswith("example:") else fill(p, width, indent) for p in parts)

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        named = {positive: "N", Path: "FILE"}.get(action.type)
        return named or super()._get_default_metavar_for_optional(action)


def new_parser(name: str, description: str, example: str, epilog: str = "") -> CommandLine:
    """Make the parser of a command's arguments, with ``--help`` and ``--version``.

    Args:
        name: the name of the command.
        description: the description in the help.
        example: an example call.
        epilog: a text at the end of the help.
    """
    parser = CommandLine(prog=name, **_texts(description, example, epilog))
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def add_command(commands: Any, name: str, about: str, example: str) -> CommandLine:
    """Add a subcommand to a command, and return the parser of the subcommand's arguments.

    Args:
        commands: the subcommands of a parser, from ``add_subparsers``.
        name: the name of the subcommand.
        about: the description; the list of subcommands shows its first sentence.
        example: an example call.
    """
    first = about.partition(". ")[0].rstrip(".")
    help = first[0].lower() + first[1:]
    parser: CommandLine = commands.add_parser(name, help=help, **_texts(about, example))
    return parser


def _texts(description: str, example: str, epilog: str = "") -> dict[str, Any]:
    closing = "example:\n  " + example.replace("\n", "\n      ")
    return {
        "description": description,
        "epilog": f"{epilog}\n\n{closing}" if epilog else closing,
        "formatter_class": _HelpFormatter,
    }


def publish(numbers: Any, table: str, json_file: str | None) -> None:
    """Print a table, and write numbers to a JSON file; print only the JSON if the file is ``-``."""
    document = json.dumps(numbers, indent=2, ensure_ascii=False) + "\n"
    if json_file == "-":
        sys.stdout.write(document)
        return
    if json_file:
        with replacing(Path(json_file)) as temporary:
            temporary.write_text(document, encoding="utf-8")
        announce(json_file, "all numbers", sys.stderr)
    if table:
        print(colour(table))


def colour(text: str) -> str:
    """Return a text with wrong heads (✗), "better" and "worse" coloured for a terminal.

    Nothing is coloured if standard output is no terminal or a dumb one, or if NO_COLOR is set.
    """
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return _COLOURED.sub(lambda m: f"\x1b[{34 if m[0] == 'better' else 33}m{m[0]}\x1b[0m", text)


def announce(path: str | Path, contents: str, file: TextIO | None = None) -> None:
    """Print what a new file contains, unless the file is a device such as /dev/stdout."""
    if Path("/dev") not in Path(path).parents:
        print(f"{path}: {contents}", file=file)


def add_texts(parser: CommandLine) -> None:
    """Add ``--input`` and ``--output`` to a command that rewrites texts line by line."""
    parser.add_argument(
        "--input",
        nargs="+",
        type=Path,
        help="texts to read, one sentence on each line (default: standard input)",
    )
    parser.add_argument(
        "--output",
        nargs="+",
        type=Path,
        help="files to write, one for each file in --input (default: standard output)",
    )
    parser.name_files(inputs=["input"], outputs=["output"])


def add_subword_marks(parser: Any, default: str = "detected in the text") -> None:
    """Add ``--subword-marks``, which says how subwords are marked in a text."""
    parser.add_argument(
        "--subword-marks",
        type=_scheme,
        metavar=f"{{{','.join(SCHEMES)},raw:SPLITTER}}",
        help="how subwords are marked in the text: by a final @@ (subword_nmt), by an initial "
        "U+2581 (sentencepiece), or not at all (none); raw:SPLITTER for subwords of untokenised "
        f"sentences, whose words a splitter such as uax29 finds (default: {default})",
    )


def _scheme(value: str) -> str:
    if not is_scheme(value):
        raise argparse.ArgumentTypeError(f"give {', '.join(SCHEMES)} or raw:SPLITTER, not {value}")
    return value


def add_user_dir(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--user-dir``, the folder of a plugin to import; ``what`` ends the option's help."""
    parser.add_argument(
        "--user-dir",
        type=Path,
        metavar="DIR",
        help=f"folder of your own plugin for fairseq; {what}",
    )


def add_model_files(parser: CommandLine) -> None:
    """Add the options for a model's dictionaries, subword models, source parser and plugin."""
    parser.add_argument(
        "--data-bin",
        metavar="DIR",
        help="folder of the binarised corpus, with the model's dictionaries (default: the "
        "checkpoint's folder if it has them, else the data folder that the model was trained on)",
    )
    add_subwords(parser, "default: the subword model beside the model, or in --data-bin")
    parser.add_argument(
        "--source-parser",
        metavar="PARSER",
        help="for models that read the source's parse: parser of the source, such as stanza:en",
    )
    add_user_dir(parser, OF_MODEL)


def add_tokenised(parser: CommandLine) -> None:
    """Add ``--tokenised``, for input and output in words separated by spaces."""
    parser.add_argument(
        "--tokenised",
        action="store_true",
        help="read and write words separated by spaces, tokenised like the training text, and "
        "not sentences as people write them (always so if neither the checkpoint nor its data "
        "record how the text was prepared)",
    )


def add_subwords(parser: CommandLine, note: str) -> None:
    """Add the options for subword models; ``note`` is the end of the help of ``--subwords``."""
    parser.add_argument(
        "--subwords",
        nargs="+",
        metavar="FILE",
        help="subword model of sentencepiece or subword-nmt; two files, of source and target, if "
        f"each has its own ({note})",
    )
    parser.add_argument(
        "--vocabulary",
        nargs="+",
        metavar="FILE",
        help="with --subwords from subword-nmt: vocabulary that the training text was split with "
        "(subword-nmt's --vocabulary); two files, of source and target, if each has its own",
    )
    parser.add_argument(
        "--vocabulary-threshold",
        type=positive,
        default=1,
        help="with --vocabulary: subwords that occur less than N times in it are split further, "
        "as by subword-nmt's --vocabulary-threshold (default: 1)",
    )
    parser.name_files(files=["subwords", "vocabulary"])


def read_subwords(args: argparse.Namespace) -> list[SubwordModel] | None:
    """Return the subword models named by the options of `add_subwords`; None if none is named."""
    from ..data.segmenters import SubwordModel, pair_subwords

    pair, vocabularies = pair_subwords(args.subwords), args.vocabulary
    if pair is None or vocabularies is None:
        if vocabularies:
            raise DataError("--vocabulary: give the codes of subword-nmt, too: --subwords CODES")
        return pair and [*pair]
    if len(vocabularies) > len(pair):
        raise DataError(
            f"--vocabulary: {len(vocabularies)} files given; give one, or one for the source and "
            "one for the target"
        )
    threshold = args.vocabulary_threshold
    paths = zip(pair, (vocabularies[0], vocabularies[-1]), strict=True)
    return [SubwordModel(model.path, Path(path), threshold) for model, path in paths]


def warn_of_unknown(model: Model) -> None:
    """Warn on standard error if texts had subwords unknown to the model."""
    for segmenter in (model.source_segmenter, model.target_segmenter):
        if warning := segmenter.describe_unknown():
            print(f"warning: {warning}", file=sys.stderr)


def progress(lines: Iterable[T], unit: str = "sentences", total: int | None = None) -> Iterator[T]:
    """Yield lines, with a progress bar that counts the lines if standard error is a terminal."""
    from tqdm import tqdm

    return iter(tqdm(lines, total=total, unit=f" {unit}", unit_scale=True, disable=None))


def rewrite_texts(args: argparse.Namespace, lines: Callable[[Path | int], Iterator[str]]) -> None:
    """Rewrite the input files of a command, whose arguments `add_texts` added, line by line.

    ``lines`` yields the new lines, with line ends, of a file, or of standard input for 0. All
    outputs appear at the end, or none. `DataError`: the numbers of inputs and outputs differ.
    """
    inputs = args.input or [0]
    if args.output is None:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        for source in inputs:
            sys.stdout.writelines(lines(source))
        return
    if len(inputs) != len(args.output):
        raise DataError(
            f"{len(inputs)} inputs, but {len(args.output)} outputs; give one output for each input"
        )
    counts = [0 for _ in inputs]
    with ExitStack() as stack:
        paths = [stack.enter_context(replacing(output)) for output in args.output]
        for number, (source, path) in enumerate(zip(inputs, paths, strict=True)):
            with path.open("w", encoding="utf-8") as file:
                for line in lines(source):
                    file.write(line)
                    counts[number] += 1
    for output, count in zip(args.output, counts, strict=True):
        announce(output, f"{count} lines")


def fraction(value: str) -> float:
    """Read a number from 0 to 1."""
    number = float(value)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{value} is not between 0 and 1")
    return number


def positive(value: str) -> int:
    """Read a whole number, at least 1, of at most nine digits."""
    try:
        number = read_whole(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def number(value: str) -> float:
    """Read a finite number."""
    try:
        return read_decimal(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
