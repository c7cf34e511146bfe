import random

import numpy as np
import pytest
from scipy.stats import bootstrap

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.sentence_scores import (
    compare_sentence_scores,
    read_sentence_scores,
    tabulate_sentence_scores,
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
        (COMET + COMET, ":4: expected Segment 2, got Segment 0"),
        ("h\tSegment 1\tscore: 1\n", ":1: expected Segment 0, got Segment 1"),
    ],
)
def test_what_is_no_score(tmp_path, text, message):
    path = tmp_path / "scores"
    path.write_text(text)
    with pytest.raises(DataError, match=f"{path}{message}"):
        read_sentence_scores(path)


def test_verdicts_and_the_table():
    drawn = random.Random(1)
    base = [drawn.gauss(0, 1) for _ in range(200)]
    better = [value + drawn.gauss(0.5, 0.3) for value in base]
    found = compare_sentence_scores({"base": base, "up": better}, "base")
    assert found["up"].verdict == "better" and found["up"].p == pytest.approx(1e-4, rel=0.1)
    assert found["up"].difference == pytest.approx(np.subtract(better, base).mean())
    assert found["base"].p is found["base"].verdict is None and found["base"].difference == 0
    assert compare_sentence_scores({"b": better, "down": base}, "b")["down"].verdict == "worse"
    for baseline in ("other", ""):
        assert compare_sentence_scores({"up": better}, baseline)["up"].p is None
    seeded = np.random.default_rng(1)
    resampled = bootstrap((base,), np.mean, method="percentile", random_state=seeded)
    ends = resampled.confidence_interval
    assert found["base"].confidence == pytest.approx((ends.high - ends.low) / 2, rel=0.1)
    table = tabulate_sentence_scores("COMET", found).format().splitlines()
    assert table[0].split() == ["system", "COMET", "±", "95", "%", "difference", "p", "verdict"]
    assert table[2].split()[-1] == "better" and table[1].split()[-2:] == ["–", "–"]
