import os
import signal
from collections.abc import Iterator
from itertools import count, islice

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.worker_pool import AHEAD, BLOCK, map_in_order
from tests.importing import run_program


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
PROGRAM = """
import os, multiprocessing.synchronize, _multiprocessing
def fail(*args, **options):
    raise FileNotFoundError(2, "No such file or directory")
_multiprocessing.SemLock = multiprocessing.synchronize._multiprocessing.SemLock = fail
access = os.access
os.access = lambda path, *how: path != "/dev/shm" and access(path, *how)
import syncattn_fairseq.plugin
from syncattn_fairseq.base.worker_pool import map_in_order
print([*map_in_order(abs, [-1, 2], 4)])
"""


def test_fairseq_is_imported_and_one_process_does_the_work_of_several():
    done = run_program(PROGRAM)
    assert (done.returncode, done.stdout) == (0, "[1, 2]\n"), done.stderr
