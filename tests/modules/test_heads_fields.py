import pytest
import torch
from torch import Tensor

from syncattn_fairseq.data.subwords import CONTINUATION, NO_HEAD, NO_TOKEN
from syncattn_fairseq.modules.heads.controls.supervised_gate import collate_gap_heights
from tests.functional.test_supervised_gate import slow_heights
from tests.models.build import EOS, PAD, dictionary

HEADS = [[2, 5, 4, 2, 0], [0, 1], [NO_HEAD] * 3]  # of words, from 1; 0 = root
LENGTHS = [[1, 2, 1, 3, 1], [2, 2], [1, 1, 1]]  # subwords


def lay_out(left: bool) -> tuple[Tensor, Tensor]:
    sentences = zip(HEADS, LENGTHS, strict=True)
    rows = [
        [m for h, n in zip(heads, lengths, strict=True) for m in [h] + [CONTINUATION] * (n - 1)]
        for heads, lengths in sentences
    ]
    width = max(map(len, rows)) + 1
    marks, tokens = torch.full((3, width), NO_TOKEN), torch.full((3, width), PAD)
    for b, row in enumerate(rows):
        first = width - 1 - len(row) if left else 0
        marks[b, first : first + len(row)] = torch.tensor(row)
        tokens[b, first : first + len(row)] = 5
        tokens[b, first + len(row)] = EOS
    return marks, tokens


def at_first_subwords(values: list[int], lengths: list[int]) -> list[int]:
    return [x for value, n in zip(values, lengths, strict=True) for x in [value] + [0] * (n - 1)]


@pytest.mark.parametrize("left", [False, True])
def test_gap_heights_are_those_of_the_words(left):
    marks, tokens = lay_out(left)
    result = collate_gap_heights(marks, tokens, dictionary())
    assert result.dtype == torch.float64
    for b, (heads, lengths) in enumerate(zip(HEADS[:2], LENGTHS[:2], strict=True)):
        parents = [h - 1 if h else i for i, h in enumerate(heads)]
        root = heads.index(0)
        heights = slow_heights([*parents, root])  # the end of the sentence hangs from the root
        inside = result[b][tokens[b] != PAD].tolist()
        # Before the first token there is no gap, and what stands there is not read.
        assert inside[1:] == [*at_first_subwords(heights[:-1], lengths)[1:], heights[-1]]
        assert result[b][tokens[b] == PAD].isnan().all()
    assert result[2].isnan().all()
