"""Keep memory between the updates of a training on a CPU.

Fault: the allocator of glibc returns large blocks to the system when they are freed. An update
allocates the same blocks again, and the system fills each page with zeros first: a fifth of the
time of small models with all versions of fairseq and PyTorch.
Test: ``test_returned_memory.py``; ``python benchmarks/rivals.py`` measures what it is worth.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

#: Parameters of mallopt: blocks never have a mapping of their own, the top of the heap is never
#: returned, and the heap grows by 128 MiB.
KEPT = {"M_MMAP_MAX": (-4, 0), "M_TRIM_THRESHOLD": (-1, -1), "M_TOP_PAD": (-2, 2**27)}


def keep_memory() -> None:
    """Make fairseq's trainer keep memory, unless it trains on a GPU."""
    from fairseq.trainer import Trainer

    make = Trainer.__init__

    @functools.wraps(make)
    def make_and_keep(self: Any, cfg: Any, *args: Any, **options: Any) -> None:
        make(self, cfg, *args, **options)
        if not self.cuda:
            set_allocator()

    Trainer.__init__ = make_and_keep


def set_allocator() -> bool:
    """Set glibc's allocator; return whether it is there, and the user has not set it."""
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl and macOS have none
    return mallopt is not None and all(mallopt(*setting) == 1 for setting in KEPT.values())
