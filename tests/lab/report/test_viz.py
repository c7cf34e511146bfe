import subprocess
import sys

LIBRARIES = ["altair", "jinja2", "vl_convert"]
# They are imported once, and each that is missing has a fork.
PROGRAM = """
import importlib, os, sys
from syncattn_fairseq.base.errors import DataError
for library in sys.argv[1:]:
    importlib.import_module(library)
for missing in sys.argv[1:]:
    if not os.fork():
        sys.modules[missing] = None
        for name in ("picture_files", "charts", "figures", "forest", "curves", "overview", "page"):
            try:
                importlib.import_module("syncattn_fairseq.lab.report." + name)
            except DataError as error:
                print(missing, name, error, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, missing
"""


def test_a_missing_library_is_named_with_its_remedy():
    command = [sys.executable, "-c", PROGRAM, *LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [x for x in LIBRARIES for _ in range(7)]
    assert all("syncattn-fairseq[viz]" in line for line in lines), lines
