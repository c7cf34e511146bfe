"""How a command refuses bad input."""

from __future__ import annotations

import pytest


def refusal(capsys: pytest.CaptureFixture[str], status: int) -> str:
    """Return the one line that a command printed; ``status`` is the one with which it ended."""
    out, err = capsys.readouterr()
    assert (status, out) == (1, ""), (out, err)
    assert err.startswith("error: ") and err.count("\n") == 1, err
    return err
