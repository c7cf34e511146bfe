"""The first sentence that a loaded model reads, to see that its options make sense together."""

from typing import Any

import numpy as np
import torch
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.configs import GenerationConfig

from ..base.errors import DataError
from ..data.dataset import SyntaxPairDataset, Unparsed


@torch.no_grad()
def try_model(task: Any, model: Any) -> None:
    """Let a model translate an unknown word, and score another as its translation.

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
    batch = dataset.collater([dataset[0]])
    before = torch.tensor([[target_words.eos(), target_words.unk()]])
    scores, _ = model.eval()(**batch["net_input"], prev_output_tokens=before)
    if not scores.isfinite().all():
        raise DataError("its scores are not finite numbers; use another checkpoint")
    generator = task.build_generator([model], GenerationConfig(beam=1, max_len_b=2))
    task.inference_step(generator, [model], batch)
