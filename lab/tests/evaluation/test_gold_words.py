"""Analyses in a splitter's words, compared with gold whose words are others."""

from dataclasses import replace

import pytest

from lab.tests.printed.making import printed
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.pieces import MARK
from syncattn_lab.evaluation.gold_groups import group_words
from syncattn_lab.evaluation.gold_words import move_links, read_gold_words
from syncattn_lab.evaluation.scoring import Gold, Output, ScoringOptions, score_systems

SOURCE, TARGET = "The re-run  didn't end.", "Im Zoo."
PIECES = [f"{MARK}The {MARK}re - run {MARK}did n't {MARK}end .", f"{MARK}I m {MARK}Zoo ."]
#: The parser's words: The re-run did n't end . and In dem Zoo .
SPANS = {"source": "0-3 4-10 12-15 15-18 19-22 22-23", "target": "0-2 0-2 3-6 6-7"}
HEADS = {"source": [2, 5, 5, 5, 0, 5], "target": [3, 3, 0, 3]}
#: The splitter's: The re - run didn't end . and Im Zoo .
FOUND = {"source_heads": [2, 5, 4, 6, 6, 0, 3], "target_heads": [2, 0, 1]}


@pytest.fixture
def words(tmp_path):
    found = {}
    for side, text in (("source", SOURCE), ("target", TARGET)):
        (tmp_path / side).write_text(f"{SPANS[side]}\n\n", encoding="utf-8")
        found[side] = read_gold_words([text, "No parse."], tmp_path / side)
    return found


def analyse(**changed):
    fields = {**FOUND, "links": [(0, 0), (4, 0), (7, 2)], "forced": True} | changed
    first = printed(PIECES[1], source=PIECES[0], scheme="raw:uax29", **fields)
    return [first, printed("▁No", source="▁No", scheme="raw:uax29", **NO)]


NO = {"source_heads": [0], "target_heads": [0], "links": [(0, 0)], "forced": True}


def make_gold(**changed):
    fields = {
        "source_heads": [HEADS["source"], None],
        "target_heads": [HEADS["target"], None],
        "source": [SOURCE, "No parse."],
        "source_labels": [["det", "subj", "aux", "neg", "root", "p"], None],
        "alignments": ([{(0, 0), (2, 1)}, set()], [{(3, 2)}, set()]),
    }
    return Gold([TARGET, "No parse."], **fields | changed)


def test_parts_of_a_gold_word_are_one_word_and_gold_words_of_one_word_are_one(words):
    outputs, gold = group_words({"A": Output(analyse(), analyse())}, make_gold(), words)
    sentence, other = outputs["A"].forced
    assert sentence.source.words == ["The", "re-run", "didn't", "end", "."]
    assert sentence.source.lengths == [1, 3, 2, 1, 1]
    assert [str(sentence.source)[a:b] for a, b in sentence.source.spans] == sentence.source.words
    # The last part of re-run has its head; the full stop's is a part of it.
    assert sentence.source.heads == [2, 4, 4, 0, 2]
    assert (sentence.target.words, sentence.target.heads) == (["Im", "Zoo", "."], [2, 0, 1])
    assert sentence.links == {(0, 0), (2, 0), (4, 1)}
    assert gold.source_heads[0] == [2, 4, 4, 0, 4], "did and n't depend on end"
    assert [*gold.source] == ["The re-run didn't end .", "No parse."]
    assert gold.source_labels[0] == ["det", "subj", "aux", "root", "p"]
    assert gold.target_heads[0] == [2, 0, 2], "Im has the head of its shallowest word"
    assert [part[0] for part in gold.alignments] == [{(0, 0), (2, 0)}, {(2, 1)}]
    assert gold.source_heads[1] is gold.source_labels[1] is None
    assert other == analyse()[1], "nothing is known of its words"


def test_attachment_counts_groups(words):
    outputs, gold = group_words({"A": Output(analyse(), analyse())}, make_gold(), words)
    score = score_systems(outputs, gold, ScoringOptions())["A"]
    assert (score.source_attachment.counted, score.source_attachment.uas) == (5, 4 / 5)
    assert (score.target_attachment.counted, score.target_attachment.uas) == (2, 1 / 2)


def test_words_of_translations_are_not_those_of_references(words):
    outputs, gold = group_words({"A": Output(analyse())}, make_gold(), words)
    [sentence, _] = outputs["A"].beam
    assert len(sentence.source.words) == 5 and gold.source_heads[0] == [2, 4, 4, 0, 4]
    assert sentence.target == analyse()[0].target and gold.target_heads[0] == HEADS["target"]


def test_systems_without_words_do_not_count(words):
    plain = Output([printed("Im Zoo ."), printed("No")])
    outputs, gold = group_words({"P": plain, "A": Output(analyse(), analyse())}, make_gold(), words)
    assert [*outputs["P"].beam] == [*plain.beam]
    assert gold.source_heads[0] == [2, 4, 4, 0, 4] and gold.target_heads[0] == [2, 0, 2]
    assert gold.source[0] == "The re-run didn't end ."


def test_gold_of_other_words_is_refused(words):
    def group(outputs=None, **changed):
        outputs = {"A": analyse()} if outputs is None else outputs
        group_words({n: Output(o, o) for n, o in outputs.items()}, make_gold(**changed), words)

    with pytest.raises(
        DataError, match="^source: sentence 1: 5 heads for 6 words; give the output of"
    ):
        group(source_heads=[[0, 1, 1, 1, 1], None])
    with pytest.raises(DataError, match="^source: sentence 1: 1 labels for 6 words"):
        group(source_labels=[["x"], None])
    with pytest.raises(DataError, match="sentence 1: a link is outside the 4 words of the target"):
        group(alignments=([{(0, 4)}, set()], [set(), set()]))
    other = analyse()
    other[0] = replace(other[0], source=other[1].source)
    with pytest.raises(
        DataError, match="^system B: sentence 1: source: the analysis is of another"
    ):
        group({"A": analyse(), "B": other})
    other = analyse()
    coarse = other[0].source.group_words([True, *[False] * 6])
    other[0] = replace(other[0], source=coarse, links=set())
    with pytest.raises(DataError, match="^system B: splits the source into other words"):
        group({"A": analyse(), "B": other})


def test_links_are_those_of_gold_words():
    """Each word of a group has the links of the group."""
    gold = ["The re-run did n't end .", "I m Zoo ."]
    source, target = (read_gold_words([text])[0] for text in gold)
    moved = move_links(analyse(layer_links={(1, 0): [(1, 2)]})[0], source, target)
    assert moved.links == {(0, 0), (0, 1), (2, 0), (2, 1), (3, 0), (3, 1), (5, 2)}
    assert moved.layer_links == {(1, 0): {(1, 2)}}
    assert (len(moved.source.words), len(moved.target.words)) == (6, 4)
    with pytest.raises(
        DataError, match="^target: the analysis is of another sentence: 'ImZoo.', but "
    ):
        move_links(analyse()[0], source, source)


def test_spans_are_of_the_text(tmp_path):
    path = tmp_path / "spans"
    path.write_text("0-3\n")
    with pytest.raises(DataError, match="spans: has 1 lines, but the text of the words has 2"):
        read_gold_words(["The", "old"], path)
    with pytest.raises(
        DataError, match="spans:1: the span 0-3 cannot follow 0-0 in a sentence of 2 char"
    ):
        read_gold_words(["Th"], path)
