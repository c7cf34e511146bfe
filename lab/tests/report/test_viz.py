from tests.importing import run_program

LIBRARIES = ["altair", "jinja2", "vl_convert"]
# What they import is imported once, and each that is missing has a fork.
PROGRAM = """
import importlib, os, sys
from syncattn_fairseq.base.errors import DataError
report = "syncattn_lab.report."
names = "picture_files", "charts", "figures", "forest", "curves", "overview", "page"
for name in names:
    importlib.import_module(report + name)
for missing in sys.argv[1:]:
    if not os.fork():
        for name in [name for name in sys.modules if name.startswith(report)]:
            del sys.modules[name]
        sys.modules[missing] = None
        for name in names:
            try:
                importlib.import_module(report + name)
            except DataError as error:
                print(missing, name, error, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, missing
"""


def test_a_missing_library_is_named_with_its_remedy():
    done = run_program(PROGRAM, *LIBRARIES)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [x for x in LIBRARIES for _ in range(7)]
    assert all("syncattn-fairseq[viz]" in line for line in lines), lines
