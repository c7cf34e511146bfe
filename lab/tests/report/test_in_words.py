from dataclasses import replace

import pytest

from lab.tests.evaluation.test_table import OLD
from syncattn_lab.evaluation.length import BucketScore
from syncattn_lab.evaluation.significance import Significance
from syncattn_lab.report.in_words import (
    Comparison,
    say_changes,
    say_differences,
    say_sameness,
    say_structure,
)


def of(name: str, difference: float, p: float | None, baseline: str = "Base") -> Comparison:
    return Comparison(name, baseline, difference, p)


@pytest.mark.parametrize(
    ("difference", "p", "seeds", "said"),
    [
        (-0.31, 0.35, True, "0.3 BLEU behind Base, which may be chance (p = 0.35)."),
        (1.2, 0.0004, True, "1.2 BLEU ahead of Base, which is more than chance (p < 0.001)."),
        (1.2, None, True, "1.2 BLEU ahead of Base; two seeds of each would tell whether that is "),
        # One training says nothing of others.
        (2, 0.01, False, "Base, which is more than chance (p = 0.01); other seeds may differ."),
        (2, 0.06, False, "2.0 BLEU ahead of Base, which may be chance (p = 0.06)."),
    ],
)
def test_one_system_and_its_baseline(difference, p, seeds, said):
    [text] = say_differences([of("A", difference, p)], over_seeds=seeds)
    assert text.startswith("A is ") and said in text
    [text] = say_differences([of("A", -0.01, 1.0)], over_seeds=True)
    assert text == "A has as much BLEU as Base, which may be chance (p = 1)."


def test_several_systems():
    found = [
        of("A", 1, 0.04),
        of("B", -2, 0.01),
        of("C", 3, 0.02),
        of("D", 9, 0.5),
        of("E", 1, None),
    ]
    [text] = say_differences(found, over_seeds=True)
    assert text == (
        "Against Base, C (+3.0) and A (+1.0) are ahead and B (−2.0) is behind in BLEU by more than "
        "chance; the other 2 differences may be chance."
    )
    [text] = say_differences([*found[3:], of("F", -9.5, 0.2)], over_seeds=True)
    assert text == ("All 3 differences to Base may be chance; the largest is F’s, −9.5 BLEU.")
    said = say_differences([of("A", 1, 0.9), of("R", 1, 0.9, "Other")], over_seeds=True)
    assert [text.split(",")[0] for text in said] == [
        *("A is 1.0 BLEU ahead of Base", "R is 1.0 BLEU ahead of Other")
    ]


def test_structure():
    assert say_structure({}, {}) == ""
    assert say_structure({"A": 50, "B": 66.1, "C": 1}, {"A": 50}) == (
        "B’s heads find the parents of 66 % of the source’s words, C’s 1 %."
    )
    assert say_structure({}, {"A": 50, "B": 6}) == (
        "B’s attention aligns words with an error rate of 6 %, A’s 50 %."
    )
    assert say_structure({"A": 97.2}, {}) == (
        "A’s heads find the parents of 97 % of the source’s words."
    )
    assert say_sameness([["x", "x"], ["x", "y"]]) == "The translations of 1 of 2 sentences differ."
    assert say_sameness([["x"]]) == say_sameness([]) == ""


def test_which_lengths_and_words_change():
    old = {"1-10": BucketScore(9, 20.0), "11-20": BucketScore(9, 30.0)}
    new = {"1-10": BucketScore(9, 22.0, (1.0, 3.0)), "11-20": BucketScore(9, 29.0, (-3.0, 1.0))}
    base = replace(OLD, bleu_by_length=old, significance=Significance("old", 0.0, 1.0, None, ""))
    test = Significance("old", 1.0, 1.0, 0.01, "")
    scores = {"old": base, "new": replace(OLD, bleu_by_length=new, significance=test)}
    sentences = [
        {"reference": "der Hund, der da", "translations": ["ein Hund da", "der der der"]},
        {"reference": "da", "translations": ["das", "da da"]},
    ]
    assert say_changes(scores, sentences) == [
        "new against old: it gains in sentences of 1-10 words (+2.0 BLEU); it has “der” (+2) more "
        "often and “Hund” (−1) less often where the reference has it."
    ]
    same = [{"reference": "x", "translations": ["x", "x"]}]
    scores["new"] = replace(scores["new"], bleu_by_length=None)
    assert say_changes(scores, same) == ["new against old: no length stands out; no word does."]
