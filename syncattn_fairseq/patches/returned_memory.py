"""Keep memory between the updates of a training on a CPU.

Fault: the allocator of glibc returns large blocks to the system when they are freed. An update
allocates the same blocks again, and the system fills each page with zeros first: a fifth of the
time of small models with all versions of fairseq and PyTorch. Also, the heap has pages of 4 KiB,
although Linux gives pages of 2 MiB to a process that asks (``madvise``), which are faster.
Test: ``test_returned_memory.py``; ``python benchmarks/rivals.py`` measures what it is worth.
"""

import ctypes
import os
import resource
from pathlib import Path
from typing import Any

from .wrapping import wrap

#: Parameters of glibc's ``mallopt``, as number and value: blocks never have a mapping of their own,
#: the top of the heap is never returned, and the heap grows by 128 MiB.
SETTINGS = {"M_MMAP_MAX": (-4, 0), "M_TRIM_THRESHOLD": (-1, -1), "M_TOP_PAD": (-2, 2**27)}

#: Bytes of addresses into which the heap will grow, with huge pages; they use no memory before.
RESERVED = 2**32
_HUGE = 2**21
_MADV_HUGEPAGE = 14


def mend() -> None:
    """Make fairseq's trainer keep freed memory for the next update, unless it trains on a GPU."""
    from fairseq.trainer import Trainer

    @wrap(Trainer, "__init__")
    def make_and_set(make: Any, self: Any, cfg: Any, *args: Any, **options: Any) -> None:
        make(self, cfg, *args, **options)
        if not self.cuda:
            set_allocator()


def set_allocator() -> bool:
    """Make glibc's allocator keep freed memory; return whether the settings were applied.

    It is False without glibc, or if the user has set the allocator in the environment.
    """
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl and macOS have none
    if mallopt is None or any(mallopt(*setting) != 1 for setting in SETTINGS.values()):
        return False
    ask_for_huge_pages()
    return True


def ask_for_huge_pages() -> None:
    """Request huge pages for the memory into which the heap will grow.

    Nothing is done on a system without huge pages, or where addresses are limited.
    :data:`SETTINGS` must be set already: otherwise the heap would not be where the block was.
    """
    strict = Path("/proc/sys/vm/overcommit_memory")
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY or (
        strict.exists() and strict.read_text().strip() == "2"
    ):
        return
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    block = libc.malloc(RESERVED)
    if not block:
        return
    begin = -(-block // _HUGE) * _HUGE
    size = (block + RESERVED - begin) // _HUGE * _HUGE
    libc.madvise(begin, size, _MADV_HUGEPAGE)
    libc.free(block)
