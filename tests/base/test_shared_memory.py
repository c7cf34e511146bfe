import subprocess
import sys

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
