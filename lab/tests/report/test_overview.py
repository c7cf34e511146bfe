from dataclasses import replace

import pytest

from lab.tests.evaluation.test_table import OLD
from syncattn_lab.evaluation.length import BucketScore
from syncattn_lab.evaluation.significance import Significance
from syncattn_lab.report.overview import measured_charts

SCORE = replace(OLD, significance=Significance("old", 0.0, 1.0, None, ""))


@pytest.mark.parametrize(
    ("interval", "shown", "said"),
    [((-1.0, 3.0), ["1-10 (490)"], True), (None, ["1-10 (490)", "11-20 (2)"], False)],
)
def test_lengths_of_few_sentences_are_left_out(interval, shown, said):
    old = {"1-10": BucketScore(490, 20.0), "11-20": BucketScore(2, 30.0)}
    new = {"1-10": BucketScore(490, 21.0, interval), "11-20": BucketScore(2, 3.0)}
    scores = {"old": replace(SCORE, bleu_by_length=old), "new": replace(SCORE, bleu_by_length=new)}
    [chart] = measured_charts(scores)
    rows = chart.specification["datasets"]["rows"]
    assert [row["part"] for row in rows] == shown
    assert ("fewer than 10 sentences" in chart.note) == said
