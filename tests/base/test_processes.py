import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count, islice

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.worker_pool import AHEAD, BLOCK, map_in_order


def square(number: int) -> int:
    return number * number


def refuse_late(number: int) -> int:
    if number > BLOCK:
        raise DataError(f"line {number}")
    return number


def be_killed(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("items", [0, 1, BLOCK, 9 * BLOCK + 1])
def test_results_are_in_order(workers, items):
    assert list(map_in_order(square, range(items), workers)) == [n * n for n in range(items)]


def test_little_is_read_ahead_of_the_results_that_are_taken():
    read = 0

    def numbers() -> Iterator[int]:
        nonlocal read
        for number in count():
            read = number
            yield number

    results = map_in_order(square, numbers(), 2)
    assert list(islice(results, 5 * BLOCK + 1)) == [n * n for n in range(5 * BLOCK + 1)]
    assert read < (6 + 2 * AHEAD + 1) * BLOCK
    results.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_comes_through(workers):
    with pytest.raises(DataError, match="^line 1001$"):
        list(map_in_order(refuse_late, range(3 * BLOCK), workers))


def test_a_killed_process_is_told():
    with pytest.raises(DataError, match="use fewer --workers"):
        list(map_in_order(be_killed, range(BLOCK), 2))


#: As where there is no /dev/shm.
WITHOUT = """
import os, multiprocessing.synchronize, _multiprocessing
def fail(*args, **options):
    raise FileNotFoundError(2, "No such file or directory")
_multiprocessing.SemLock = multiprocessing.synchronize._multiprocessing.SemLock = fail
access = os.access
os.access = lambda path, *how: path != "/dev/shm" and access(path, *how)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program], capture_output=True, text=True, timeout=300
    )


def test_fairseq_is_imported():
    done = run("import syncattn_fairseq.plugin; print('imported')")
    assert (done.returncode, done.stdout) == (0, "imported\n"), done.stderr


def test_one_process_does_the_work_of_several():
    program = "from syncattn_fairseq.base.worker_pool import map_in_order\n"
    done = run(program + "print([*map_in_order(abs, [-1, 2], 4)])")
    assert done.stdout == "[1, 2]\n", done.stderr
