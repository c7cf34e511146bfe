import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

import pytest

from syncattn_fairseq.cli import bpe
from syncattn_fairseq.cli.common import colour, command


def program(*lines: str, before: str = "") -> list[str]:
    """Return the words that run a command of these lines."""
    head = ["import os, sys, time", "from syncattn_fairseq.cli.common import command", before]
    body = ["@command", "def main(argv=None):", *(f"    {line}" for line in lines)]
    return [sys.executable, "-c", "\n".join([*head, *body, "sys.exit(main())"])]


def start(*lines: str, before: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        program(*lines, before=before),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run that was started in the background hands on that it is not to be interrupted.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def test_an_interruption_is_one_line():
    process = start("print('ready', flush=True)", "time.sleep(60)")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "error: interrupted\n"
    assert process.returncode == 130


#: A loop in which the first signal comes while Python ignores errors.
LOST = (
    "class Ending:",
    "    def __del__(self):",
    "        os.kill(os.getpid(), {number})",
    "        time.sleep(0.05)",
    "Ending()",
    "print('lost', flush=True)",
    "try:",
    "    time.sleep(60)",
    "finally:",
    "    time.sleep(0.5)  # nothing comes again meanwhile",
    "    print('tidy', flush=True)",
)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_python_ignores_comes_again(number, status):
    lines = [line.format(number=int(number)) for line in LOST]
    before = "import signal\nfrom syncattn_fairseq.cli import common\ncommon._AGAIN = 0.2"
    process = start(*lines, before=before)
    out, _ = process.communicate(timeout=60)
    assert out == "lost\ntidy\n"
    assert process.returncode == status


def test_being_terminated_leaves_nothing_half_written(tmp_path):
    process = start(
        f"with replacing(Path({str(tmp_path / 'out')!r})):",
        "    print('ready', flush=True); time.sleep(60)",
        before="from pathlib import Path\nfrom syncattn_fairseq.base.files import replacing",
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.terminate()
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 143
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("warnings", "shown"), [("", ["ours"]), ("default", ["ours", "other"])])
def test_warnings_of_other_libraries_are_not_shown(monkeypatch, warnings, shown):
    monkeypatch.setenv("PYTHONWARNINGS", warnings)
    process = start(
        "warn('ours', UserWarning, 'f.py', 1, 'syncattn_fairseq.data.parses')",
        "warn('other', UserWarning, 'f.py', 2, 'torch.nn.functional')",
        before="from warnings import warn_explicit as warn",
    )
    told = process.communicate(timeout=60)[1].splitlines()
    assert [line.split()[-1] for line in told] == shown and process.returncode == 0


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileNotFoundError("data-bin"), "data-bin: no such file or folder"),
        (FileExistsError("dict.en.txt"), "dict.en.txt: exists already"),
        (OSError(9, "Bad file descriptor"), "standard input is closed"),
        (FileNotFoundError(2, "Not there", "f"), "f: Not there"),
        (OSError("of a library"), "of a library"),
        (OSError(), "OSError"),
    ],
)
def test_every_error_says_what_is_wrong(capsys, error, told):
    @command
    def main(argv: Sequence[str] | None) -> None:
        raise error

    assert main() == 1
    assert capsys.readouterr().err == f"error: {told}\n"


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_closed_output_is_no_traceback(lines):
    process = start("time.sleep(0.5)", f"for _ in range({lines}):", "    print('a line')")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 1


PRINTS = program("print('a line ' * 9999)")
READS = program("print(*text.read_lines(0))", before="from syncattn_fairseq.base import text")


@pytest.mark.parametrize(
    ("closed", "words", "told", "status"),
    [
        (">&-", PRINTS, "standard output is closed; to throw it away, write >/dev/null", 1),
        (">/dev/full", PRINTS, "No space left on device", 1),
        ("<&-", READS, "standard input is closed", 1),
        ("<&-", PRINTS, "", 0),
        ("2>&-", PRINTS, "", 0),
        ("2>&-", program("raise OSError('x')"), "", 1),
        ("<&- >&- 2>&-", PRINTS, "", 1),
    ],
)
def test_a_closed_standard_stream_is_no_traceback(closed, words, told, status):
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *words]
    done = subprocess.run(shell, capture_output=True, text=True, input="")
    assert (done.stderr, done.returncode) == (told and f"error: {told}\n", status)
    assert done.stdout == ("a line " * 9999 + "\n" if status == 0 else "")


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path):
    """Otherwise what libraries write to standard error would be in it."""
    words = program("with open(sys.argv[1], 'w') as file:", "    os.write(2, b'said')")
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words, tmp_path / "file"]
    assert subprocess.run(shell).returncode == 0
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.parametrize("bytes_", [b"\xff", b"caf\xe9.txt"])
def test_an_argument_that_is_not_utf_8_is_one_line(capsys, bytes_):
    word = os.fsdecode(bytes_)
    assert bpe.main(["apply", "--model", word]) == 1
    error = capsys.readouterr().err
    assert error == f"error: argument {word!r}: not UTF-8; if it is a file, rename it\n"


@pytest.mark.parametrize("value", ["0", "-5", "1_0", "1000000000000", "9" * 5000, "x", "1.5"])
def test_numbers_out_of_range_are_refused(capsys, tmp_path, value):
    with pytest.raises(SystemExit):
        bpe.main(["learn", f"--vocab-size={value}", f"--model={tmp_path}/m", "--input", "x"])
    error = capsys.readouterr().err
    assert "--vocab-size: " in error and "Traceback" not in error and len(error) < 1000


def test_a_terminal_that_wants_it_gets_colours(monkeypatch, capsys):
    table = "a  ✗ b\nx  0.1   better  c\nbetter than  worse\n"
    assert colour(table) == table, "no terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "")
    assert colour(table) == (
        "a  \x1b[33m✗ b\x1b[0m\n"
        "x  0.1   \x1b[34mbetter\x1b[0m  c\nbetter than  \x1b[33mworse\x1b[0m\n"
    )
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert colour(table) == table
