from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from syncattn_lab.evaluation.significance import (
    Significance,
    compare_with_baseline,
    randomisation,
)
from syncattn_lab.evaluation.translation import count_ngrams, score_bleu, sum_bleu

REFERENCES = [f"man {n} saw a dog and it saw him" + " too" * (n % 3) for n in range(20)]


def damaged(*which: int) -> list[str]:
    return [
        text.replace("a dog and it", "it dog and a") if n in which else text
        for n, text in enumerate(REFERENCES)
    ]


SYSTEMS = {
    "good": damaged(),
    "better": damaged(0, 1),
    "base": damaged(*range(1, 6)),
    "copy": damaged(*range(1, 6)),
    "as bad": damaged(*range(7, 12)),  # as long as those of the baseline
}


def compare(
    texts: dict[str, list[str]], baseline: str, references: list[str] = REFERENCES
) -> dict[str, Significance]:
    counts = {name: count_ngrams(text, references) for name, text in texts.items()}
    return compare_with_baseline(counts, baseline)


@pytest.fixture(scope="module")
def compared() -> dict[str, Significance]:
    return compare(SYSTEMS, "base")


def test_a_difference_beyond_chance(compared):
    """Which system is better is said by the p that is shown, and by no other."""
    worse = compare(SYSTEMS, "good")["base"]
    # Five sentences differ: with fewer, more than one exchange in twenty makes such a difference.
    assert compared["good"].p == pytest.approx(2 / 2**5, abs=0.01)
    assert compared["good"].corrected is not None
    assert compared["good"].p < compared["good"].corrected, "for all systems"
    assert compared["good"].verdict == "not known"
    many = compare({"a": damaged(), "b": damaged(*range(8))}, "b")
    assert many["a"].p == pytest.approx(2 / 2**8, abs=0.004) and many["a"].verdict == "better"
    six = compare({"a": damaged(), "b": damaged(*range(6))}, "b")["a"]
    assert six.p == pytest.approx(2 / 2**6, abs=0.007) and six.verdict == "better", "enough"
    back = compare({"a": damaged(), "b": damaged(*range(8))}, "a")
    assert back["b"].verdict == "worse" and back["b"].p == many["a"].p
    assert back["b"].difference == -many["a"].difference < 0
    assert worse.verdict == "not known" and many["b"].verdict is None


def test_one_sentence_is_no_evidence():
    """sacreBLEU gives it the smallest possible p, since no exchange makes a larger difference."""
    two = {"a": damaged(), "b": damaged(3)}
    assert compare(two, "b")["a"].p == 1
    [_, theirs] = PairedTest(
        [("b", two["b"]), ("a", two["a"])], {"BLEU": BLEU()}, [REFERENCES], "ar"
    )()[1]["BLEU"]
    assert theirs.p_value is not None and theirs.p_value < 0.001


def test_otherwise_it_is_sacrebleus_randomisation():
    generator = np.random.default_rng(1)
    references = [" ".join(generator.choice(list("abcdefgh"), 9)) for _ in range(60)]
    ours, theirs = (
        [" ".join(w if generator.random() > rate else "x" for w in t.split()) for t in references]
        for rate in (0.2, 0.25)
    )
    found = compare({"a": ours, "b": theirs}, "b", references)["a"]
    systems = [("b", theirs), ("a", ours)]
    kinds = [
        PairedTest(systems, {"BLEU": BLEU()}, [references], kind)()[1]["BLEU"][1]
        for kind in ("ar", "bs")
    ]
    assert found.p == pytest.approx(kinds[0].p_value, abs=0.02) and 0.02 < found.p < 0.9
    assert found.confidence == pytest.approx(kinds[1].ci, rel=0.1)
    # What sacreBLEU's bootstrap makes of it counts one direction only.
    assert kinds[1].p_value < 0.7 * found.p


WORDS = st.lists(st.lists(st.sampled_from("abc"), max_size=7).map(" ".join), min_size=1, max_size=4)


@given(WORDS, st.data())
def test_bleu_is_sacrebleus(references, data):
    size = {"min_size": len(references), "max_size": len(references)}
    word = st.lists(st.sampled_from("abc"), max_size=7).map(" ".join)
    ours, theirs = (data.draw(st.lists(word, **size)) for _ in range(2))
    scores = [BLEU(force=True).corpus_score(texts, [references]).score for texts in (ours, theirs)]
    counts = [[count_ngrams(texts, references)] for texts in (ours, theirs)]
    assert randomisation(*counts)[0] == pytest.approx(scores[0] - scores[1], abs=1e-6)


def test_randomisation_agrees_with_all_ways_to_swap(compared):
    differing = [0, 2, 3, 4, 5]  # to swap the others does nothing
    differences = []
    for swaps in product([False, True], repeat=len(differing)):
        one, other = list(SYSTEMS["base"]), list(SYSTEMS["better"])
        for index, swap in zip(differing, swaps, strict=True):
            if swap:
                one[index], other[index] = other[index], one[index]
        differences.append(
            abs(score_bleu(one, REFERENCES).score - score_bleu(other, REFERENCES).score)
        )
    exact = np.mean([value > differences[0] - 1e-9 for value in differences])
    assert 0 < exact < 0.5
    assert compared["better"].p == pytest.approx(exact, abs=0.02)


def test_the_interval_of_the_difference_is_of_the_same_samples_of_both(compared):
    assert compared["base"].interval is None and compared["copy"].interval == (0.0, 0.0)
    ours, theirs = (count_ngrams(SYSTEMS[name], REFERENCES) for name in ("good", "base"))
    generator = np.random.default_rng(12345)
    differences = []
    for _ in range(1000):
        drawn = generator.integers(len(ours), size=len(ours))
        differences.append(
            float(sum_bleu(ours[drawn]).score) - float(sum_bleu(theirs[drawn]).score)
        )
    assert compared["good"].interval == pytest.approx(np.quantile(differences, [0.025, 0.975]))


def test_what_is_no_difference_and_the_baseline(compared):
    for name in ("copy", "as bad"):
        assert (compared[name].p, compared[name].verdict) == (1, "not known")
    assert (compared["base"].p, compared["base"].difference) == (None, 0)
    assert {score.baseline for score in compared.values()} == {"base"}


def test_the_same_translations_give_the_same_result(compared):
    two = {name: SYSTEMS[name] for name in ("better", "base")}
    assert "|bs:1000|ar:10000|seed:12345|" in compared["better"].signature
    assert compared["better"].signature.startswith("nrefs:1|")
    again = compare(two, "base")["better"]
    assert again.corrected == again.p, "there is one comparison"
    assert replace(again, corrected=compared["better"].corrected) == compared["better"]
