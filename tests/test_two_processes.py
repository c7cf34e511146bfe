"""Two processes train every system as one does, although one of them has no parses."""

import subprocess
import sys
from pathlib import Path


def test_two_processes_train_every_system_as_one_does(tmp_path):
    command = [sys.executable, "-m", "tests.one_of_two_processes"]
    both = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "meeting")],
            cwd=Path(__file__).parents[1],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in both:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-2000:]
        assert output.strip() == "", f"differs from one process: {output}"
