"""Two processes train every system as one does, although one of them has no parses and no links."""

import subprocess
import sys
from pathlib import Path


def test_two_processes_train_every_system_as_one_does(tmp_path):
    both = subprocess.run(
        [sys.executable, "-m", "tests.one_of_two_processes", str(tmp_path / "meeting")],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert both.returncode == 0, both.stderr[-2000:]
    assert both.stdout.strip() == "", f"differs from one process: {both.stdout}"
