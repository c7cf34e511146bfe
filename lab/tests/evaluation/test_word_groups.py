"""Recall and precision of words in groups, against slow loops."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.group_scores import ALL
from syncattn_lab.evaluation.group_tables import describe_groups
from syncattn_lab.evaluation.length import FEWEST
from syncattn_lab.evaluation.measures import holm
from syncattn_lab.evaluation.word_groups import (
    KINDS,
    LINK,
    UNLINKED,
    GroupedText,
    SystemWords,
    list_kinds,
    score_word_groups,
)

WORDS = st.sampled_from("abc")


@st.composite
def draw_test_set(draw):
    """Draw a small test set with everything, and two systems."""
    size = draw(st.integers(1, 3))
    source, references, links, heads, labels, tags = [], [], [], [], [], []
    systems = {name: ([], []) for name in ("ours", "theirs")}
    for _ in range(size):
        source.append(draw(st.lists(WORDS, min_size=1, max_size=3)))
        words = len(source[-1])
        references.append(draw(st.lists(WORDS, max_size=3)))
        links.append(draw_links(draw, words, references[-1]))
        heads.append(draw(st.lists(st.integers(0, words), min_size=words, max_size=words)))
        labels.append(draw(st.lists(st.sampled_from("xy"), min_size=words, max_size=words)))
        tags.append(draw(st.sampled_from([None, ["T"] * words])))
        for translations, of_system in systems.values():
            translations.append(draw(st.lists(WORDS, max_size=3)))
            of_system.append(draw_links(draw, words, translations[-1]))
    counts = {"a": draw(st.sampled_from([1, 9, 10, 99999])), "b": draw(st.sampled_from([0, 100]))}
    text = GroupedText(references, source, links, heads, labels, tags, counts, counts)
    return text, {name: SystemWords(*both) for name, both in systems.items()}


def draw_links(draw, words, target):
    if not target or not draw(st.integers(0, 4)):
        return draw(st.sampled_from([None, set()]))
    pairs = st.tuples(st.integers(0, words - 1), st.integers(0, len(target) - 1))
    return draw(st.sets(pairs, max_size=3))


def slow_groups(text, kind, index, word):
    """The groups of one source word."""
    if kind == "label":
        return {text.source_labels[index][word]}
    if kind == "pos":
        return {text.source_tags[index][word]}
    if kind == "unseen":
        return {"seen" if text.source_training.get(text.source[index][word], 0) else "unseen"}
    heads = text.source_heads[index]
    if kind == "depth":
        path = [word + 1]
        while heads[path[-1] - 1] and len(path) <= len(heads):
            path.append(heads[path[-1] - 1])
        if heads[path[-1] - 1]:
            return {"in a cycle"}
        return {["root", "1", "2", "3", "4", "5+"][min(len(path) - 1, 5)]}
    length = abs(heads[word] - word - 1)
    if heads[word] == 0:
        return {"root"}
    side = "parent to the left" if heads[word] <= word + 1 - 1 else "parent to the right"
    return {side, "1" if length < 2 else "2" if length < 3 else "3-4" if length < 5 else "5+"}


def slow_score(text, kind, measure, system):
    """Found and all words of each group, one word after another."""
    found = {}
    for index, reference in enumerate(text.references):
        ours, links, theirs = reference, text.links[index], system.words[index]
        if measure == "precision":
            ours, links, theirs = theirs, system.links[index], reference
        for place, word in enumerate(ours):
            if kind == ALL:
                groups = {ALL}
            elif kind == "length":
                groups = {"1-10"}
            elif kind == "frequency":
                count = text.target_training.get(word, 0)
                limits = {1: "0", 10: "1-9", 100: "10-99", 1000: "100-999", 10000: "1000-9999"}
                groups = {next((limits[n] for n in limits if count < n), "10000+")}
            else:
                untagged = kind == "pos" and text.source_tags[index] is None
                if links is None or untagged:
                    continue
                own = [i for i, j in links if j == place]
                if kind == LINK:
                    groups = set() if own else {UNLINKED}
                else:
                    groups = set().union(*(slow_groups(text, kind, index, i) for i in own))
            share = Fraction(min(ours.count(word), theirs.count(word)), ours.count(word))
            for group in groups:
                before = found.get(group, (0, 0))
                found[group] = before[0] + share, before[1] + 1
    return found


@settings(deadline=None, max_examples=25)
@given(draw_test_set())
def test_recall_and_precision_are_those_of_a_slow_loop(drawn):
    text, systems = drawn
    scores = score_word_groups(text, systems, KINDS, "theirs")
    got = {(s.kind, s.measure, s.system, s.group): (s.right, s.total) for s in scores}
    assert len(got) == len(scores)
    expected = {
        (kind, measure, name, group): (float(found), words)
        for kind in (ALL, *KINDS, LINK)
        for measure in ("recall", "precision")
        for name, system in systems.items()
        for group, (found, words) in slow_score(text, kind, measure, system).items()
    }
    assert got.keys() == expected.keys()
    for key, (found, words) in expected.items():
        assert got[key] == (pytest.approx(found), words)
    assert all(s.fraction == pytest.approx(s.right / s.total) for s in scores)
    assert all(s.interval is None and s.p is None and s.verdict is None for s in scores)
    held = {}
    for kind in ("label", "pos", "arc", "depth", "unseen"):
        for index, source in enumerate(text.source):
            for word in range(len(source)):
                if kind != "pos" or text.source_tags[index]:
                    for group in slow_groups(text, kind, index, word):
                        held.setdefault((kind, group), []).append((index, word))
    for one in scores:
        words = held.get((one.kind, one.group))
        alike = [group for group, others in held.items() if others == words]
        first = [group for group in alike if KINDS.index(group[0]) < KINDS.index(one.kind)]
        if first:
            assert one.same_as in first
        elif one.same_as:
            assert one.same_as in alike and one.same_as[0] == one.kind


def make_test_set(sentences=40):
    """A test set of which ``better`` has all of label x, and ``worse`` every second."""
    references = [["gut", f"wort{n}"] for n in range(sentences)]
    text = GroupedText(
        references,
        links=[{(0, 0), (1, 1)}] * sentences,
        source_labels=[["x", "y"]] * sentences,
        target_training={"gut": 40},
    )
    worse = [["gut" if n % 2 else "schlecht", f"wort{n}"] for n in range(sentences)]
    return text, {"worse": SystemWords(worse), "better": SystemWords(references)}


def test_a_large_difference_is_not_chance_and_an_equal_group_is():
    text, systems = make_test_set()
    scores = score_word_groups(text, systems, ["label", "frequency"], "worse")
    by_name = {(s.kind, s.group, s.measure, s.system): s for s in scores}
    x = by_name["label", "x", "recall", "better"]
    assert (x.fraction, x.total, x.sentences, x.interval) == (1, 40, 40, None)
    assert x.difference.difference == 0.5 and 0.3 < x.difference.low < 0.4
    assert 0.6 < x.difference.high < 0.7
    assert x.p < 0.001 and x.verdict == "better"
    y = by_name["label", "y", "recall", "better"]
    assert y.difference.difference == 0 and y.p == 1 and y.verdict == "not known"
    worse = by_name["label", "x", "recall", "worse"]
    assert worse.fraction == 0.5 and 0.3 < worse.interval[0] < 0.4
    assert worse.p is None and worse.verdict is None and worse.difference is None
    # A word that is not in the references is of frequency 0 here, but has no label without links.
    assert by_name["frequency", "0", "precision", "worse"].total == 60
    assert ("label", "x", "precision", "worse") not in by_name


def test_all_p_are_corrected_together():
    text, systems = make_test_set()
    scores = score_word_groups(text, systems, ["label"], "worse")
    tested = [score for score in scores if score.p is not None]
    assert len(tested) == 4  # recall of all, x and y, and precision of all
    assert [score.corrected for score in tested] == holm([score.p for score in tested])


def test_groups_of_the_same_words_have_one_test():
    references = [["lief", f"wort{n}", "ja"] for n in range(40)]
    labels = [["root", "obj"] if n % 3 else ["root", "nsubj"] for n in range(40)]
    text = GroupedText(
        references,
        links=[{(0, 0), (1, 1)}] * 40,
        source_heads=[[0, 1]] * 40,
        source_labels=labels,
    )
    worse = SystemWords([["lief" if n % 2 else "ging", f"wort{n}"] for n in range(40)])
    systems = {"worse": worse, "better": SystemWords(references)}
    scores = score_word_groups(text, systems, ["label", "arc", "depth"], "worse")
    found = {(s.kind, s.group): s for s in scores if (s.system, s.measure) == ("better", "recall")}
    assert {one: s.same_as for one, s in found.items() if s.same_as} == {
        ("arc", "root"): ("label", "root"),
        ("depth", "root"): ("label", "root"),
        ("arc", "parent to the left"): ("arc", "1"),
        ("depth", "1"): ("arc", "1"),
    }
    once = [s.p for s in scores if s.p is not None and s.same_as is None]
    assert len(once) == 7  # all twice, root, obj, nsubj, arc 1, no link
    assert found["depth", "root"].p < 0.001
    assert found["depth", "root"].corrected == found["label", "root"].corrected
    assert found["label", "root"].corrected == 7 * found["label", "root"].p
    assert found[LINK, UNLINKED].total == 40 and [*found][-1] == (LINK, UNLINKED)
    notes = " ".join(describe_groups(scores, "worse"))
    assert "corrected for all of the 7 tests here" in notes
    assert "root by arc (root by label), parent to the left by arc (1 by arc)" in notes


def test_a_group_in_few_sentences_is_not_tested():
    text, systems = make_test_set(FEWEST - 1)
    scores = score_word_groups(text, systems, ["label"], "worse")
    assert all(s.interval is None and s.difference is None and s.p is None for s in scores)
    text, systems = make_test_set(FEWEST)
    scores = score_word_groups(text, systems, ["label"], "worse")
    varying = [s for s in scores if s.system == "worse" and s.group in (ALL, "x")]
    assert len(varying) == 3 and all(s.interval is not None for s in varying)
    assert all((s.p is not None) == (s.system == "better") for s in scores)


def test_a_group_that_is_small_in_the_baseline_is_not_tested():
    """It has an interval, where it is large enough itself."""
    references = [["a", "b"]] * 40
    text = GroupedText(references, target_training={"b": 1})
    few = SystemWords([["a", "b"] if n < 5 else ["a"] for n in range(40)])
    many = SystemWords([["a", "b"] if n % 2 else ["b"] for n in range(40)])
    scores = score_word_groups(text, {"few": few, "many": many}, ["frequency"], "few")
    [score] = [
        score
        for score in scores
        if (score.measure, score.group, score.system) == ("precision", "1-9", "many")
    ]
    assert score.sentences == 40 and score.difference is None and score.p is None


def test_frequent_labels_come_first_and_other_groups_in_their_order():
    sizes = {"rare": 1, "often": 3}
    labels = [label for label, size in sizes.items() for _ in range(size)]
    words = [f"{n}" for n in range(5)]
    links = {(n, n) for n in range(4)}
    heads = [2, 0, 2, 3]
    text = GroupedText([words], links=[links], source_labels=[labels], source_heads=[heads])
    scores = score_word_groups(text, {"one": SystemWords([words])}, ["label", "arc"])
    recalls = [(s.kind, s.group) for s in scores if s.measure == "recall"]
    assert recalls == [
        *((ALL, ALL), ("label", "often"), ("label", "rare")),
        *(("arc", "root"), ("arc", "1"), ("arc", "parent to the left")),
        *(("arc", "parent to the right"), (LINK, UNLINKED)),
    ]


def test_kinds_are_those_with_all_that_they_need():
    text = GroupedText([["a"]])
    assert list_kinds(text) == []
    assert list_kinds(GroupedText([["a"]], [["b"]], target_training={})) == ["frequency", "length"]
    assert list_kinds(make_test_set()[0]) == ["label", "frequency"]
    text, _ = make_test_set()
    assert "arc" not in list_kinds(text)


@pytest.mark.parametrize(
    ("text", "system", "kinds", "message"),
    [
        ({}, {}, ["colour"], "words cannot be grouped by 'colour'; choose from label, pos, "),
        ({}, {}, ["arc"], "--by arc needs --links and --source-heads"),
        ({"source": []}, {}, [], "--source: has 0 sentences, but there are 1 references"),
        ({}, {"words": []}, [], "system s: has 0 sentences, but there are 1 references"),
        (
            {"links": [{(0, 1)}]},
            {},
            [],
            "--links: sentence 1: link 0-1, counted from 0, lies outsi",
        ),
        (
            {"source": [["a"]], "links": [{(1, 0)}]},
            {},
            [],
            "link 1-0, counted from 0, lies outside the 1 source or the 1 target words",
        ),
        ({}, {"links": [{(-1, 0)}]}, [], "system s: sentence 1: link -1-0"),
        (
            {"source": [["a"]], "source_heads": [[0, 1]]},
            {},
            [],
            "sentence 1: words, parents, labels or tags of 1 and 2 words",
        ),
    ],
)
def test_what_does_not_fit_is_said(text, system, kinds, message):
    text = GroupedText([["a"]], **text)
    system = SystemWords(**{"words": [["a"]], **system})
    with pytest.raises(DataError, match=message.replace("?", r"\?")):
        score_word_groups(text, {"s": system}, kinds)


def test_the_baseline_is_a_system():
    text, systems = make_test_set()
    with pytest.raises(DataError, match="no system is named best; choose one of worse, better"):
        score_word_groups(text, systems, [], "best")


def test_intervals_are_those_of_a_slow_bootstrap():
    text, systems = make_test_set(12)
    [score] = [
        s
        for s in score_word_groups(text, systems, ["label"])
        if (s.group, s.system) == ("x", "worse")
    ]
    generator = np.random.default_rng(12345)
    drawn = []
    for _ in range(1000):
        sample = generator.integers(12, size=12)
        drawn.append(sum(int(n) % 2 for n in sample) / 12)
    assert score.interval == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))
