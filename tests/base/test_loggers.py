import logging

import pytest

from syncattn_fairseq.base.loggers import hushed


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
