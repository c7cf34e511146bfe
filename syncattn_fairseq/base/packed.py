"""Hold long sequences in little memory."""

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

Item = TypeVar("Item")

BLOCK = 1000
"""Number of items that are compressed together."""


def pack(value: Any) -> bytes:
    """Pickle and compress a value that is not deeply nested; `unpack` restores the value."""
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


def unpack(packed: bytes) -> Any:
    """Return the value compressed by `pack`."""
    return pickle.loads(zlib.decompress(packed))


class Packed(Sequence[Item]):
    """A sequence stored in compressed blocks, best read in order.

    A sentence takes a tenth of the memory that its lists and sets would. Items cannot be changed:
    reading gives copies of them.
    """

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._blocks: list[bytes] = []
        self._rest: list[Item] = []
        self._opened: tuple[int, list[Item]] = -1, []  # the block that was read last
        for item in items:
            self.append(item)

    def append(self, item: Item) -> None:
        """Add an item at the end of the sequence."""
        self._rest.append(item)
        if len(self._rest) == BLOCK:
            self._blocks.append(pack(self._rest))
            self._rest = []

    def __len__(self) -> int:
        return BLOCK * len(self._blocks) + len(self._rest)

    def __iter__(self) -> Iterator[Item]:
        for number in range(len(self._blocks) + 1):
            yield from self._open(number)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        number, place = divmod(range(len(self))[index], BLOCK)
        return self._open(number)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def _open(self, number: int) -> list[Item]:
        if number == len(self._blocks):
            return self._rest
        if number != self._opened[0]:
            self._opened = number, unpack(self._blocks[number])
        return self._opened[1]
