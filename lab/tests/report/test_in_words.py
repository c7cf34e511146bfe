from dataclasses import replace
from types import SimpleNamespace

import pytest

from lab.tests.evaluation.test_table import OLD
from syncattn_fairseq.data.doctor import Finding
from syncattn_lab.evaluation.significance import Significance
from syncattn_lab.report.in_words import (
    Comparison,
    say_certainty,
    say_differences,
    say_findings,
    say_missing,
    say_quality,
    say_ranks,
    say_sameness,
    say_structure,
)


def of(name: str, difference: float, p: float | None, baseline: str = "Base") -> Comparison:
    return Comparison(name, baseline, difference, p)


@pytest.mark.parametrize(
    ("difference", "p", "said"),
    [
        (-0.31, 0.35, "0.3 BLEU behind Base, which may be chance (p = 0.350)."),
        (1.2, 0.0004, "1.2 BLEU ahead of Base, which is more than chance (p < 0.001)."),
        (1.2, None, "1.2 BLEU ahead of Base; two seeds of each would tell whether that is "),
        (2, 0.05, "2.0 BLEU ahead of Base, which may be chance (p = 0.050)."),
        (2, 0.0496, "2.0 BLEU ahead of Base, which is more than chance (p < 0.050)."),
    ],
)
def test_one_system_and_its_baseline(difference, p, said):
    *first, text = say_differences([of("A", difference, p)])
    assert text.startswith("A is ") and said in text
    assert first == ([] if "more than chance" in said else ["It is not known which is better."])
    assert say_differences([of("A", -0.01, 1.0)])[1] == (
        "A has as much BLEU as Base, which may be chance (p = 1.000)."
    )
    assert say_differences([]) == []


def test_several_systems():
    found = [
        of("A", 1, 0.04),
        of("B", -2, 0.01),
        of("C", 3, 0.02),
        of("D", 9, 0.5),
        of("E", 1, None),
    ]
    [text] = say_differences(found)
    assert text == (
        "Against the baseline, Base, C (+3.0) and A (+1.0) are ahead and B (−2.0) is behind in "
        "BLEU by more than chance; the other 2 differences may be chance."
    )
    [first, text, last] = say_differences([*found[3:], of("F", -9.5, 0.2)])
    assert first == "It is not known which is better."
    assert text == (
        "All 3 differences to the baseline, Base, may be chance: in BLEU, F −9.5 (p = 0.200, "
        "corrected for both tests), D +9.0 (p = 0.500) and E +1.0."
    )
    assert last == "D, E and F were not compared with each other."
    many = [of(name, number, 0.5) for number, name in enumerate("GHIJ")]
    assert say_differences(many)[1:] == [
        "All 4 differences to the baseline, Base, may be chance: the largest in BLEU, J +3.0 "
        "(p = 0.500, corrected for all 4 tests)."
    ]
    _, *said = say_differences([of("A", 1, 0.9), of("R", 1, 0.9, "Other")])
    assert [text.split(",")[0] for text in said] == [
        *("A is 1.0 BLEU ahead of Base", "R is 1.0 BLEU ahead of Other")
    ]


def test_certainty():
    found = [Comparison("A", "Base", 1.0, 0.2, (-0.55, 2.0)), of("B", 1, 0.9)]
    assert say_certainty(found, over_seeds=False, sentences=1500) == (
        "95 % intervals of the differences in BLEU: A [−0.6, +2.0] to Base. 1,500 sentences and "
        "one training of each system were compared; other seeds may differ."
    )
    assert say_certainty(found[:1], over_seeds=True, sentences=9).endswith(
        "A [−0.6, +2.0] to Base, over the seeds of both."
    )
    assert say_certainty(found[1:], over_seeds=True, sentences=9) == ""


def test_structure():
    assert say_structure({}, {}) == ""
    assert say_structure({"A": 50, "B": 66.1, "C": 1}, {"A": 50}) == (
        "Attention finds the parents of 66 % (B), 50 % (A) and 1 % (C) of the source’s words."
    )
    assert say_structure({}, {"A": 50, "B": 6}) == (
        "Attention aligns words with an error rate (AER) of 50 % (A) and 6 % (B)."
    )
    many = dict(zip("ABCD", (30, 20, 97.2, 40), strict=True))
    assert say_structure(many, {}, {"A": 68.9}, 35.3) == (
        "Attention finds the parents of 97 % (C) to 20 % (B) of the source’s words; 69 % (A) of "
        "those words of the reference (35 % of all) whose parent is before them or the root."
    )
    assert say_sameness([["x", "x"], ["x", "y"]]) == "The translations of 1 of 2 sentences differ."
    assert say_sameness([["x"]]) == say_sameness([]) == ""


def test_measures_that_disagree():
    def ranked(**numbers: float) -> SimpleNamespace:
        return SimpleNamespace(scores=numbers)

    ours, theirs = ranked(BLEU=2.0, chrF=1.0, AER=9.0), ranked(BLEU=1.0, chrF=2.0, AER=8.0)
    assert (
        say_ranks({"A": ours, "B": theirs}) == "By BLEU, A is first; by chrF and AER, B is first."
    )
    assert say_ranks({"A": ours, "B": ranked(BLEU=1.0, chrF=1.0)}) == "", "equal numbers rank none"
    assert say_ranks({"A": ours}) == ""


def test_missing_words():
    counts = [({"missing": 2, "untranslated": 1}, {"missing": 0, "untranslated": 0})] * 3
    texts = {"reference": "x y", "translations": ["z", "x y"], "words": 2}
    sentences = [{"counts": [*each], **texts} for each in counts]
    sentences.append({"counts": [{}, {}], **texts})
    assert say_missing(["A", "B"], sentences) == (
        "Exactly as the reference: 0 (A), 3 (B) of 3 translations. Reference words missing: 6, 0 "
        "of 6. Source words left untranslated: 3, 0, in 3, 0 sentences. These counts are not "
        "tested."
    )
    one = [{"counts": [{"missing": 1, "untranslated": 0}], **texts}]
    assert say_missing(["A"], one) == (
        "Exactly as the reference: 0 of 1 translations. Reference words missing: 1 of 2."
    )
    assert say_missing(["A"], []) == say_missing(["A"], [{"counts": [{}]}]) == ""


def test_a_single_system_beside_no_model():
    score = replace(OLD, significance=Significance("old", 0.0, 1.25, None, ""))
    chrf = f"{OLD.scores['chrF']:.1f}"
    assert say_quality(score, {}) == f"BLEU is {OLD.bleu.score:.1f} ± 1.2, and chrF {chrf}."
    said = say_quality(OLD, {"the source itself": OLD, "no translation": OLD})
    assert said == (
        f"BLEU is {OLD.bleu.score:.1f}, and chrF {chrf}. For comparison, the source itself has "
        f"{OLD.bleu.score:.1f} BLEU and no translation has {OLD.bleu.score:.1f} BLEU."
    )


def test_findings_in_the_text():
    assert say_findings([]).startswith("No fault was found")
    found = Finding("twice", "test", 3, 1200, "a.en", True, "give each its own")
    assert say_findings([found, replace(found, severe=False)]) == (
        "2 kinds of faults in the texts, 1 severe; the first: test: the same file is given twice "
        "(3 of 1,200, 0.25 %), such as a.en; give each its own."
    )
