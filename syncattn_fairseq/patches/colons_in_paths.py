"""Treat a path with a colon as a single path if the file exists.

Fault: all versions take ``run 03:10`` for two paths, of an ensemble or of data in parts.
Test: ``test_small_patches.py``.
"""

import os
from typing import Any

from .wrapping import wrap


def mend() -> None:
    """Make fairseq keep colons in the name of an existing file or folder."""
    from fairseq import utils

    @wrap(utils, "split_paths")
    def split_between(split: Any, paths: str, *args: Any, **kwargs: Any) -> list[str]:
        return _join_existing(split(paths, *args, **kwargs))


def _join_existing(parts: list[str]) -> list[str]:
    """Join neighbouring parts that together name an existing file, as many parts as possible."""
    joined = []
    while parts:
        ends = range(len(parts), 1, -1)
        end = next((end for end in ends if os.path.exists(os.pathsep.join(parts[:end]))), 1)
        joined.append(os.pathsep.join(parts[:end]))
        parts = parts[end:]
    return joined
