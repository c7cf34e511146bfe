from typing import Any

import torch

from lab.tests.printed.making import printed
from lab.tests.report.test_figures import EXAMPLE, Stub
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.functional.lpsi import distance_gates
from syncattn_lab.evaluation.scoring import Output
from syncattn_lab.report.heat_maps import with_heat_maps
from syncattn_lab.report.sentences import ReportedSentence

DISTANCES = [0.2, -0.5, 0.75]


def described(source: str = "the dog") -> ReportedSentence:
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


def decoded(source: dict[int, list[float]], target: dict[int, list[float]]) -> Any:
    return printed(
        "▁die ▁Hun de",
        source="▁the ▁do gs",
        scheme="sentencepiece",
        source_distances=source,
        target_distances=target,
    )


def test_gates_are_those_of_the_distances():
    both, none = decoded({2: DISTANCES}, {1: DISTANCES}), decoded({}, {})
    outputs = {"A": Output([none] * 3, [both] * 3), "B": Output([none] * 3)}
    first, second, third = with_heat_maps([described() for _ in range(3)], outputs, {}, 2)
    assert third.detail["systems"] == [{}, {}] and second.detail == first.detail
    assert first.detail["systems"][1] == {"gates": []}
    distance, gates, of_target, causal = first.detail["systems"][0]["gates"]
    assert distance["title"] == "Source: distance before each subword"
    assert distance["rows"] == ["layer 2"] and distance["values"] == [[60, 25, 88]]
    assert gates["title"] == "Source: gates of layer 2, for τ = 1" and not gates["causal"]
    assert gates["rows"] == gates["columns"] == ["the", "do", "gs"]
    expected = 100 * distance_gates(torch.tensor(DISTANCES))
    assert torch.tensor(gates["values"]).float().allclose(expected, atol=0.5)
    assert of_target["columns"] == causal["rows"] == ["die", "Hun", "de"] and causal["causal"]
    assert causal["values"][0] == [100, 0, 0]


def test_what_was_not_printed_or_does_not_fit_is_left_out():
    joined = decoded({}, {1: DISTANCES})
    [one] = with_heat_maps([described()], {"A": Output([joined]), "B": Output([joined])}, {})
    assert one.detail["systems"][0]["gates"] == [], "of the reference only if it was scored"
    [long] = with_heat_maps([ReportedSentence({}, {"long": 300})], {"A": Output([joined])}, {})
    assert long.detail == {"long": 300}


def matrices(sentences: list[ReportedSentence], model: Stub, number: int = 100) -> list[Any]:
    outputs = {name: Output([decoded({}, {})] * 2) for name in "AB"}
    models: Any = {1: model}
    found = with_heat_maps(sentences, outputs, models, number)
    return [[s.get("matrices") for s in sentence.detail["systems"]] for sentence in found]


def test_percentages_and_gold_of_the_first_sentences():
    [first, second] = matrices([described() for _ in range(2)], Stub(), 1)
    assert first[0] is None and second == [None, None]
    encoder, cross, decoder, _ = first[1]
    assert cross["values"] == [[80, 10], [10, 80], [50, 50]]
    assert cross["gold"] == [(0, 1), (2, 1)], "sure and possible"
    assert (encoder["values"], encoder["gold"]) == ([[10, 50], [20, 70]], [(0, 1), (1, 1)])
    assert decoder["gold"] == [(1, 1), (2, 1)]


def test_models_without_heads_and_words_read_differently():
    class Plain(Stub):
        def parse(self, *_: Any) -> Any:
            raise DataError("no dependency heads")

    [[_, fits]] = matrices([described()], Plain())
    assert [matrix["title"][:2] for matrix in fits] == ["C:"]
    assert matrices([described("the do g")], Plain()) == [[None, None]]


def test_a_model_of_raw_sentences_reads_the_text():
    raw, words = Stub(), Stub()
    raw.source_segmenter.scheme = "raw:uax29"
    for model in (raw, words):
        sentence = described("the dog")
        sentence.detail["source"]["text"] = "the  dog"
        sentence.detail["target"]["text"] = "der Hund-da"
        matrices([sentence], model)
    assert raw.read == (["the  dog"], ["der Hund-da"])
    assert words.read == (["the dog"], ["der Hund da"])
