"""Analyses, and the lines of JSON that hold them."""

import json
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import syncattn_fairseq
from syncattn_fairseq.cli import translate
from syncattn_fairseq.inference import Analysis, Decoding
from syncattn_fairseq.inference.record import (
    Record,
    SideRecord,
    make_record,
    read_record,
    write_record,
)
from tests.checkpoints import Corpus
from tests.fuzz.mutation import fuzzed, mutate, refusing

ARCHITECTURES = ["transformer_syncattn", "transformer_lpsi", "transformer_lisa", "transformer"]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def model(request: Any, small_corpus: Corpus) -> Any:
    return small_corpus.load(small_corpus.checkpoint(request.param))


def test_an_analysis_is_what_the_single_questions_answer(small_corpus, model):
    sources, targets = ["", *small_corpus.lines("test.en")], ["", *small_corpus.lines("test.de")]
    found = model.analyse(sources, targets, every_layer=True)
    assert [analysis.text for analysis in found] == sources
    for alignment, analysis in zip(model.align(sources, targets), found, strict=True):
        np.testing.assert_allclose(alignment.attention, analysis.alignment.attention, atol=1e-6)
    for layer in (1, 2, 3):
        alignments = model.align(sources, targets, layer=layer)
        for alignment, analysis in zip(alignments[1:], found[1:], strict=True):
            other = analysis.layer_alignments[layer]
            np.testing.assert_allclose(alignment.attention, other.attention, atol=1e-6)
    if "parses" in model.shows:
        for pair, analysis in zip(model.parse(sources, targets), found, strict=True):
            for one, other in (
                (pair.source, analysis.source_parse),
                (pair.target, analysis.target_parse),
            ):
                assert (one is None) == (other is None)
                assert one is None or one.heads == other.heads
    else:
        assert {analysis.source_parse for analysis in found} == {None}
    if "distances" in model.shows:
        for pair, analysis in zip(model.distances(sources, targets), found, strict=True):
            assert pair.source.layers == analysis.source_distances.layers
            assert pair.target.layers == analysis.target_distances.layers
    else:
        assert {analysis.source_distances for analysis in found} == {None}
    assert {analysis.forced for analysis in found} == {True}


def test_a_translation_has_the_probability_of_its_subwords_and_its_end(small_corpus, model):
    sources, targets = small_corpus.lines("test.en"), small_corpus.lines("test.de")
    expected = [
        analysis.score * (len(analysis.translation.sentence.pieces) + 1)
        for analysis in model.analyse(sources, targets)
    ]
    assert model.score(sources, targets) == pytest.approx(expected, abs=1e-5)
    # What the search found is scored again.
    translations = model.translate(sources, decoding=Decoding(max_len=5))
    assert all(score < 0 for score in model.score(sources, translations))
    assert np.isnan(model.score([""], ["ja"]))


def test_own_translations_keep_the_score_of_the_search(small_corpus, model):
    sources = small_corpus.lines("test.en")
    search = Decoding(max_len=5)
    translations = model.translate(sources, decoding=search)
    found = model.analyse(sources, decoding=search)
    assert [analysis.translation for analysis in found] == translations
    assert [a.score for a in found] == pytest.approx([t.score for t in translations], abs=1e-5)
    assert not any(analysis.forced for analysis in found)
    given = model.analyse(sources, translations)
    assert [a.score for a in given] == [t.score for t in translations]
    assert not any(analysis.forced for analysis in given)


def test_a_forced_translation_has_the_score_that_the_search_would_give_it(small_corpus):
    """Of a translation that ends, in a checkpoint and in its export."""
    pytest.importorskip("ctranslate2")
    model = small_corpus.load(small_corpus.trained())
    exported = syncattn_fairseq.load(small_corpus.exported("ctranslate2"), device="cpu")
    sources = small_corpus.learned()
    translations = model.translate(sources)
    for each in (model, exported):
        found = each.analyse(sources, [str(translation) for translation in translations])
        assert all(analysis.forced for analysis in found)
        same = 0
        for translation, analysis in zip(translations, found, strict=True):
            if translation.sentence.pieces == analysis.translation.sentence.pieces:
                assert analysis.score == pytest.approx(translation.score, abs=1e-3)
                same += 1
        total = each.score(sources[:1], [str(translations[0])])[0]
        assert total == pytest.approx(
            found[0].score * (len(found[0].translation.sentence.pieces) + 1), abs=1e-3
        )
        assert same >= 3
    assert found[0].source_parse is None and found[0].alignment.links


def test_lines_are_read_as_they_were_written(small_corpus, model):
    sources, targets = ["", *small_corpus.lines("test.en")], ["", *small_corpus.lines("test.de")]
    plain = not hasattr(model.models[0].decoder, "choose_head")
    head = None if plain else 2
    for analysis in model.analyse(sources, targets, every_layer=True, head=head):
        line = write_record(make_record(analysis, "may be cut"))
        assert "\n" not in line
        record = read_record(line)
        assert (record.source.text, record.target.text) == (analysis.text, analysis.translation)
        assert record.source.words == analysis.source.words
        assert record.target.subwords == analysis.translation.sentence.pieces
        assert record.links == analysis.alignment.links
        assert record.layer_links == {
            (layer, head or 0): alignment.links
            for layer, alignment in analysis.layer_alignments.items()
        }
        for side, parse in (
            (record.source, analysis.source_parse),
            (record.target, analysis.target_parse),
        ):
            assert side.heads == (parse and parse.heads) and side.tree == (parse and parse.tree)
        if analysis.source_distances:
            gaps = analysis.source_distances
            for layer in gaps.layers:
                found = record.source.distances[layer]
                assert found == pytest.approx(gaps.layers[layer], abs=1e-6)
            assert sum(record.source.lengths) == len(record.source.subwords)
        else:
            assert record.source.distances == {}
        assert (record.forced, record.fault) == (True, "may be cut")
        assert (record.score is None) == np.isnan(analysis.score)


SIDE = {"text": "a b", "words": ["a", "b"], "subwords": ["▁a", "▁", "b"], "lengths": [1, 2]}
SIDE["heads"] = [2, 0]
ROW = {
    "score": -0.5,
    "source": {**SIDE, "tree": [2, 0], "distances": {"1": [0.5, -1, 0]}},
    "target": {"text": "x", "words": ["x"], "subwords": ["x"], "lengths": [1]},
    "links": [[1, 0]],
    "layer_links": {"6": [], "6.3": [[0, 0]]},
}


def test_what_is_left_out_is_nothing():
    record = read_record(json.dumps(ROW))
    assert record.source == SideRecord(
        "a b", ["a", "b"], ["▁a", "▁", "b"], [1, 2], [2, 0], [2, 0], {1: [0.5, -1.0, 0.0]}
    )
    assert record.layer_links == {(6, 0): [], (6, 3): [(0, 0)]}
    bare = read_record(json.dumps({"source": ROW["target"], "target": ROW["target"]}))
    side = SideRecord("x", ["x"], ["x"], [1])
    assert bare == Record(side, side) and bare.links is None


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"score": "1"}, "score"),
        ({"score": float("nan")}, "score"),
        ({"forced": 1}, "forced"),
        ({"fault": "two\nlines"}, "fault"),
        ({"source": None}, "source"),
        ({"source": {**SIDE, "text": "\ud800"}}, "source.text"),
        ({"source": {**SIDE, "words": "ab"}}, "source.words"),
        ({"source": {**SIDE, "subwords": [1]}}, "source.subwords"),
        ({"source": {**SIDE, "lengths": [1, 1]}}, "source.lengths"),
        ({"source": {**SIDE, "lengths": [3]}}, "source.lengths"),
        ({"source": {**SIDE, "lengths": [3, 0]}}, "source.lengths"),
        ({"source": {**SIDE, "heads": [3, 0]}}, "source.heads"),
        ({"source": {**SIDE, "heads": [0]}}, "source.heads"),
        ({"source": {**SIDE, "tree": [True, 0]}}, "source.tree"),
        ({"source": {**SIDE, "distances": []}}, "source.distances"),
        ({"source": {**SIDE, "distances": {"0": [1, 2, 3]}}}, "source.distances.0"),
        ({"source": {**SIDE, "distances": {"1": [1, 2]}}}, "source.distances.1"),
        ({"source": {**SIDE, "distances": {"1": [1, 1, 1e300]}}}, "source.distances.1"),
        ({"links": [[2, 0]]}, "links"),
        ({"links": [[0]]}, "links"),
        ({"layer_links": {"6.": []}}, "layer_links"),
        ({"layer_links": {"6": [[0, 1]]}}, "6"),
    ],
)
def test_anything_else_is_refused_by_its_place(changes, place):
    with pytest.raises(ValueError, match=f"^{place}: unexpected value ") as error:
        read_record(json.dumps({**ROW, **changes}))
    assert len(str(error.value).splitlines()) == 1


def test_other_lines_are_refused():
    for line, fault in (("der Hund", "it is not JSON"), ("[]", "object"), ("[" * 9999, "deeply")):
        with pytest.raises(ValueError, match=f"^not a line of syncattn-translate.*{fault}"):
            read_record(line)


def test_mutated_lines_are_read_or_refused():
    valid = json.dumps(ROW).encode()

    def check(seed: int) -> None:
        line = mutate(valid, Random(seed)).decode("utf-8", "replace")
        with refusing("", ValueError):
            read_record(line)

    fuzzed(check)()


def test_the_command_prints_a_line_for_each_pair(small_corpus, model, tmp_path, capfd):
    for side in ("en", "de"):
        lines = small_corpus.lines(f"test.{side}")[:3]
        (tmp_path / side).write_text("".join(f"{line}\n" for line in [*lines, ""]))
    command = [f"--path={model.name}", f"--data-bin={small_corpus.data}", "--jsonl"]
    command += [f"--subwords={small_corpus.subwords}", f"--input={tmp_path / 'en'}"]
    assert translate.main([*command, f"--force={tmp_path / 'de'}", "--every-layer"]) == 0
    printed = [*map(read_record, capfd.readouterr().out.splitlines())]
    sources, targets = ([*(tmp_path / side).read_text().split("\n")][:4] for side in ("en", "de"))
    analyses = model.analyse(sources, targets, every_layer=True)
    assert [record.links for record in printed] == [x.alignment.links for x in analyses]
    assert [record.forced for record in printed] == [True] * 4
    assert all(record.layer_links for record in printed[:3])

    assert translate.main([*command, "--max-len=4", "--beam=2"]) == 0
    printed = [*map(read_record, capfd.readouterr().out.splitlines())]
    search = Decoding(beam=2, max_len=4)
    translations = model.translate(sources, decoding=search)
    assert [record.target.text for record in printed] == translations
    assert not any(record.forced or record.layer_links for record in printed)
    faults = [record.fault.startswith("the search reached the") for record in printed]
    assert faults == [translation.cut for translation in translations]

    (tmp_path / "de").write_text("ein\n")
    assert translate.main([*command, f"--force={tmp_path / 'de'}"]) == 1
    assert "both files need one line for each sentence" in capfd.readouterr().err


def test_an_analysis_of_nothing_can_be_written(model):
    [analysis] = model.analyse([""], [""])
    assert isinstance(analysis, Analysis)
    record = read_record(write_record(make_record(replace(analysis, score=float("nan")))))
    assert record.score is None and record.source.words == [] and record.links == []
