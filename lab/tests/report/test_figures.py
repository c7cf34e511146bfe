import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.functional import distance_gates
from syncattn_fairseq.inference.answers import (
    Alignment,
    Distances,
    Pair,
    Parse,
    Sentence,
    Translation,
)
from syncattn_fairseq.inference.drawing import DrawnSide
from syncattn_fairseq.trees.brackets import parse_tree
from syncattn_lab.report import figures
from syncattn_lab.report.example import Example, Links, Side

SOURCE = Sentence(["▁the", "▁do", "g"], "sentencepiece")
TARGET = Sentence(["▁der", "▁Hu", "nd", "▁da"], "sentencepiece")
ENCODER = np.array([[0.1, 0.2, 0.3], [0.5, 0.4, 0.1], [0.2, 0.3, 0.4]])
CROSS = np.array([[0.8, 0.1, 0.0], [0.0, 0.9, 0.1], [0.1, 0.2, 0.6], [0.5, 0.2, 0.3]])
DECODER = np.tril(np.full((4, 4), 0.25))
GOLD = Links({(1, 0)}, {(1, 2)})
EXAMPLE = Example(
    Side(["the", "dog"], [2, 0], ["det", "root"]), Side(["der", "Hund", "da"], [2, 0, 2]), GOLD
)


class Stub:
    def __init__(self, source: Sentence = SOURCE, target: Sentence = TARGET) -> None:
        self.alignment = Alignment(source, target, CROSS)
        self.translation = Translation(target)
        self.parses = Pair(self.translation, Parse(source, ENCODER), Parse(target, DECODER))
        self.source_segmenter = SimpleNamespace(scheme=source.scheme)
        self.read: Any = None

    def align(self, *texts: Any, **__: Any) -> list[Alignment]:
        self.read = texts
        return [self.alignment]

    def parse(self, *_: Any) -> list[Pair[Parse]]:
        return [self.parses]

    def distances(self, *_: Any) -> list[Pair[Distances]]:
        source, target = ({1: [0.0, 0.5, -0.5]}, {1: [0.0, 0.5, -1.0, 0.2]})
        return [Pair(self.translation, Distances(SOURCE, source), Distances(TARGET, target))]


def data(figure: figures.Figure) -> dict[str, Any]:
    return {**figure._data}


def test_words_attend_like_their_last_subword_to_the_sum_of_subwords():
    found = figures.between_words(CROSS, TARGET, SOURCE)
    assert found == pytest.approx(np.array([[0.8, 0.1], [0.1, 0.8], [0.5, 0.5]]))
    assert not figures.between_words(np.zeros((0, 0)), SOURCE, TARGET).size


def test_matrices_and_their_gold():
    stub = Stub()
    encoder, cross, decoder, carried = figures.attention_matrices(
        EXAMPLE, stub.alignment, stub.parses
    )
    assert [(m.rows, m.columns, m.causal) for m in (encoder, cross, decoder, carried)] == [
        *(("source", "source", False), ("target", "source", False)),
        *(("target", "target", True), ("target", "target", True)),
    ]
    assert encoder.weights == pytest.approx(np.array([[0.1, 0.5], [0.2, 0.7]]))
    assert encoder.gold == {(0, 1), (1, 1)}, "the root is its own head"
    assert cross.weights == pytest.approx(np.array([[0.8, 0.1], [0.1, 0.8], [0.5, 0.5]]))
    assert cross.gold == {(0, 1), (2, 1)}, "sure and possible, the target is in the rows"
    assert decoder.weights[1] == pytest.approx([0.25, 0.5, 0])
    # The head of the first word is to its right, where decoders cannot look.
    assert decoder.gold == carried.gold == {(1, 1), (2, 1)}
    projected = CROSS @ ENCODER @ CROSS.T
    expected = [[row[0], row[1] + row[2], row[3]] for row in projected[[0, 2, 3]]]
    assert carried.weights == pytest.approx(np.array(expected))
    [alone] = figures.attention_matrices(Example(EXAMPLE.source), stub.alignment, None)
    assert alone.title.startswith("C: ") and not alone.gold


def test_attention_between_words_is_drawn_without_the_future():
    found = data(figures.draw_attention(Stub(), EXAMPLE))  # type: ignore[arg-type]
    cells = {
        name: {(c["row"], c["column"]): c["weight"] for c in found[f"{name} cells"]}
        for name in ("1-0", "1-1", "2-0", "2-1")
    }
    assert cells["1-0"] == pytest.approx({(0, 0): 0.1, (0, 1): 0.5, (1, 0): 0.2, (1, 1): 0.7})
    assert cells["1-1"][2, 0] == 0.5 and len(cells["1-1"]) == 6
    assert cells["2-0"].keys() == cells["2-1"].keys()
    assert sorted(cells["2-0"]) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert found["1-1 rows"] == [{"word": "der"}, {"word": "Hund"}, {"word": "da"}]
    assert found["1-1 columns"] == [{"word": "the"}, {"word": "dog"}]
    assert found["1-1 gold"] == [{"row": 0, "column": 1}, {"row": 2, "column": 1}]
    assert "der – dog: 0.10" in [cell["text"] for cell in found["1-1 cells"]]


def test_links_are_judged_by_sure_and_possible_gold():
    found = figures.link_data([(0, 1), (1, 0), (1, 2)], ["s", "t"], list("abc"), GOLD)
    judged = [(cell["row"], cell["column"], cell["verdict"]) for cell in found["cells"]]
    assert judged == [(1, 0, "wrong"), (0, 1, "right"), (2, 1, "right")]
    assert [cell["text"] for cell in found["cells"]] == ["b – s", "a – t", "c – t"]
    assert found["gold"] == [
        {"row": 0, "column": 1, "sure": True},
        {"row": 2, "column": 1, "sure": False},
    ]
    assert found["rows"] == [{"word": word, "across": 2} for word in "abc"]
    assert found["columns"] == [{"word": word} for word in "st"]
    for gold, verdict in ((None, "unknown"), (Links(set(), set()), "wrong")):
        [cell] = figures.link_data([(0, 0)], ["s"], ["a"], gold)["cells"]
        assert cell["verdict"] == verdict, "without gold, nothing is right"


def test_arcs_and_links_of_a_pair(monkeypatch):
    monkeypatch.setattr(figures, "draw_pair", lambda *drawn: drawn)
    example = replace(EXAMPLE, links=Links({(1, 0)}, {(0, 2)}))
    source, target, links = figures.draw_parses(Stub(), example)  # type: ignore[arg-type]
    assert source == DrawnSide(["the", "dog"], [2, 0], [True, True])
    # A decoder cannot look at the parent of der, which comes later.
    assert target == DrawnSide(["der", "Hund", "da"], [None, 1, 1], [None, False, False])
    assert links == {(0, 0): False, (0, 2): True, (1, 1): False}
    unjudged = Example(Side(EXAMPLE.source.words), Side(["der", "Hund", "da"]))
    source, target, links = figures.draw_parses(Stub(), unjudged)  # type: ignore[arg-type]
    assert source == DrawnSide(["the", "dog"], [2, 0], [None, None])
    assert target == DrawnSide(["der", "Hund", "da"], [0, 1, 1], [None] * 3)
    assert {*links.values()} == {None}
    stub: Any = Stub()
    stub.parses = Pair(stub.translation, stub.parses.source, None)
    _, target, _ = figures.draw_parses(stub, unjudged)
    assert target == DrawnSide(["der", "Hund", "da"])


def test_arcs_without_a_parse():
    [row] = figures.arc_rows(Side(["a"]), None)
    assert row == {"word": "a", "gold": None, "predicted": None, "label": "", "causal": False}


def test_trees_are_judged_by_gold_constituents():
    tree, gold = parse_tree("(X (X a) (X (X b) (X c)))"), parse_tree("(S (N (A a) (B b)) (C c))")
    assert tree and gold
    leaves = [{"word": "a", "parent": 0}, {"word": "b", "parent": 1}, {"word": "c", "parent": 1}]
    whole = {"start": 0, "end": 3, "height": 2, "parent": None, "label": "", "verdict": "right"}
    inner = {"start": 1, "end": 3, "height": 1, "parent": 0, "label": "", "verdict": "wrong"}
    assert figures.tree_items(tree, gold) == [*leaves, whole, inner]
    assert figures.tree_items(tree)[-1] == {**inner, "verdict": "unknown"}
    assert [node["label"] for node in figures.tree_items(gold)[3:]] == ["S", "N"]


def test_gates_of_the_target_see_no_future():
    figure = figures.draw_distances(Stub(), EXAMPLE)  # type: ignore[arg-type]
    found = data(figure)
    cells = [[(c["row"], c["column"]) for c in found[f"5-{i} cells"]] for i in (0, 1)]
    assert sorted(cells[0]) == [(i, j) for i in range(3) for j in range(3)]
    assert sorted(cells[1]) == [(i, j) for i in range(4) for j in range(i + 1)]
    row = [(c["column"], c["weight"], c["text"]) for c in found["2-0 cells"]]
    assert row == [(1, 0.75, "distance – dog: 0.50")], "the first plays no role"
    assert found["5-0 rows"] == [{"word": "the"}, {"word": "do"}, {"word": "g"}]
    weights = {(c["row"], c["column"]): c["weight"] for c in found["5-0 cells"]}
    assert (weights[2, 0], weights[2, 1]) == (0, 1), "the distance falls by 1 between do and g"


def test_gates_have_the_models_temperature():
    sharp = Stub()
    [pair] = sharp.distances()
    assert pair.source
    sharp.distances = lambda *_: [  # type: ignore[method-assign]
        Pair(pair.translation, Distances(SOURCE, pair.source.layers, temperature=0.5), None)
    ]
    found = data(figures.draw_distances(sharp, EXAMPLE))  # type: ignore[arg-type]
    weights = {(c["row"], c["column"]): c["weight"] for c in found["3-0 cells"]}
    gates = distance_gates(torch.tensor(pair.source.layers[1]), temperature=0.5)
    assert weights[2, 0] == pytest.approx(gates[2, 0].item(), abs=1e-3) and gates[2, 0] > 0


def test_parents_are_in_the_middle_of_words():
    example = Example(Side(["a", "bc", "d"], [2, 0, 1]))
    pieces = Sentence(["▁a", "▁b", "c", "▁d"], "sentencepiece")
    found = data(figures.draw_parents(example, pieces))
    weights = {(c["row"], c["column"]): c["weight"] for c in found["2-0 cells"]}
    near = round(math.exp(-1 / 8), 4)
    assert weights[0, 1] == weights[0, 2] == weights[1, 1] == weights[2, 1] == near
    assert weights[3, 0] == 1 and weights[3, 1] == round(math.exp(-1 / 2), 4)
    assert found["2-0 gold"] == [{"row": 3, "column": 0}], "no column is in the middle of two"
    assert [row["gold"] for row in found["1-0 words"]] == [2, 0, 1]


def test_farther_words_are_paler():
    heads = [0, 1, 2, 3, 4, 5]
    found = data(figures.draw_tree_distances(Example(Side(list("abcdef"), heads))))["2-0 cells"]
    first = [cell for cell in found if cell["row"] == 0]
    assert [cell["weight"] for cell in first] == pytest.approx([1, 0.8, 0.6, 0.4, 0.2, 0])
    assert [cell["shown"] for cell in first] == list("012345")
    assert first[2]["text"] == "a – c: 2"


def test_words_that_the_subword_model_changes_are_refused():
    """Its normalisation may make two words of one."""
    message = r"2 words, but 3 in the model's subwords"
    source = Sentence(["▁the", "▁do", "▁g"], "sentencepiece")
    with pytest.raises(DataError, match=message):
        figures.draw_parents(EXAMPLE, source)
    for draw in (figures.draw_alignment, figures.draw_parses, figures.draw_attention):
        with pytest.raises(DataError, match=message):
            draw(Stub(source), EXAMPLE)  # type: ignore[arg-type]
        with pytest.raises(DataError, match="3 words, but 4"):
            target = Sentence([*TARGET.pieces[:2], "▁nd", "▁da"], "sentencepiece")
            draw(Stub(target=target), EXAMPLE)  # type: ignore[arg-type]


def test_long_sentences_are_refused():
    long = Sentence(["▁w"] * 251, "sentencepiece")
    stub: Any = Stub(long)
    stub.distances = lambda *_: [Pair(stub.translation, Distances(long, {1: [0.0] * 251}), None)]
    example = Example(Side(["w"] * 251, [0] + [1] * 250))
    fault = "^a sentence has 251 words, too many for a picture; draw one of at most 250 words$"
    for kind in ("alignment", "parses", "attention", "distances"):
        with pytest.raises(DataError, match=fault):
            getattr(figures, f"draw_{kind}")(stub, example)
    for draw in (figures.draw_parents, figures.draw_tree_distances):
        with pytest.raises(DataError, match=fault):
            draw(example)


def test_alignment_shows_the_words_of_the_text():
    found = data(figures.draw_alignment(Stub(), EXAMPLE))  # type: ignore[arg-type]
    assert [row["word"] for row in found["1-0 rows"]] == ["der", "Hund", "da"]
    assert {(c["row"], c["column"]) for c in found["1-0 cells"]} == {(0, 0), (1, 1), (2, 0)}
    cased = Example(Side(["THE", "dog"]))
    found = data(figures.draw_alignment(Stub(), cased))  # type: ignore[arg-type]
    assert [row["word"] for row in found["1-0 columns"]] == ["THE", "dog"]
    assert [row["word"] for row in found["1-0 rows"]] == ["der", "Hund", "da"]
