from typing import Any

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.lab.report.sentences import ReportedSentence

pytest.importorskip("altair", reason="needs the extra viz")
from syncattn_fairseq.lab.report.matrices import with_matrices
from tests.lab.report.test_figures import EXAMPLE, Stub


def described(source: str) -> ReportedSentence:
    """As `describe` does."""
    sides = {
        side: {"words": words, "heads": heads}
        for side, words, heads in (
            ("source", source.split(), EXAMPLE.source.heads),
            ("target", ["der", "Hund", "da"], [2, 0, 2]),
        )
    }
    return ReportedSentence(
        {}, {**sides, "sure": [(1, 0)], "possible": [(1, 2)], "systems": [{}, {}]}
    )


def test_percentages_and_gold_of_the_first_sentences():
    models: Any = {1: Stub()}
    sentences = [described("the dog") for _ in range(2)]
    first, second = (s.detail["systems"] for s in with_matrices(sentences, models, 1))
    assert first[0] == {} and second == [{}, {}]
    encoder, cross, decoder, _ = first[1]["matrices"]
    assert (cross["rows"], cross["columns"]) == ("target", "source")
    assert cross["values"] == [[80, 10], [10, 80], [50, 50]]
    assert cross["gold"] == [(0, 1), (2, 1)], "sure and possible"
    assert (encoder["values"], encoder["gold"]) == ([[10, 50], [20, 70]], [(0, 1), (1, 1)])
    assert decoder["gold"] == [(1, 1), (2, 1)]


def test_models_without_heads_and_words_read_differently():
    class Plain(Stub):
        def parse(self, *_: Any) -> Any:
            raise DataError("no dependency heads")

    models: Any = {0: Plain()}
    [fits] = with_matrices([described("the dog")], models, 1)
    assert [m["title"][:2] for m in fits.detail["systems"][0]["matrices"]] == ["C:"]
    [other] = with_matrices([described("the do g")], models, 1)
    assert other.detail["systems"] == [{}, {}]
