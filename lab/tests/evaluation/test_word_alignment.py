from pathlib import Path

import pytest

from lab.tests.printed.making import line, printed
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.word_alignment import (
    WordAlignment,
    align_words,
    pair_sentences,
    read_word_alignments,
)

#: the d@@ og / d@@ er Hund
LINKS = {(0, 0), (0, 1), (2, 2)}
DOG = printed("d@@ er Hund", source="the d@@ og", links=LINKS, layer_links={(6, 3): [(0, 0)]})
WORDS = WordAlignment({(0, 0), (1, 1)}, (2, 2))


def test_links_of_subwords_become_links_of_words():
    assert align_words(DOG) == WORDS
    whole = printed("d@@ er Hund", source="the d@@ og", scheme="none", links=LINKS)
    assert align_words(whole) == WordAlignment(LINKS, (3, 3))
    assert align_words(DOG, (6, 3)) == WordAlignment({(0, 0)}, (2, 2))
    with pytest.raises(
        DataError, match="the output has no links; print links with syncattn-translate"
    ):
        align_words(DOG, (6, 0))


def test_gold_outside_the_sentence():
    alignment = WordAlignment(set(), (2, 1))
    alignment.check_gold({(1, 0), (0, 0)})
    for link in [(2, 0), (1, 1)]:
        with pytest.raises(DataError, match="lies outside the 2 source or the 1 target words"):
            alignment.check_gold({(0, 0), link})


def test_unknown_subwords():
    for text, scheme, count, lacks in (
        ("d@@ er Hund", "subword_nmt", None, False),
        ("<unk> er Hund", "subword_nmt", None, True),
        ("<unk> er Hund", "subword_nmt", 2, True),
        ("der <unk>", "subword_nmt", 2, False),
        ("der <unk>", "none", None, False),
    ):
        assert printed(text, scheme=scheme).target.lacks_words(count) == lacks


@pytest.mark.parametrize("side", ["source", "target"])
def test_no_alignment_where_words_are_hidden(side):
    texts = {"source": "the d@@ og", "target": "d@@ er Hund", side: "<unk> x y"}
    sentence = printed(**texts, links={(0, 0)})
    assert align_words(sentence) is None
    assert align_words(sentence, **{f"{side}_words": 3}) is not None


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
    layers = {(1, 0): [(0, 0)], (1, 2): [(2, 1)]}
    text = line("d@@ er", source="the d@@ og", links=[(0, 0)], layer_links=layers)
    found = read_word_alignments(write(tmp_path, text))
    first, last = WordAlignment({(0, 0)}, (2, 1)), WordAlignment({(1, 0)}, (2, 1))
    assert found == {None: [first], (1, 0): [first], (1, 2): [last]}
    without = line("d@@ er", source="the d@@ og", layer_links=layers)
    assert list(read_word_alignments(write(tmp_path, without))) == [(1, 0), (1, 2)]


def test_read_names_the_sentence(tmp_path):
    with pytest.raises(
        DataError, match="forced: sentence 0: a link lies outside the 3 source subwords"
    ):
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
