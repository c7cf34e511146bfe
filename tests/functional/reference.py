"""The equations once more, as slow float64 loops over Python numbers."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def check(leading: int, function: Callable[..., Any], *inputs: Tensor, shared: Any = ()) -> None:
    """Compare a function with the loop of its name here, row by row of its leading dimensions.

    Args:
        leading: how many of these there are.
        function: gets all inputs at once; the loop one row of each, vectors as lists.
        inputs: tensors that have all the leading dimensions.
        shared: further arguments of both.
    """
    slow = globals()[function.__name__]
    rows = zip(*(x.double().flatten(0, leading - 1) for x in inputs), strict=True)
    lists = ([x.tolist() if x.dim() < 2 else x for x in row] for row in rows)
    expected = torch.tensor([slow(*row, *shared) for row in lists], dtype=torch.float64)
    actual = function(*inputs, *shared).double().flatten(0, leading - 1)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def softmax(row: list[float]) -> list[float]:
    top = max(row)
    exponentials = [math.exp(x - top) for x in row]
    return [x / sum(exponentials) for x in exponentials]


def biaffine_scores(query: Tensor, key: Tensor, weight: Tensor, bias: Tensor | None) -> list:
    q, k, u = query.tolist(), key.tolist(), weight.tolist()
    b = bias.tolist() if bias is not None else [0.0] * len(u)
    d = range(len(u))
    return [
        [
            sum(qi[m] * u[m][n] * kj[n] for m in d for n in d) / math.sqrt(len(u))
            + sum(b[n] * kj[n] for n in d)
            for kj in k
        ]
        for qi in q
    ]


def dependency_loss(attention: Tensor, parents: Tensor, causal: bool) -> tuple[float, int]:
    total, count = 0.0, 0
    for rows, heads in zip(attention.tolist(), parents.tolist(), strict=True):
        for t, head in enumerate(heads):
            if head < 0 or (causal and head > t):
                continue
            total -= math.log(rows[t][head])
            count += 1
    return total, count


def planted_loss(
    attention: list, words: list[list[int]], distances: list[list[int]], causal: bool
) -> float:
    """Word by word; ``words`` has the subwords of each."""
    total = 0.0
    for w, rows in enumerate(words):
        view = [v for v in range(len(words)) if not causal or v <= w]
        weights = [math.exp(-distances[w][v]) for v in view]
        for v, weight in zip(view, weights, strict=True):
            target = weight / sum(weights)
            received = [sum(attention[i][j] for j in words[v]) for i in rows]
            total += target * math.log(target / (sum(received) / len(received)))
    return total


def project_attention(source: Tensor, cross: Tensor, backward: Tensor | None = None) -> list:
    e, c = source.tolist(), cross.tolist()
    source_length, target_length = range(len(e)), range(len(c))
    back = (
        backward.tolist()
        if backward is not None
        else [[c[t][s] for t in target_length] for s in source_length]
    )
    return [
        [
            sum(c[t][a] * e[a][b] * back[b][j] for a in source_length for b in source_length)
            for j in target_length
        ]
        for t in target_length
    ]


def sync_attention_loss(
    target: Tensor, projected: Tensor, padding: Tensor | None, causal: bool
) -> float:
    total = 0.0
    for b in range(target.size(0)):
        pad = padding[b].tolist() if padding is not None else [False] * target.size(1)
        for t, is_pad in enumerate(pad):
            if is_pad:
                continue
            columns = [j for j, p in enumerate(pad) if not p and not (causal and j > t)]
            mapped = softmax([projected[b, t, j].item() for j in columns])
            total += sum(
                (m - target[b, t, j].item()) ** 2 for m, j in zip(mapped, columns, strict=True)
            )
    return total


def parent_gaussian(parent: float, length: int, std: float) -> list[float]:
    if math.isnan(parent):
        return [1.0] * length
    scale = 1 / math.sqrt(2 * math.pi * std**2)
    return [scale * math.exp(-((j - parent) ** 2) / (2 * std**2)) for j in range(length)]


def parent_scaled_scores(query: Tensor, key: Tensor, weights: Tensor) -> list:
    scores = biaffine_scores(query, key, torch.eye(query.size(-1)), None)
    rows = zip(scores, weights.tolist(), strict=True)
    return [[s * w for s, w in zip(*row, strict=True)] for row in rows]


def leaky_relu(x: Tensor) -> Tensor:
    rows = [[v if v > 0 else 0.1 * v for v in row] for row in x.tolist()]
    return x.new_tensor(rows)


def syntactic_distances(keys: Tensor, weight: Tensor, bias: float) -> list[float]:
    k, w = keys.tolist(), weight.tolist()
    look_back = len(w) - 1
    return [
        math.tanh(
            bias
            + sum(
                w[m][n] * k[i - look_back + m][n]
                for m in range(len(w))
                for n in range(len(k[0]))
                if i - look_back + m >= 0
            )
        )
        for i in range(len(k))
    ]


def distance_gates(distances: list[float], temperature: float, causal: bool) -> list:
    def alpha(j: int, t: int) -> float:
        x = temperature * (distances[t] - distances[j])
        return (max(-1.0, min(1.0, x)) + 1) / 2

    length = range(len(distances))
    return [
        [
            0.0
            if causal and i > t
            else math.prod((alpha(j, t) for j in range(min(i, t) + 1, max(i, t))), start=1.0)
            for i in length
        ]
        for t in length
    ]


def sync_mse_loss(distances: Tensor, projected: Tensor, padding: Tensor) -> float:
    total = 0.0
    for d, p, out in zip(distances.tolist(), projected.tolist(), padding.tolist(), strict=True):
        total += sum((a - b) ** 2 for a, b, o in zip(d, p, out, strict=True) if not o)
    return total


def sync_rank_loss(distances: Tensor, projected: Tensor, padding: Tensor, margin: float) -> float:
    total = 0.0
    for d, p, out in zip(distances.tolist(), projected.tolist(), padding.tolist(), strict=True):
        for j in range(len(d)):
            for i in range(j):
                if not (out[i] or out[j]):
                    sign = (d[i] > d[j]) - (d[i] < d[j])
                    total += max(0.0, margin - sign * (p[i] - p[j]))
    return total


def additive_scores(query: Tensor, key: Tensor, weight: Tensor) -> list:
    q, k, v = query.tolist(), key.tolist(), weight.tolist()
    return [[sum(v[n] * math.tanh(qi[n] + kj[n]) for n in range(len(v))) for kj in k] for qi in q]


def local_attention(
    scores: list[float], position: float, half_window: int, renormalise: bool = False
) -> list[float]:
    variance = (half_window / 2) ** 2
    weights = [
        weight * math.exp(-((j - position) ** 2) / (2 * variance))
        if abs(j - position) <= half_window
        else 0.0
        for j, weight in enumerate(softmax(scores))
    ]
    total = sum(weights) if renormalise else 1.0
    return [weight / total for weight in weights]


def flexible_attention(
    scores: list[float], position: float, sharpness: float, half_window: int
) -> list[float]:
    variance = (half_window / 2) ** 2
    return softmax(
        [score - sharpness * (j - position) ** 2 / (2 * variance) for j, score in enumerate(scores)]
    )


def tree_distances(parents: list[int]) -> list[list[int]]:
    """Walk from every word along the edges, breadth first."""
    neighbours: dict[int, set[int]] = {word: set() for word in range(len(parents))}
    for word, parent in enumerate(parents):
        if word != parent:
            neighbours[word].add(parent)
            neighbours[parent].add(word)
    rows = []
    for start in neighbours:
        edges, border = {start: 0}, [start]
        while border:
            word = border.pop(0)
            for other in neighbours[word] - edges.keys():
                edges[other] = edges[word] + 1
                border.append(other)
        rows.append([edges[word] for word in neighbours])
    return rows


def expected_distances(scores: Tensor, distances: Tensor) -> list[list[float]]:
    rows, d = [softmax(row) for row in scores.tolist()], distances.tolist()
    columns = range(len(d))
    return [[sum(weights[k] * d[k][j] for k in columns) for j in columns] for weights in rows]


def syntax_directed_attention(scores: list[float], distances: list[int], n: int) -> list[float]:
    near = [j for j, distance in enumerate(distances) if distance <= max(n, min(distances))]
    variance = (n / 2) ** 2
    weights = softmax([scores[j] * math.exp(-(distances[j] ** 2) / (2 * variance)) for j in near])
    by_word = dict(zip(near, weights, strict=True))
    return [by_word.get(j, 0.0) for j in range(len(scores))]
