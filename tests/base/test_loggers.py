import logging

import pytest

from syncattn_fairseq.base.loggers import hushed, keeping_root


def test_a_logger_speaks_again_after_the_block_or_function_however_it_ends():
    logger = logging.getLogger("of a test")
    logger.setLevel(logging.DEBUG)

    @hushed("of a test", "of another")
    def fail() -> None:
        assert logger.level == logging.getLogger("of another").level == logging.WARNING
        raise OSError

    for _ in range(2):
        with pytest.raises(OSError):
            fail()
        assert logger.level == logging.DEBUG


def test_the_root_logger_is_as_before_the_block_however_it_ends():
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    with pytest.raises(OSError), keeping_root():
        root.addHandler(logging.NullHandler())
        root.setLevel(level + 1)
        raise OSError
    assert (root.level, root.handlers) == (level, handlers)
