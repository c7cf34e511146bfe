from dataclasses import replace

import pytest
import torch

from syncattn_fairseq.functional.lpsi import distance_gates
from syncattn_fairseq.lab.evaluation.scoring import Output
from syncattn_fairseq.printed.decoded import DecodedSentence

pytest.importorskip("altair", reason="needs the extra viz")
from syncattn_fairseq.lab.report.gates import with_gates
from syncattn_fairseq.lab.report.sentences import ReportedSentence

DISTANCES = [0.2, -0.5, 0.75]


def decoded(**distances: dict[int, list[float]]) -> DecodedSentence:
    found = DecodedSentence(translation="", source="▁the ▁do gs", hypothesis="▁die ▁Hun de")
    return replace(found, **distances)


def sentences(count: int) -> list[ReportedSentence]:
    return [ReportedSentence({}, {"systems": [{}]}) for _ in range(count)]


def test_gates_are_those_of_the_distances():
    both = decoded(source_distances={2: DISTANCES}, hypothesis_distances={1: DISTANCES})
    outputs = {"A": Output([both] * 3, [both] * 3)}
    first, second, third = with_gates(sentences(3), outputs, 2)
    assert "gates" not in third.detail["systems"][0] and second.detail == first.detail
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
    joined = decoded(source_distances={1: DISTANCES[:2]}, hypothesis_distances={1: DISTANCES})
    [one] = with_gates(sentences(1), {"A": Output([joined])}, 5)
    assert one.detail["systems"][0]["gates"] == [], "of the reference only if it was scored"
    [long] = with_gates([ReportedSentence({}, {"long": 300})], {"A": Output([joined])}, 5)
    assert long.detail == {"long": 300}
