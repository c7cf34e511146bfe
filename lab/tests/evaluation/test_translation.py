import sys
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation import translation
from syncattn_lab.evaluation.translation import (
    detokenize_moses,
    score_bleu,
    score_chrf,
    score_compound_split_bleu,
    score_ribes,
)


def test_bleu_by_hand():
    # Precisions 5/5, 4/4, 3/3, 2/2 and a brevity penalty of exp(1 - 6/5).
    score = score_bleu(["the cat sat on the"], ["the cat sat on the mat"])
    assert score.score == pytest.approx(81.873, abs=1e-3)
    assert score.length == pytest.approx(100 * 5 / 6)
    assert score_bleu([""], [""]).length == 0
    assert "tok:13a" in score.signature
    assert "tok:char" in score_bleu(["a"], ["a"], tokenize="char").signature


def test_compound_split_bleu_counts_the_parts_of_compounds():
    pytest.importorskip("sacremoses")
    # das Rhein - Main - Gebiet X: seven words, of whose n-grams the last one alone is wrong.
    hypothesis, reference = ["das Rhein-Main-Gebiet wächst"], ["das Rhein-Main-Gebiet schrumpft"]
    plain = score_bleu(hypothesis, reference, "none").score
    split = score_compound_split_bleu(hypothesis, reference, "de")
    ours = (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25
    assert split.score == pytest.approx(100 * ours) and plain < split.score
    assert "tok:moses-de+split-compounds" in split.signature
    # Words are Moses's: the full stop is one of its own.
    assert score_compound_split_bleu(
        ["ein gutes altes Haus."], ["ein gutes altes Haus ."], "de"
    ).score == pytest.approx(100)


def test_ribes_is_the_mean_over_sentences():
    # Words 0 2 1: two of three pairs ascend. The second sentence has no word in common.
    score = score_ribes(["a c b", "x"], ["a b c", "y z"])
    assert score.score == pytest.approx(100 * (2 / 3 + 0) / 2)
    assert score.signature == "nrefs:1|case:mixed|alpha:0.25|beta:0.1|tok:13a"


@pytest.mark.parametrize("measure", [score_bleu, score_chrf, score_ribes])
def test_counts_must_match(measure):
    with pytest.raises(DataError, match="1 translations, but 2 references"):
        measure(["a"], ["a", "b"])
    with pytest.raises(DataError, match="nothing to score"):
        measure([], [])


def test_moses_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(DataError, match=r"pip install 'syncattn-fairseq\[moses\]'"):
        detokenize_moses(["a ."], "en")


def test_blocks_of_sentences_have_the_same_score(monkeypatch):
    """sacreBLEU keeps all n-grams of the references that it is given at a time."""
    texts = [[f"a b c d e{n % 3} f{n % rate} g h" for n in range(10)] for rate in (2, 5)]
    whole = [score_bleu(*texts), score_chrf(*texts)]
    monkeypatch.setattr(translation, "BLOCK", 3)
    seen = []
    for metric in (BLEU, CHRF):
        count = metric._extract_corpus_statistics

        def watch(self: Any, *texts: Any, count: Any = count) -> Any:
            seen.append(len(texts[0]))
            return count(self, *texts)

        monkeypatch.setattr(metric, "_extract_corpus_statistics", watch)
    assert [score_bleu(*texts), score_chrf(*texts)] == whole and 0 < whole[0].score < 100
    assert seen == [3, 3, 3, 1] * 2
