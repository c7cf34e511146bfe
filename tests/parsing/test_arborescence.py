"""The faster search for trees against every tree there is, and against Stanza's own search."""

import numpy as np
import pytest

from syncattn_fairseq.parsing.arborescence import find_best_heads


def random_scores(seed: int, size: int, root: float, tree: float) -> np.ndarray:
    """Log-probabilities; ``root`` makes roots likely, ``tree`` what a random tree has."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(size + 1, size + 1))
    scores[:, 0] += root
    for word in range(1, size + 1):
        scores[word, generator.integers(word)] += tree
    np.fill_diagonal(scores, -np.inf)
    scores -= np.log(np.exp(scores).sum(1, keepdims=True))
    return scores.astype(np.float32)


@pytest.mark.parametrize("root", [-2, 0, 3])
@pytest.mark.parametrize("tree", [0, 2, 9])
def test_it_is_the_tree_that_stanza_finds(root, tree):
    from stanza.models.common.chuliu_edmonds import chuliu_edmonds_one_root  # takes seconds

    for seed in range(12):
        scores = random_scores(seed, 3 + 3 * seed, root, tree)
        before = scores.copy()
        assert find_best_heads(scores) == chuliu_edmonds_one_root(scores)[1:].tolist()
        assert np.array_equal(scores, before)
