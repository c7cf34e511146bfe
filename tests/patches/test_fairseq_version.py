from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import syncattn_fairseq


def test_a_fairseq_that_cannot_be_imported_is_refused_in_one_line(tmp_path: Path) -> None:
    """The official release fails like this on Python 3.11 and later."""
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").write_text(
        "raise ValueError('mutable default <class> for field common is not allowed')"
    )
    root = Path(syncattn_fairseq.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", "import syncattn_fairseq.plugin"],
        env={"PYTHONPATH": f"{tmp_path}:{root}", "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: the installed fairseq does not work on Python")
    assert "mutable default" in last and "install fairseq-fixed==0.12.3.1" in last
