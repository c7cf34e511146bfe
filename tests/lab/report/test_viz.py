import subprocess
import sys

import pytest


@pytest.mark.parametrize("missing", ["altair", "jinja2", "vl_convert"])
def test_a_missing_library_is_named_with_its_remedy(missing):
    code = f"""
import importlib, sys
from syncattn_fairseq.base.errors import DataError
sys.modules[{missing!r}] = None
for name in ("picture_files", "charts", "figures", "forest", "curves", "overview", "page"):
    try:
        importlib.import_module("syncattn_fairseq.lab.report." + name)
    except DataError as error:
        print(name, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 7 and all("syncattn-fairseq[viz]" in line for line in lines), done.stderr
