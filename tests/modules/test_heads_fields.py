import pytest
import torch
from torch import Tensor

from syncattn_fairseq.data.subwords import CONTINUATION, NO_HEAD, NO_TOKEN
from syncattn_fairseq.modules.heads.controls.relative_depth import collate_depths
from syncattn_fairseq.modules.heads.controls.supervised_gate import collate_gap_heights
from tests.functional.test_supervised_gate import slow_heights
from tests.models.build import EOS, PAD, dictionary

HEADS = [[2, 5, 4, 2, 0], [0, 1], [2, 0, 2]]  # of words, from 1; 0 = root
LENGTHS = [[1, 2, 1, 3, 1], [2, 2], [1, 1, 1]]  # subwords
N = CONTINUATION


def lay_out(left: bool, unparsed: int | None = None) -> tuple[Tensor, Tensor]:
    rows = []
    for heads, lengths in zip(HEADS, LENGTHS, strict=True):
        own = [NO_HEAD] * len(heads) if len(rows) == unparsed else heads
        rows.append([m for h, n in zip(own, lengths, strict=True) for m in [h] + [N] * (n - 1)])
    width = max(map(len, rows)) + 1
    marks, tokens = torch.full((3, width), NO_TOKEN), torch.full((3, width), PAD)
    for b, row in enumerate(rows):
        first = width - 1 - len(row) if left else 0
        marks[b, first : first + len(row)] = torch.tensor(row)
        tokens[b, first : first + len(row)] = 5
        tokens[b, first + len(row)] = EOS
    return marks, tokens


def spread(values: list[int], lengths: list[int], rest: int | None) -> list[int]:
    """Give every subword its word's value, or all but the first another."""
    return [
        value if k == 0 or rest is None else rest
        for value, n in zip(values, lengths, strict=True)
        for k in range(n)
    ]


@pytest.mark.parametrize("left", [False, True])
def test_gap_heights_are_those_of_the_words(left):
    marks, tokens = lay_out(left, unparsed=2)
    result = collate_gap_heights(marks, tokens, dictionary())
    assert result.dtype == torch.float64
    for b, (heads, lengths) in enumerate(zip(HEADS[:2], LENGTHS[:2], strict=True)):
        parents = [h - 1 if h else i for i, h in enumerate(heads)]
        root = heads.index(0)
        heights = slow_heights([*parents, root])  # the end of the sentence hangs from the root
        inside = result[b][tokens[b] != PAD].tolist()
        # Before the first token there is no gap, and what stands there is not read.
        assert inside[1:] == [*spread(heights[:-1], lengths, rest=0)[1:], heights[-1]]
        assert result[b][tokens[b] == PAD].isnan().all()
    assert result[2].isnan().all()


@pytest.mark.parametrize("left", [False, True])
def test_depths_are_those_of_the_words(left):
    marks, tokens = lay_out(left, unparsed=1)
    result = collate_depths(marks, tokens, dictionary())
    for b, depths in ((0, [2, 1, 3, 2, 0]), (2, [1, 0, 1])):
        inside = result[b][tokens[b] != PAD].tolist()
        assert inside == [*spread(depths, LENGTHS[b], rest=None), 1]
    assert result[1].eq(0).all()


@pytest.mark.parametrize("pads", [0, 1, 3])
def test_depths_without_the_root_count_from_the_highest_words_left(pads):
    """3 3 5 5 0, cut after four words: words 3 and 4 have lost their head."""
    marks = torch.tensor([[NO_TOKEN] * pads + [3, 3, 5, N, 5, NO_TOKEN]])
    tokens = torch.tensor([[PAD] * pads + [5, 5, 5, 5, 5, EOS]])
    depths = collate_depths(marks, tokens, dictionary())
    assert depths[0, pads:].tolist() == [1, 1, 0, 0, 0, 1]
