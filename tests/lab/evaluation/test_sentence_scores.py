import random
from itertools import product

import numpy as np
import pytest
from scipy.stats import bootstrap

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.lab.evaluation.sentence_scores import (
    compare_sentence_scores,
    format_sentence_scores,
    read_sentence_scores,
)

COMET = "hyp.de\tSegment 0\tscore: 0.8321\nhyp.de\tSegment 1\tscore: -0.1\nhyp.de\tscore: 0.3661\n"


def test_numbers_and_the_output_of_comet(tmp_path):
    path = tmp_path / "scores"
    path.write_text(COMET)
    assert read_sentence_scores(path) == [0.8321, -0.1], "not the mean"
    path.write_text("0.5\n1e-3\n-2\n")
    assert read_sentence_scores(path) == [0.5, 0.001, -2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5\nbad\n", ":2: "),
        ("0.5\n\n", ":2: "),
        ("nan\n", ":1: "),
        (COMET + COMET, ":4: Segment 0 where Segment 2 should be"),
        ("h\tSegment 1\tscore: 1\n", ":1: Segment 1 where Segment 0"),
    ],
)
def test_what_is_no_score(tmp_path, text, message):
    path = tmp_path / "scores"
    path.write_text(text)
    with pytest.raises(DataError, match=f"{path}{message}"):
        read_sentence_scores(path)


def test_p_is_that_of_all_exchanges():
    ours, theirs = [0.9, 0.4, 0.8, 0.7, 0.6], [0.5, 0.5, 0.4, 0.6, 0.1]
    differences = np.subtract(ours, theirs)
    every = [abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=5)]
    exact = np.mean([value >= abs(differences.sum()) - 1e-9 for value in every])
    found = compare_sentence_scores({"base": theirs, "new": ours}, "base")
    assert found["new"].p == pytest.approx(exact, abs=0.01)
    assert found["new"].difference == pytest.approx(differences.mean())
    assert exact > 0.05 and found["new"].verdict == "not known"
    assert found["base"].p is found["base"].verdict is None and found["base"].difference == 0
    assert compare_sentence_scores({"new": ours}, "base")["new"].p is None
    assert compare_sentence_scores({"base": theirs, "new": ours})["new"].p is None


def test_confidence_and_verdicts():
    drawn = random.Random(1)
    base = [drawn.gauss(0, 1) for _ in range(200)]
    better = [value + drawn.gauss(0.5, 0.3) for value in base]
    found = compare_sentence_scores({"base": base, "up": better}, "base")
    assert found["up"].verdict == "better" and found["up"].p == pytest.approx(1e-4, rel=0.1)
    assert compare_sentence_scores({"b": better, "down": base}, "b")["down"].verdict == "worse"
    seeded = np.random.default_rng(1)
    resampled = bootstrap((base,), np.mean, method="percentile", random_state=seeded)
    ends = resampled.confidence_interval
    assert found["base"].confidence == pytest.approx((ends.high - ends.low) / 2, rel=0.1)
    table = format_sentence_scores("COMET", found).splitlines()
    assert table[0].split() == ["system", "COMET", "±", "95", "%", "difference", "p", "verdict"]
    assert table[2].split()[-1] == "better" and table[1].split()[-2:] == ["–", "–"]
