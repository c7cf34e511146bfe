"""Heat maps of the distances that gated heads printed, and of the gates that they make."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import torch

from ...functional.lpsi import distance_gates
from ...printed.decoded import DecodedSentence
from ..evaluation.scoring import Output
from .sentences import ReportedSentence


def with_gates(
    sentences: Iterable[ReportedSentence], outputs: Mapping[str, Output], number: int
) -> Iterator[ReportedSentence]:
    """Add ``gates`` to the first sentences of a report, where systems printed distances.

    Args:
        sentences: of the test set.
        outputs: of the report's systems.
        number: how many sentences get them.
    """
    rest = iter(sentences)
    first = list(islice(rest, number))
    for index, sentence in enumerate(first):
        if "long" in sentence.detail:
            continue
        shown = sentence.detail["systems"]
        for system, output in zip(shown, outputs.values(), strict=True):
            analysed = output.beam if output.forced is None else output.forced
            system["gates"] = _gates(analysed[index], output.forced is not None)
    return chain(first, rest)


def _gates(sentence: DecodedSentence, forced: bool) -> list[dict[str, Any]]:
    """Return one matrix of the distances of each side, and one of each layer's gates."""
    matrices = []
    for side, title in (("source", "Source"), ("hypothesis", "Reference")):
        by_layer: dict[int, list[float]] = getattr(sentence, f"{side}_distances")
        pieces = [piece.strip("▁@") or piece for piece in getattr(sentence, side).split()]
        causal = side == "hypothesis"
        layers = {n: d for n, d in sorted(by_layer.items()) if len(d) == len(pieces) > 0}
        if not layers or (causal and not forced):
            continue
        distances = [[round(50 * (d + 1)) for d in found] for found in layers.values()]
        names = [f"layer {layer}" for layer in layers]
        matrices.append(_matrix(f"{title}: distance before each subword", names, pieces, distances))
        for layer, found in layers.items():
            gates = distance_gates(torch.tensor(found), causal=causal)
            values = (100 * gates).round().int().tolist()
            name = f"{title}: gates of layer {layer}, for τ = 1"
            matrices.append(_matrix(name, pieces, pieces, values, causal))
    return matrices


def _matrix(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[int]],
    causal: bool = False,
) -> dict[str, Any]:
    return {
        **{"title": title, "rows": rows, "columns": columns, "values": values},
        **{"gold": [], "causal": causal},
    }
