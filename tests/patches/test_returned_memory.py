import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fairseq.trainer import Trainer

import syncattn_fairseq
from syncattn_fairseq.patches import returned_memory

PROGRAM = """
import ctypes
from syncattn_fairseq.patches.returned_memory import set_allocator

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks mapped".split()]
    _fields_ += [("rest", ctypes.c_size_t * 6)]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
print(set_allocator())
for size in (2**20, 2**28):
    before = libc.mallinfo2().mapped
    block = libc.malloc(ctypes.c_size_t(size))
    print(libc.mallinfo2().mapped - before)
    libc.free(block)
print(libc.mallinfo2().arena > 2**28)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators do this anyway")
@pytest.mark.parametrize("chosen", [{}, {"MALLOC_ARENA_MAX": "1"}])
def test_blocks_stay_in_the_heap_unless_the_user_has_chosen(chosen):
    unset = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(syncattn_fairseq.__file__).parents[1],
        env={**unset, **chosen},
        capture_output=True,
        text=True,
    )
    kept = ["True", "0", "0", "True"]
    assert done.stdout.split() == (["False", "1", "1", "False"] if chosen else kept), done.stderr


HUGE = """
import resource, sys
from syncattn_fairseq.patches import returned_memory
if sys.argv[1] == "limited":
    resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))
set_ = returned_memory.set_allocator()
heaps = open("/proc/self/smaps").read().split("[heap]")[1:]
flags = [heap.partition("VmFlags:")[2].partition("\\n")[0].split() for heap in heaps]
used = sum(int(heap.partition("Rss:")[2].split()[0]) for heap in heaps)
print(set_, any("hg" in each for each in flags), used < 2**18)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators do this anyway")
@pytest.mark.parametrize("limits", ["free", "limited"])
def test_the_heap_asks_for_huge_pages_unless_addresses_are_limited(limits):
    asks = limits == "free" and Path("/sys/kernel/mm/transparent_hugepage").exists()
    done = subprocess.run(
        [sys.executable, "-c", HUGE, limits],
        cwd=Path(syncattn_fairseq.__file__).parents[1],
        env={name: value for name, value in os.environ.items() if "MALLOC" not in name},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["True", str(asks), "True"], done.stderr


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
