from dataclasses import replace

import pytest

from syncattn_lab.evaluation.group_scores import GroupScore
from syncattn_lab.evaluation.intervals import Interval
from syncattn_lab.report.where import name_group, say_where_it_is_weak, say_where_they_differ


def score(system: str, kind: str, group: str, share: float, **known: object) -> GroupScore:
    return replace(GroupScore(kind, group, "recall", system, share, 100, 50, share / 100), **known)


def compared(kind: str, group: str, share: float, base: float, verdict: str) -> list[GroupScore]:
    difference = Interval((share - base) / 100, 0.0, 0.0)
    ours = score("New", kind, group, share, difference=difference, p=0.1, corrected=0.2)
    return [score("Old", kind, group, base), replace(ours, verdict=verdict)]


def test_groups_that_differ_by_more_than_chance():
    scores = [
        *compared("all", "all", 90, 80, "better"),
        *compared("label", "amod", 71.8, 66.1, "better"),
        *compared("arc", "5+", 93, 90, "better"),
        *compared("label", "x", 50, 10, "not known"),
        *compared("label", "aux", 86.94, 92.14, "worse"),
    ]
    assert say_where_they_differ(scores) == [
        "New finds more of the adjectives (amod) (71.8 %, Old 66.1 %), words on arcs of 5 and more "
        "(93.0 %, Old 90.0 %); fewer of the auxiliaries (aux) (86.9 %, Old 92.1 %): more than "
        "chance."
    ]
    many = [each for n in range(5) for each in compared("pos", f"T{n}", 50 + n, 40, "better")]
    [said] = say_where_they_differ(many)
    assert said.startswith("New finds more of the words tagged T4 (54.0 %, Old 40.0 %), words ")
    assert said.endswith("T2 (52.0 %, Old 40.0 %) and 2 other groups: more than chance.")
    precision = [replace(each, measure="precision") for each in many]
    assert say_where_they_differ(precision) == []


def test_no_group_differs_by_more_than_chance():
    scores = [
        *compared("label", "amod", 71.8, 66.1, "not known"),
        *compared("length", "1-10", 50, 60, "not known"),
    ]
    clearest = replace(scores[1], p=0.01, corrected=0.061)
    assert say_where_they_differ([scores[0], clearest, *scores[2:]]) == [
        "In none of 2 groups of words is a difference certain. The clearest is in adjectives "
        "(amod): New 71.8 % of 100 words, Old 66.1 %, which may be chance (p = 0.061, corrected "
        "for all 2 tests of words)."
    ]
    again = replace(clearest, kind="arc", same_as=("label", "amod"), p=0.001)
    assert say_where_they_differ([*scores[:1], clearest, *scores[2:], again]) == (
        say_where_they_differ([*scores[:1], clearest, *scores[2:]])
    ), "the same words count once"
    newer = replace(clearest, system="Newer", corrected=0.07)
    [said] = say_where_they_differ([scores[0], clearest, newer])
    assert "New and Newer 71.8 % of 100 words, Old 66.1 %" in said
    assert "(p = 0.061 and p = 0.070, corrected for all 2 tests" in said
    alone = [score("New", "label", "amod", 50)]
    assert say_where_they_differ(alone) == say_where_they_differ([]) == []


def test_where_a_single_system_is_weak():
    every = score("A", "all", "all", 90)
    weak = score("A", "frequency", "0", 10, interval=(0.05, 0.15))
    weaker = score("A", "unseen", "unseen", 5, interval=(0.0, 0.1))
    unsure = score("A", "label", "amod", 50, interval=(0.4, 0.91))
    small = score("A", "label", "x", 1)
    assert say_where_it_is_weak([every, weak, unsure, small, weaker]) == (
        "Fewest are found of the words that training lacked (5.0 %) and words that training never "
        "had (10.0 %); of all words, 90.0 %."
    )
    assert say_where_it_is_weak([every, unsure]).startswith("No group of words is found more")
    assert say_where_it_is_weak([unsure]) == ""


@pytest.mark.parametrize(
    ("kind", "group", "name"),
    [
        ("label", "csubj", "words labelled csubj"),
        ("link", "no link", "words without a link"),
        ("pos", "NOUN", "words tagged NOUN"),
        ("arc", "root", "roots"),
        ("arc", "1", "words next to their parent"),
        ("arc", "3-4", "words on arcs of 3-4"),
        ("arc", "parent to the left", "words with their parent to the left"),
        ("depth", "5+", "words 5+ below the root"),
        ("depth", "root", "roots"),
        ("frequency", "1-9", "words that training had 1-9 times"),
        ("length", "51+", "words in sentences of 51+ words"),
        ("unseen", "seen", "words that training had"),
    ],
)
def test_names_of_groups(kind, group, name):
    assert name_group(kind, group) == name
