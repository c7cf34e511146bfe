"""Name the extra of this package to install when a library is missing."""

from importlib.util import find_spec


def require(extra: str, *libraries: str) -> None:
    """Check that the libraries of an extra are installed, without importing any.

    Args:
        extra: its name in pyproject.toml, such as ``train``.
        libraries: the names that the libraries are imported by.

    Raises:
        ImportError: one is missing; the message is one line with the command that installs it.
    """
    for name in libraries:
        if find_spec(name) is None:
            raise ImportError(describe_missing(extra, name), name=name)


def describe_missing(extra: str, library: str) -> str:
    """Return a line with the name of the missing library and the command to install it."""
    return (
        f"{library} is needed here and not installed; install it: pip install "
        f"'syncattn-fairseq[{extra}]'"
    )
