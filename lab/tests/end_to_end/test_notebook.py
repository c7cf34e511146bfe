"""The notebook of examples/, cell by cell, with a model of two updates."""

import json
import os
from pathlib import Path
from typing import Any

from tests.end_to_end.commands import FORKED

NOTEBOOK = Path(__file__).parents[3] / "examples" / "look_inside.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


def test_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(FORKED), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # read TMPDIR anew
    for name, value in {"PAIRS": 60, "SUBWORDS": 200, "UPDATES": 2}.items():
        monkeypatch.setenv(name, str(value))
    names: dict[str, Any] = {}
    for cell in CELLS:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    sentence = names["sentence"].split()
    assert len(names["pair"].source.heads) == len(sentence) > 3
    assert "<svg" in names["Picture"](names["folder"] / "parses.svg")._repr_svg_()
    assert names["folder"].parent == tmp_path


def test_notebook_is_small_and_shows_no_error():
    assert NOTEBOOK.stat().st_size < 100_000
    outputs = [output for cell in CELLS for output in cell.get("outputs", [])]
    kinds = {output["output_type"] for output in outputs}, {o.get("name") for o in outputs}
    assert kinds == ({"stream", "execute_result"}, {"stdout", None})
