"""Measure how long and how much memory each command takes for ``--help``.

Prints medians of several starts. Python alone is measured twice: the two rows show the noise.
Usage: ``python benchmarks/start.py``.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The module of each command, from the package's entry points.
COMMANDS = dict(
    re.findall(
        r'^(syncattn-\w+) = "(.+):main"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
)


def start(*arguments: str) -> tuple[float, float]:
    """Run Python; return seconds and MB."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)}: status {status}")
    process.returncode = 0
    size = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return time.monotonic() - began, size / 1e6


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    programs = {"python": ["-c", "pass"], "python again": ["-c", "pass"]}
    programs |= {name: ["-m", module, "--help"] for name, module in COMMANDS.items()}
    print(f"{'command':<22} {'seconds':>8} {'MB':>5}")
    for name, arguments in programs.items():
        seconds, size = zip(*(start(*arguments) for _ in range(args.rounds)), strict=True)
        print(f"{name:<22} {statistics.median(seconds):8.2f} {statistics.median(size):5.0f}")


if __name__ == "__main__":
    main()
