"""Valid files, and what becomes of them: bytes flipped, lost and repeated, and lines moved.

``FUZZ_CASES`` says how many mutated files each reader gets; ``scripts/fuzz.sh`` asks for more.
"""

import os
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError

CASES = int(os.environ.get("FUZZ_CASES", "200"))
MEMORY = 2**28
"""Bytes that a reader may take for a file of a few kilobytes."""

#: What has gone wrong elsewhere before.
HOSTILE = [
    *(b"", b"\x00", b"\xff\xfe", b"\r", b"\t", b"\n\n", b" ", b"\\", b"-"),
    *("\u2028".encode(), "\u3000".encode(), "\u0663".encode(), "\u2581".encode(), b"@@"),
    *(b"-1", b"1_0", b"+1", b"1e400", b"NaN", b"9" * 5000),
    *(b"null", b"true", b'"', b"{}", b"[", b"[" * 3000, b"(" * 3000),
]


def mutate(content: bytes, random: Random) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    for _ in range(random.randint(1, 4)):
        begin = random.randint(0, len(content))
        end = min(len(content), begin + random.choice([0, 0, 1, 1, 2, 5, 40]))
        match random.randint(0, 5):
            case 0:
                part = b""
            case 1:
                part = bytes(byte ^ 1 << random.randint(0, 7) for byte in content[begin:end])
            case 2:
                part = content[begin:end] * random.randint(2, 4)
            case 3:
                part = random.randbytes(random.randint(0, 8))
            case 4:
                part = random.choice(lines)
            case _:
                part = random.choice(HOSTILE)
        content = content[:begin] + part + content[end:]
    if random.random() < 0.1:
        content = content[: random.randint(0, len(content))]
    return content


@contextmanager
def refusing(pattern: str = "", *others: type[Exception]) -> Iterator[None]:
    """Let a fault pass if one short line, with a pattern in it, tells what is wrong."""
    try:
        yield
    except (DataError, *others) as error:
        line = str(error)
        assert len(line.splitlines()) == 1 and len(line) < 1000 and re.search(pattern, line), line


def fuzzed(check: Callable[[int], None], share: float = 1) -> Callable[[], None]:
    """Call a check with the seeds of its mutations.

    Args:
        share: of the cases, less than 1 for a slow check.
    """
    given_seeds = given(st.integers(0, 2**64))
    limits = settings(
        max_examples=max(1, int(CASES * share)),
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],  # a smaller seed is no smaller file
    )
    test: Callable[[], None] = limits(given_seeds(check))
    return test


def check_accepted(path: Path, content: str | bytes, read: Callable[[Path], Any]) -> None:
    """Check that a valid file is read."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    read(path)


def check_mutated(
    path: Path, content: str | bytes, read: Callable[[Path], Any], names: str = ""
) -> None:
    """Check that mutated files are read, or refused in a line that has one of the names (regex).

    A reader may take only `MEMORY`.
    """
    valid = content if isinstance(content, bytes) else content.encode()
    before = memory()

    def check(seed: int) -> None:
        path.write_bytes(mutate(valid, Random(seed)))
        with refusing(names or path.name):
            read(path)

    fuzzed(check)()
    assert memory() - before < MEMORY


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
