import os
import platform
from pathlib import Path
from typing import Any

import pytest
from fairseq.trainer import Trainer

from syncattn_fairseq.patches import returned_memory
from tests.importing import run_program

PROGRAM = """
import ctypes, resource, sys
from syncattn_fairseq.patches.returned_memory import set_allocator

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks mapped".split()]
    _fields_ += [("rest", ctypes.c_size_t * 6)]

if sys.argv[1] == "limited":
    resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))
libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
print(set_allocator())
heaps = open("/proc/self/smaps").read().split("[heap]")[1:]
flags = [heap.partition("VmFlags:")[2].partition("\\n")[0].split() for heap in heaps]
used = sum(int(heap.partition("Rss:")[2].split()[0]) for heap in heaps)
print(any("hg" in each for each in flags), used < 2**18)
for size in (2**20, 2**28):
    before = libc.mallinfo2().mapped
    block = libc.malloc(ctypes.c_size_t(size))
    print(libc.mallinfo2().mapped - before)
    libc.free(block)
print(libc.mallinfo2().arena > 2**28)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators do this anyway")
@pytest.mark.parametrize("case", ["free", "chosen", "limited"])
def test_blocks_stay_in_a_heap_of_huge_pages(case, monkeypatch):
    """Unless the user has chosen another allocator, or addresses are limited."""
    for name in [name for name in os.environ if "MALLOC" in name]:
        monkeypatch.delenv(name)
    chosen = {"MALLOC_ARENA_MAX": "1"} if case == "chosen" else {}
    done = run_program(PROGRAM, case, **chosen)
    huge = case == "free" and Path("/sys/kernel/mm/transparent_hugepage").exists()
    expected = ["True", str(huge), "True", "0", "0", "True"]
    if case == "chosen":
        expected = ["False", "False", "True", "1", "1", "False"]
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.parametrize("cuda", [False, True])
def test_only_trainings_on_a_cpu_keep_memory(cuda, monkeypatch):
    set_for: list[Any] = []

    def make(self: Any, cfg: Any) -> None:
        self.cuda = cfg == "cuda"

    monkeypatch.setattr(Trainer, "__init__", make)
    monkeypatch.setattr(returned_memory, "set_allocator", lambda: set_for.append("memory"))
    returned_memory.mend()
    made: Any = Trainer
    made("cuda" if cuda else "cpu")
    assert set_for == ([] if cuda else ["memory"])
