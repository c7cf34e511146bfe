"""Find the best dependency tree from a parser's scores, faster than Stanza does."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from ..base.errors import BadParse
from ..data.parses import check_tree


def find_best_heads(scores: np.ndarray) -> list[int]:
    """Return the dependency heads of the best tree with exactly one root, from a parser's scores.

    The tree is the one that Stanza's search returns, but for ties. That search (Chu-Liu/Edmonds
    with reweighted root arcs, Stanojević and Cohen 2021) takes milliseconds even where there is
    nothing to decide. Two answers are found faster and are the best tree when valid: each word's
    best head, if they form a tree; and the best tree with any number of roots, if it has just one.
    The scores are (n + 1, n + 1), row = dependent, column = head; row and column 0 are the root.
    """
    from stanza.models.common.chuliu_edmonds import chuliu_edmonds, chuliu_edmonds_one_root

    heads: list[int] = scores[1:].argmax(1).tolist()
    if _is_tree(heads):
        return heads
    heads = chuliu_edmonds(scores.astype(np.float64))[1:].tolist()  # modifies its argument
    if heads.count(0) != 1:
        heads = chuliu_edmonds_one_root(scores)[1:].tolist()
    return heads


def _is_tree(heads: list[int]) -> bool:
    try:
        check_tree(heads)
    except BadParse:
        return False
    return True


def make_predictor(model: Any) -> Callable[..., list[list[tuple[int, str]]]]:
    """Return a faster ``predict`` for Stanza's ``GraphParser``, with equal trees except for ties.

    Labels are computed for the arcs of the tree only, not for every pair of words.
    """
    import torch
    from stanza.models.common.vocab import VOCAB_PREFIX_SIZE

    lengths_index = list(signature(model.forward_scores).parameters).index("sentlens")

    def predict(
        *inputs: Any, resolve_head_constraints: bool = False
    ) -> list[list[tuple[int, str]]]:
        lengths: Sequence[int] = inputs[lengths_index]  # root included
        head_scores, label_scores = model.forward_scores(*inputs)[:2]
        log_probabilities = head_scores.log_softmax(2).cpu().numpy()
        heads = [
            find_best_heads(scores[:length, :length])
            for scores, length in zip(log_probabilities, lengths, strict=True)
        ]
        chosen = torch.zeros(head_scores.shape[:2], dtype=torch.long)
        for row, row_heads in zip(chosen, heads, strict=True):
            row[1 : len(row_heads) + 1] = torch.tensor(row_heads)
        index = chosen.to(label_scores.device)[:, :, None, None]
        index = index.expand(-1, -1, 1, label_scores.size(3))
        labels = label_scores.gather(2, index).squeeze(2).max(2)[1] + VOCAB_PREFIX_SIZE
        return [
            list(
                zip(
                    row_heads, model.vocab["deprel"].unmap(row[1 : len(row_heads) + 1]), strict=True
                )
            )
            for row_heads, row in zip(heads, labels.tolist(), strict=True)
        ]

    return predict
