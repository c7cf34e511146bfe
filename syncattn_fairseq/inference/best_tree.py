"""The most probable dependency tree (Chu and Liu, 1965; Edmonds, 1967)."""

import numpy as np


def best_tree(scores: np.ndarray) -> list[int]:
    """Return the dependency heads, from 1 (0: root), of the most probable tree with one root.

    Args:
        scores: ``(n, n)`` probabilities, row = dependent; the diagonal is for being the root.
    """
    logs = np.log(scores.astype(np.float64).clip(1e-30))
    only_root = -1000.0 * (len(scores) + 1)  # a second root costs more than any other tree
    weights = np.full((len(scores) + 1, len(scores) + 1), -np.inf)
    weights[1:, 1:] = logs
    np.fill_diagonal(weights, -np.inf)
    weights[1:, 0] = logs.diagonal() + only_root
    return _best_heads(weights)[1:].tolist()


def _best_heads(weights: np.ndarray) -> np.ndarray:
    """Return each node's head, from 0, in the maximum spanning tree whose root is node 0.

    Args:
        weights: ``(n, n)``, row = dependent, column = head.
    """
    heads: np.ndarray = weights.argmax(1)
    heads[0] = 0
    cycle = _find_cycle(heads)
    if not cycle:
        return heads
    # The cycle becomes the last node of a smaller graph. Who enters it takes the place of the best
    # head of the node where it enters.
    rest = np.delete(np.arange(len(heads)), cycle).tolist()
    entering = weights[np.ix_(cycle, rest)] - weights[cycle, heads[cycle]][:, None]
    leaving = weights[np.ix_(rest, cycle)]
    smaller = np.full((len(rest) + 1, len(rest) + 1), -np.inf)
    smaller[:-1, :-1] = weights[np.ix_(rest, rest)]
    smaller[-1, :-1] = entering.max(0)
    smaller[:-1, -1] = leaving.max(1)
    *outer_heads, enters = _best_heads(smaller).tolist()
    for node, best, head in zip(rest, leaving.argmax(1), outer_heads, strict=True):
        heads[node] = cycle[best] if head == len(rest) else rest[head]
    heads[cycle[entering[:, enters].argmax()]] = rest[enters]
    return heads


def _find_cycle(heads: np.ndarray) -> list[int]:
    """Return the nodes of a cycle of heads, or an empty list; node 0 is the root."""
    done = {0}
    for start in range(len(heads)):
        path: dict[int, None] = {}
        node = start
        while node not in done and node not in path:
            path[node] = None
            node = int(heads[node])
        if node in path:
            nodes = [*path]
            return nodes[nodes.index(node) :]
        done |= path.keys()
    return []
