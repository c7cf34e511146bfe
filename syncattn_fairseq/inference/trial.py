"""The first sentence that a loaded model reads, to see that its options make sense together."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fairseq.data import LanguagePairDataset

from ..base.errors import DataError
from ..data.dataset import SyntaxPairDataset, Unparsed


@torch.no_grad()
def try_model(task: Any, model: Any) -> None:
    """Let a model score one unknown word as the translation of another.

    Args:
        task: has the dictionaries.
        model: on the CPU; is in evaluation mode afterwards.

    Raises:
        DataError: the scores are not finite.
        Exception: anything, if the options make no sense.
    """
    words, target_words = task.source_dictionary, task.target_dictionary
    sentence = torch.tensor([words.unk(), words.eos()])
    pairs = LanguagePairDataset([sentence], [2], words, tgt_dict=target_words)
    parse = Unparsed(np.array([1]))
    dataset = SyntaxPairDataset(pairs, parse, None, parse, task.fields)
    net_input = dataset.collater([dataset[0]])["net_input"]
    net_input["prev_output_tokens"] = torch.tensor([[target_words.eos(), target_words.unk()]])
    scores, _ = model.eval()(**net_input)
    if not scores.isfinite().all():
        raise DataError("its scores are not finite numbers; use another checkpoint")
