"""Every system on an emulated GPU: ``on_emulated_gpu.py`` in a process of its own."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest


def test_every_system_trains_validates_decodes_and_prints_on_a_device():
    backends = importlib.import_module("torch.utils.backend_registration")
    if not hasattr(backends, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this version of PyTorch cannot emulate a device; the pinned one can")
    folder = Path(__file__).parent
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, folder / "on_emulated_gpu.py"],
        cwd=folder.parent,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "skipped" not in ran.stdout
