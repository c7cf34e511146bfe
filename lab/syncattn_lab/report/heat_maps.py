"""Heat maps for the first sentences of a report: attention, and distances with their gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.words import is_raw

from ..evaluation.scoring import Output
from ..printed.sentences import UNKNOWN, PrintedSentence, PrintedSide
from .example import Example, Links, Side
from .sentences import ReportedSentence

if TYPE_CHECKING:
    from syncattn_fairseq.inference.answers import Pair, Parse
    from syncattn_fairseq.inference.model import Model


def with_heat_maps(
    sentences: Iterable[ReportedSentence],
    outputs: Mapping[str, Output],
    models: Mapping[int, Model],
    number: int = 100,
) -> Iterator[ReportedSentence]:
    """Add the heat maps ``gates`` and ``matrices`` to the first sentences of a report.

    Each heat map has a ``title``; ``rows`` and ``columns``, which are ``source``, ``target`` or a
    list of words; ``values`` in per cent; ``gold``, pairs of row and column; and ``causal``.

    A sentence gets no ``matrices`` if a model splits it into other words, or if it was printed with
    ``<unk>`` in the place of unknown text.

    Args:
        sentences: the sentences of the report.
        outputs: the output of each system, by name.
        models: the models of the systems, by the number of the system, from 0.
        number: the number of sentences with heat maps, from the first.
    """
    rest = iter(sentences)
    first = list(islice(rest, number))
    details = {n: one.detail for n, one in enumerate(first) if "long" not in one.detail}
    for index, detail in details.items():
        for system, output in zip(detail["systems"], outputs.values(), strict=True):
            system["gates"] = _gates(output.analysed[index], output.forced is not None)
    complete = [d for d in details.values() if d["source"]["words"] and d["target"]["words"]]
    readable = [d for d in complete if not _lacks_subwords(d)]
    for system, model in models.items():
        _add_matrices(readable, system, model)
    return chain(first, rest)


def _lacks_subwords(detail: Mapping[str, Any]) -> bool:
    """Tell whether a printed sentence has ``<unk>`` in the place of a word or a part of it."""
    return any(UNKNOWN in word for side in ("source", "target") for word in detail[side]["words"])


def _gates(sentence: PrintedSentence, forced: bool) -> list[dict[str, Any]]:
    """Return heat maps of a sentence pair's distances and of the gates in each layer.

    They are of the source and, if the translation was ``forced`` to be the reference, of that.
    """
    matrices = _gates_of_side(sentence.source, "Source", causal=False)
    if forced:
        matrices += _gates_of_side(sentence.target, "Reference", causal=True)
    return matrices


def _gates_of_side(side: PrintedSide, title: str, causal: bool) -> list[dict[str, Any]]:
    if not side.subwords or not side.distances:
        return []
    import torch

    from syncattn_fairseq.functional.lpsi import distance_gates

    pieces = [piece.strip("▁@") or piece for piece in side.subwords]
    layers = dict(sorted(side.distances.items()))
    distances = [[round(50 * (d + 1)) for d in values] for values in layers.values()]
    names = [f"layer {layer}" for layer in layers]
    matrices = [_matrix(f"{title}: distance before each subword", names, pieces, distances)]
    for layer, values in layers.items():
        gates = distance_gates(torch.tensor(values), causal=causal)
        name = f"{title}: gates of layer {layer}, for τ = 1"
        percent = (100 * gates).round().int().tolist()
        matrices.append(_matrix(name, pieces, pieces, percent, causal))
    return matrices


def _add_matrices(details: Sequence[Mapping[str, Any]], system: int, model: Model) -> None:
    from .figures import attention_matrices

    raw = is_raw(model.source_segmenter.scheme)
    examples = [_example(detail, raw) for detail in details]
    sources = [example.source.text for example in examples]
    targets = [example.target.text for example in examples if example.target]
    alignments = model.align(sources, targets)
    pairs: list[Pair[Parse]] | list[None]
    try:
        pairs = model.parse(sources, targets)
    except DataError:  # it has no dependency heads
        pairs = [None] * len(sources)
    for detail, example, alignment, pair in zip(details, examples, alignments, pairs, strict=True):
        sizes = len(alignment.source.words), len(alignment.target.words)
        if sizes == tuple(len(detail[side]["words"]) for side in ("source", "target")):
            detail["systems"][system]["matrices"] = [
                _matrix(
                    matrix.title,
                    matrix.rows,
                    matrix.columns,
                    (100 * matrix.weights).round().astype(int).tolist(),
                    matrix.causal,
                    sorted(matrix.gold),
                )
                for matrix in attention_matrices(example, alignment, pair)
            ]


def _matrix(
    title: str, rows: Any, columns: Any, values: Any, causal: bool = False, gold: Any = ()
) -> dict[str, Any]:
    return {
        **{"title": title, "rows": rows, "columns": columns, "values": values},
        **{"gold": gold, "causal": causal},
    }


def _example(detail: Mapping[str, Any], raw: bool) -> Example:
    source, target = (
        Side(detail[x]["words"], detail[x]["heads"], sentence=detail[x]["text"] if raw else "")
        for x in ("source", "target")
    )
    sure, possible = detail["sure"], detail["possible"]
    return Example(source, target, None if sure is None else Links({*sure}, {*possible}))
