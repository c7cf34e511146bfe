"""What the commands share."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from syncattn_fairseq.cli import align, bpe, multitask, parse, score
from syncattn_fairseq.cli.common import check_outputs, command

TWICE = "two outputs have this name; give each a name of its own"


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        (bpe, "apply --model m --input a b --output o ./o"),
        (multitask, "tag --input a b --output o link"),
        (multitask, "mix --source a --target b --heads h --output o o"),
        (parse, "--input a --output o --labels o --lang en"),
        (parse, "--input a --output h --labels o --conllu o --parsed a --format conllu"),
        (align, "--forward s a --output s forward o --output s forward o"),
        (align, "--forward s a --output s forward o --json o"),
        (score, "--system s a --references b --json o --latex o"),
        (score, "--system s a --references b --text link --json o"),
    ],
)
def test_one_name_for_two_outputs_is_refused_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: object,
    argv: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "h", "o"):
        Path(name).write_text("1\n")
    Path("link").symlink_to("o")
    assert command.main(argv.split()) == 1  # type: ignore[attr-defined]
    assert capsys.readouterr().err == f"error: {tmp_path}/o: {TWICE}\n"
    assert Path("o").read_text() == "1\n" and len(list(tmp_path.iterdir())) == 5


def test_what_is_thrown_away_may_be_thrown_away_twice() -> None:
    check_outputs("/dev/null", Path("/dev/null"), None, None, "-", "-")


def run(code: str, *options: str) -> subprocess.Popen[str]:
    imports = "import sys, time\nfrom syncattn_fairseq.cli.common import command\n"
    return subprocess.Popen(
        [sys.executable, *options, "-c", f"{imports}{code}\nsys.exit(main())"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run that was started in the background hands on that it is not to be interrupted.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def test_an_interruption_is_one_line() -> None:
    process = run(
        "@command\ndef main(argv=None):\n    print('ready', flush=True)\n    time.sleep(60)\n"
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "error: interrupted\n"
    assert process.returncode == 130


@pytest.mark.parametrize(("options", "shown"), [([], ["ours"]), (["-Wdefault"], ["ours", "other"])])
def test_warnings_of_other_libraries_are_not_shown(options: list[str], shown: list[str]) -> None:
    warn = "warnings.warn_explicit"
    process = run(
        "import warnings\n@command\ndef main(argv=None):\n"
        f"    {warn}('ours', UserWarning, 'f.py', 1, 'syncattn_fairseq.data.parses')\n"
        f"    {warn}('other', UserWarning, 'f.py', 2, 'torch.nn.functional')\n",
        *options,
    )
    told = process.communicate(timeout=60)[1].splitlines()
    assert [line.split()[-1] for line in told] == shown and process.returncode == 0


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileNotFoundError("data-bin"), "data-bin: no such file or folder"),
        (FileExistsError("dict.en.txt"), "dict.en.txt: exists already"),
        (FileNotFoundError(2, "Not there", "f"), "[Errno 2] Not there: 'f'"),
        (OSError(), "OSError"),
    ],
)
def test_every_error_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], error: OSError, told: str
) -> None:
    @command
    def main(argv: Sequence[str] | None) -> None:
        raise error

    assert main() == 1
    assert capsys.readouterr().err == f"error: {told}\n"


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_closed_output_is_no_traceback(lines: int) -> None:
    process = run(
        "@command\ndef main(argv=None):\n    time.sleep(0.5)\n"
        f"    for _ in range({lines}):\n        print('a line')\n"
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 1


@pytest.mark.parametrize("value", ["0", "-5", "1_0", "1000000000000", "9" * 5000, "x", "1.5"])
def test_numbers_out_of_range_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, value: str
) -> None:
    with pytest.raises(SystemExit):
        bpe.main(["learn", f"--vocab-size={value}", f"--model={tmp_path}/m", "--input", "x"])
    error = capsys.readouterr().err
    assert "--vocab-size: " in error and "Traceback" not in error and len(error) < 1000
