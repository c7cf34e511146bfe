"""What a command says when it refuses its input."""

import pytest


def read_error(capsys: pytest.CaptureFixture[str], status: int) -> str:
    """Return the one line of a command that refused its input; ``status`` is what it returned."""
    out, err = capsys.readouterr()
    assert (status, out) == (1, ""), (out, err)
    assert err.startswith("error: ") and err.count("\n") == 1, err
    return err
