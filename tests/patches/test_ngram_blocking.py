import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock

import syncattn_fairseq.plugin  # noqa: F401  (mends it)


def test_repeated_ngrams_are_blocked_without_a_gpu():
    tokens = torch.tensor([[2, 5, 6, 7, 5, 6, 1, 1, 1], [2, 5, 6, 7, 6, 5, 1, 1, 1]])
    block = NGramRepeatBlock(3, use_extension=False)
    scores = block(tokens, torch.zeros(2, 10), bsz=1, beam_size=2, step=5)
    assert (scores == -torch.inf).nonzero().tolist() == [[0, 7]]
