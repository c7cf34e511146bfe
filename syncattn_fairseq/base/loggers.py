"""Control of other libraries' log messages."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keeping_root() -> Iterator[None]:
    """Restore the level and the handlers of the root logger after the block.

    Libraries that set it when they are imported would decide what the whole program logs.
    """
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


@contextmanager
def hushed(*names: str) -> Iterator[None]:
    """Let the named loggers log only warnings and errors during the block or decorated function."""
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    try:
        for logger in levels:
            logger.setLevel(logging.WARNING)
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
