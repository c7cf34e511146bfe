import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.printed.making import printed
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.length import FEWEST, count_source_words, score_by_length
from syncattn_lab.evaluation.translation import count_ngrams, score_bleu

GOOD = "the cat sat on the mat"
BAD = "the mat sat on the cat"


def test_bleu_of_each_bucket():
    scores = score_by_length(count_ngrams([GOOD, BAD, GOOD, GOOD], [GOOD] * 4), [30, 7, 21, 8])
    assert list(scores) == ["1-10", "21-30"]
    assert scores["1-10"].sentences == scores["21-30"].sentences == 2
    assert scores["1-10"].bleu == pytest.approx(score_bleu([BAD, GOOD], [GOOD] * 2).score)
    assert scores["21-30"].bleu == pytest.approx(100)


@given(st.integers(0, 70))
def test_every_length_is_within_its_bucket(length):
    (bucket,) = score_by_length(count_ngrams(["a"], ["a"]), [length])
    first, _, last = bucket.partition("-")
    if last:
        assert int(first) <= max(length, 1) <= int(last)
    else:
        assert length >= int(bucket.removesuffix("+")) == 51


def test_intervals_of_the_difference_to_the_baseline():
    references = [f"the cat sat on the mat {n} times" for n in range(24)]
    ours = references[:20] + references[:4]
    theirs = [t.replace("cat", "dog") if n % 2 else t for n, t in enumerate(ours)]
    lengths = [7] * 20 + [30] * 4
    counts, base = (count_ngrams(texts, references) for texts in (ours, theirs))
    found = score_by_length(counts, lengths, base)
    assert found["21-30"].interval is None, "four sentences are too few"
    difference = (
        score_bleu(ours[:20], references[:20]).score
        - score_bleu(theirs[:20], references[:20]).score
    )
    assert found["1-10"].interval is not None
    low, high = found["1-10"].interval
    assert 0 < low < difference < high < 2 * difference
    same = score_by_length(counts, lengths, counts)["1-10"]
    assert same.interval == (0, 0), "the same samples"


def test_the_fewest_sentences_have_an_interval():
    counts = count_ngrams([GOOD] * FEWEST, [GOOD] * FEWEST)
    for some, interval in ((counts, (0, 0)), (counts[1:], None)):
        assert score_by_length(some, [7] * len(some), some)["1-10"].interval == interval


def test_source_words_of_the_first_output_that_has_them():
    plain = [printed("x"), printed("x")]
    others = [printed("x", source="the d@@ og"), printed("x")]
    assert count_source_words([plain, others]) == [2, 0]
    with pytest.raises(DataError, match="no output has the source; give --source"):
        count_source_words([[printed("x")]])
