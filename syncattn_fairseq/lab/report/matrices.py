"""Attention matrices for the sentences of a report, which decoders do not print."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from ...base.errors import DataError
from ...inference.answers import Pair, Parse
from ...inference.model import Model
from .example import Example, Links, Side
from .figures import attention_matrices
from .sentences import ReportedSentence


def with_matrices(
    sentences: Iterable[ReportedSentence], models: Mapping[int, Model], number: int
) -> Iterator[ReportedSentence]:
    """Add ``matrices`` to the first sentences of a report.

    Each is ``title``, ``rows`` and ``columns``, ``source`` or ``target``, ``values`` in per cent,
    and ``gold``, rows and columns. A sentence whose words the model reads differently gets none.

    Args:
        sentences: of the test set.
        models: by the number of their system, from 0.
        number: how many sentences get them.
    """
    rest = iter(sentences)
    first = list(islice(rest, number))
    drawn = (s for s in first if "long" not in s.detail)
    complete = [s for s in drawn if s.detail["source"]["words"] and s.detail["target"]["words"]]
    examples = [_example(sentence.detail) for sentence in complete]
    sources = [example.source.text for example in examples]
    targets = [example.target.text for example in examples if example.target]
    for system, model in models.items():
        alignments = model.align(sources, targets)
        pairs: list[Pair[Parse]] | list[None]
        try:
            pairs = model.parse(sources, targets)
        except DataError:  # it has no dependency heads
            pairs = [None] * len(sources)
        for sentence, example, alignment, pair in zip(
            complete, examples, alignments, pairs, strict=True
        ):
            sizes = len(alignment.source.words), len(alignment.target.words)
            if sizes == (len(example.source.words), len(sentence.detail["target"]["words"])):
                sentence.detail["systems"][system]["matrices"] = [
                    {
                        "title": matrix.title,
                        "rows": matrix.rows,
                        "columns": matrix.columns,
                        "values": (100 * matrix.weights).round().astype(int).tolist(),
                        "gold": sorted(matrix.gold),
                        "causal": matrix.causal,
                    }
                    for matrix in attention_matrices(example, alignment, pair)
                ]
    return chain(first, rest)


def _example(detail: Mapping[str, Any]) -> Example:
    source, target = (
        Side(detail[side]["words"], detail[side]["heads"]) for side in ("source", "target")
    )
    sure, possible = detail["sure"], detail["possible"]
    return Example(source, target, None if sure is None else Links({*sure}, {*possible}))
