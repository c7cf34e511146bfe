"""Name the extra of this package to install when a library is missing."""

from importlib.util import find_spec


def require(extra: str, *libraries: str) -> None:
    """Check that the libraries of a pip extra of this package are installed, without importing any.

    Args:
        extra: the name of the extra in pyproject.toml, such as ``train``.
        libraries: the names that the libraries are imported by.

    Raises:
        ImportError: a library is missing; the message has the command that installs the extra.
    """
    for name in libraries:
        if find_spec(name) is None:
            raise ImportError(describe_missing(extra, name), name=name)


def describe_missing(extra: str, library: str) -> str:
    """Return an error message with a missing library's name and the command to install it."""
    return (
        f"{library} is needed here and not installed; install it: pip install "
        f"'syncattn-fairseq[{extra}]'"
    )
