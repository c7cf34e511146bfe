import pytest

from syncattn_fairseq.lab.evaluation.differences import Comparison
from syncattn_fairseq.lab.report.in_words import (
    say_differences,
    say_sameness,
    say_structure,
)


def of(name: str, difference: float, p: float | None, baseline: str = "Base") -> Comparison:
    return Comparison(name, baseline, difference, p)


@pytest.mark.parametrize(
    ("difference", "p", "said"),
    [
        (-0.31, 0.35, "A is 0.3 BLEU behind Base, which may be chance (p = 0.35)."),
        (1.2, 0.0004, "A is 1.2 BLEU ahead of Base, which is more than chance (p < 0.001)."),
        (1.2, None, "A is 1.2 BLEU ahead of Base; two seeds of each would tell whether that is "),
        (-0.01, 1.0, "A has as much BLEU as Base, which may be chance (p = 1)."),
    ],
)
def test_one_system_and_its_baseline(difference, p, said):
    [text] = say_differences([of("A", difference, p)], over_seeds=True)
    assert text.startswith(said)


def test_one_training_says_nothing_of_others():
    [text] = say_differences([of("A", 2, 0.01)], over_seeds=False)
    assert text.endswith(" more than chance (p = 0.01); other seeds may differ.")
    [text] = say_differences([of("A", 2, 0.06)], over_seeds=False)
    assert text.endswith(", which may be chance (p = 0.06).")


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
        "chance; what the other 2 differ by may be chance."
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
