"""Control of other libraries' log messages."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hushed(*names: str) -> Iterator[None]:
    """Within the block or function, loggers say no more than warnings and errors."""
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    try:
        for logger in levels:
            logger.setLevel(logging.WARNING)
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
