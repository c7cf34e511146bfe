"""Measure how long and how much memory each command takes for ``--help``.

Prints medians of several starts. Python alone is measured twice: the two rows show the noise.
Usage: ``python benchmarks/start.py``.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The module of each command, from the entry points of both distributions.
COMMANDS = dict(
    re.findall(
        r'^(syncattn-\w+) = "(.+):main"$',
        "".join((ROOT / folder / "pyproject.toml").read_text() for folder in ("", "lab")),
        re.MULTILINE,
    )
)


def run(words: list[str], folder: Path = ROOT) -> resource.struct_rusage:
    """Run a command in a folder; return its resource usage, or exit with its last errors."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(f"{' '.join(words)}: {errors.read().decode(errors='replace')[-2000:]}")
    return used


def megabytes(used: resource.struct_rusage) -> float:
    """Return the peak memory of the largest process."""
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def start(*arguments: str) -> tuple[float, float]:
    """Run Python with these arguments; return elapsed seconds and peak memory in MB."""
    began = time.monotonic()
    used = run([sys.executable, *arguments])
    return time.monotonic() - began, megabytes(used)


def main() -> None:
    """Measure ``--help`` of each command, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    programs = {"python": ["-c", "pass"], "python again": ["-c", "pass"]}
    programs |= {
        name: ["-c", f"from {module} import main; main()", "--help"]
        for name, module in COMMANDS.items()
    }
    print(f"{'command':<22} {'seconds':>8} {'MB':>5}")
    for name, arguments in programs.items():
        seconds, size = zip(*(start(*arguments) for _ in range(args.rounds)), strict=True)
        print(f"{name:<22} {statistics.median(seconds):8.2f} {statistics.median(size):5.0f}")


if __name__ == "__main__":
    main()
