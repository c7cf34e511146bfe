"""What tests of several commands share."""

from pathlib import Path

import pytest


@pytest.fixture
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the ``FILES`` of the test's module."""
    for name, text in request.module.FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
