import pickle

import pytest

from syncattn_fairseq.base import packed
from syncattn_fairseq.base.packed import Packed


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
def test_it_reads_as_a_list(monkeypatch, size):
    monkeypatch.setattr(packed, "BLOCK", 3)
    items = [{n: [n, None]} for n in range(size)]
    found = Packed(iter(items))
    assert found == items and items == found == Packed(items) and len(found) == size
    assert found != [*items, {}] and bool(found) == bool(items)
    assert [found[n - size] for n in range(size)] == items == found[:]
    assert found[1:6:2] == items[1:6:2] and found[5:] == items[5:] and found[-2:] == items[-2:]
    assert list(zip(found, found, strict=True)) == list(zip(items, items, strict=True))
    for place in (size, -size - 1):
        with pytest.raises(IndexError):
            found[place]


def test_more_items_after_reading(monkeypatch):
    monkeypatch.setattr(packed, "BLOCK", 2)
    found = Packed([0, 1, 2])
    assert found[2] == 2
    found.append(3)
    assert [found[2], found[0], found[3]] == [2, 0, 3]


def test_it_is_small():
    sets = [{(n, n + 1) for n in range(10)} for _ in range(packed.BLOCK)]
    assert len(pickle.dumps(Packed(sets))) < len(pickle.dumps(sets)) / 2
