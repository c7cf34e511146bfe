from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.analysis_lines import LinksOf
from syncattn_lab.evaluation.word_alignment import (
    WordAlignment,
    align_words,
    hides_words,
    pair_sentences,
    read_word_alignments,
)
from syncattn_lab.printed.decoded import DecodedSentence

#: the d@@ og / d@@ er Hund
DOG = DecodedSentence("d@@ er Hund", "", "the d@@ og", links={(0, 0), (0, 1), (2, 2)})
WORDS = WordAlignment({(0, 0), (1, 1)}, (2, 2))


def test_links_of_subwords_become_links_of_words():
    assert align_words(DOG, "subword_nmt") == WORDS
    assert align_words(DOG, "none") == WordAlignment({(0, 0), (0, 1), (2, 2)}, (3, 3))


def test_gold_outside_the_sentence():
    alignment = WordAlignment(set(), (2, 1))
    alignment.check_gold({(1, 0), (0, 0)})
    for link in [(2, 0), (1, 1)]:
        with pytest.raises(DataError, match="lies outside the 2 source or the 1 target words"):
            alignment.check_gold({(0, 0), link})


def test_unknown_subwords():
    assert not hides_words("d@@ er Hund", 2, "subword_nmt")
    assert hides_words("<unk> er Hund", 3, "subword_nmt")
    assert hides_words("<unk> er Hund", 3, "subword_nmt", true_words=2)
    assert not hides_words("der <unk>", 2, "subword_nmt", true_words=2)
    assert not hides_words("der <unk>", 2, "none")


@pytest.mark.parametrize("side", ["source", "hypothesis"])
def test_no_alignment_where_words_are_hidden(side):
    texts = {"source": "the d@@ og", "hypothesis": "d@@ er Hund", side: "<unk> x y"}
    sentence = DecodedSentence(**texts, translation="", links={(0, 0)})
    true_words = {"source_words": 3} if side == "source" else {"target_words": 3}
    assert align_words(sentence, "subword_nmt") is None
    assert align_words(sentence, "subword_nmt", **true_words) is not None


PRINTED = "S-1\tyes\nH-1\t-1\t<unk>\nA-1\t0-0\nS-0\tthe d@@ og\nH-0\t-1\thund\nA-0\t0-0\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "forced"
    path.write_text(text, encoding="utf-8")
    return path


def test_read(tmp_path):
    path = write(tmp_path, PRINTED)
    forward = WordAlignment({(0, 0)}, (2, 1))
    assert read_word_alignments(path) == {None: [forward, None]}
    assert read_word_alignments(path, backward=True) == {None: [forward.reversed(), None]}
    assert read_word_alignments(path, "none")[None][1] == WordAlignment({(0, 0)}, (1, 1))


def test_layers_are_read_one_by_one(tmp_path):
    layers = "L-0\t1.2\t1-0\nL-1\t1.2\t0-0\nL-0\t1\t0-0\nL-1\t1\t0-0\n"
    found = read_word_alignments(write(tmp_path, PRINTED + layers), "subword_nmt")
    forward, last = WordAlignment({(0, 0)}, (2, 1)), WordAlignment({(1, 0)}, (2, 1))
    expected = {None: [forward, None], LinksOf(1): [forward, None], LinksOf(1, 2): [last, None]}
    assert found == expected and list(found) == list(expected)
    only = PRINTED.replace("A-", "P-") + layers
    assert list(read_word_alignments(write(tmp_path, only), "subword_nmt")) == [
        LinksOf(1),
        LinksOf(1, 2),
    ]


def test_read_names_the_sentence(tmp_path):
    with pytest.raises(DataError, match="forced: sentence 1: a link lies outside the 3 source"):
        read_word_alignments(write(tmp_path, PRINTED.replace("A-0\t0-0", "A-0\t3-0")))


def test_common_sentences():
    other = WordAlignment({(1, 0)}, (2, 2))
    rows = pair_sentences({"a": [WORDS, None, WORDS], "b": [other, WORDS, None]})
    assert list(rows) == [[WORDS, other], None, None]
    assert list(pair_sentences({"a": [None, WORDS]})) == [None, [WORDS]]


def test_outputs_of_other_sentences():
    with pytest.raises(DataError, match=r"^c: sentence 2: \(1, 2\) source .*\(2, 2\) in b; give"):
        c = [WORDS, WordAlignment(set(), (1, 2))]
        list(pair_sentences({"a": [WORDS, None], "b": [WORDS, WORDS], "c": c}))
    with pytest.raises(DataError, match="no sentence is left"):
        list(pair_sentences({"a": [WORDS, None], "b": [None, WORDS]}))
