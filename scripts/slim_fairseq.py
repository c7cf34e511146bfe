"""Unpack fairseq's source archive without the parts that translation never uses.

Three torch C++ extensions take most of the build and tie the wheel to one torch version;
torchaudio is declared but imported for speech only. The Cython extensions stay.

Usage: slim_fairseq.py ARCHIVE FOLDER    (prints the folder to build)
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path


def slim(setup: str) -> str:
    """Return the text of fairseq's ``setup.py`` less its torch extensions and torchaudio.

    Raises:
        ValueError: the text is not the one this was written for.
    """
    setup = _cut(setup, "extensions.extend(", until="cmdclass = {")
    setup = _cut(setup, '            "torchaudio>=0.8.0",\n')
    if "CppExtension" in setup or "CUDAExtension" in setup:
        raise ValueError("setup.py still has torch extensions")
    return setup


def _cut(text: str, first: str, until: str | None = None) -> str:
    start = text.find(first)
    end = start + len(first) if until is None else text.find(until, start)
    if start < 0 or end < 0:
        raise ValueError(f"setup.py has no {first if start < 0 else until!r}")
    return text[:start] + text[end:]


def main(archive: str, folder: str) -> None:
    """Unpack ``archive`` into ``folder``, change its setup.py and print where it is."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    [setup] = Path(folder).glob("*/setup.py")
    setup.write_text(slim(setup.read_text(encoding="utf-8")), encoding="utf-8")
    print(setup.parent)


if __name__ == "__main__":
    main(*sys.argv[1:])
