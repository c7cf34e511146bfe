import signal
import subprocess
import sys

import pytest

PROGRAM = """\
import sys
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.patches.one_line import mend

mend()
class ProcessRaisedException(Exception): pass
raise {error}
"""
SPAWNED = (
    "ProcessRaisedException('\\n-- Process 0 terminated\\nTraceback (most recent call last):\\n"
    "syncattn_fairseq.base.errors.DataError: no heads\\n')"
)


@pytest.mark.parametrize(
    ("name", "error", "line"),
    [
        ("fairseq-train", "DataError('no heads')", "error: no heads\n"),
        ("fairseq_cli/train.py", "DataError('no heads')", "error: no heads\n"),
        ("fairseq-train", "KeyboardInterrupt", "error: interrupted\n"),
        ("fairseq-train", SPAWNED, "error: no heads\n"),
        ("fairseq-train", "ProcessRaisedException('other')", None),
        ("fairseq-train", "ValueError('other')", None),
        ("fairseq-train", "FileNotFoundError('no data')", "error: no data\n"),
        ("fairseq-train", "PermissionError(13, 'No', 'dict.txt')", "error: dict.txt: No\n"),
        ("fairseq-train", "OSError('other')", None),
        ("fairseq-generate", "AssertionError('--a requires --b')", "error: --a requires --b\n"),
        ("fairseq-generate", "AssertionError('a bug')", None),
        (
            "fairseq-train",
            "ValueError('Cannot register duplicate model (x)')",
            "error: Cannot register duplicate model (x): choose another name\n",
        ),
        ("mine.py", "DataError('no heads')", None),
    ],
)
def test_one_line_in_fairseqs_commands(tmp_path, name, error, line):
    program = tmp_path / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(PROGRAM.format(error=error))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == (-signal.SIGINT if error == "KeyboardInterrupt" else 1)
    assert done.stderr == line if line else done.stderr.startswith("Traceback")
