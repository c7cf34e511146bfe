"""Valid files, and what becomes of them: bytes flipped, lost and repeated, and lines moved."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from syncattn_fairseq.base.errors import DataError

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
