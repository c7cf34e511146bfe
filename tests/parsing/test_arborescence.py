"""The faster search for trees against every tree there is, and against Stanza's own search."""

from itertools import product

import numpy as np
import pytest
from stanza.models.common.chuliu_edmonds import chuliu_edmonds_one_root

from syncattn_fairseq.base.errors import BadParse
from syncattn_fairseq.data.parses import check_tree
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


def best_of_all(scores: np.ndarray) -> list[int]:
    size = len(scores) - 1
    best, best_score = [], -np.inf
    for heads in product(range(size + 1), repeat=size):
        try:
            check_tree(heads)
        except BadParse:
            continue
        score = sum(float(scores[word, head]) for word, head in enumerate(heads, 1))
        if score > best_score:
            best, best_score = list(heads), score
    return best


@pytest.mark.parametrize("root", [-3, 0, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_no_tree_is_better(root, size):
    for seed in range(4):
        scores = random_scores(seed, size, root, 0)
        assert find_best_heads(scores) == best_of_all(scores)


@pytest.mark.parametrize("root", [-2, 0, 3])
@pytest.mark.parametrize("tree", [0, 2, 9])
def test_it_is_the_tree_that_stanza_finds(root, tree):
    for seed in range(12):
        scores = random_scores(seed, 3 + 3 * seed, root, tree)
        before = scores.copy()
        assert find_best_heads(scores) == chuliu_edmonds_one_root(scores)[1:].tolist()
        assert np.array_equal(scores, before)
