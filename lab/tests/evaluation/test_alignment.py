import random
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.words import link_words
from syncattn_lab.evaluation.alignment import (
    Link,
    alignment_error_rate,
    format_links,
    read_alignments,
    say_one_based,
)

#: A bit for each of 16 links, which is drawn sooner than a set.
links = st.integers(0, 2**16 - 1).map(lambda n: {divmod(k, 4) for k in range(16) if n >> k & 1})


@given(st.lists(st.tuples(links, links, links)))
def test_agrees_with_a_loop(corpus):
    predicted = wanted = found = right = 0
    for sure, possible, hypothesis in corpus:
        for i in range(4):
            for j in range(4):
                link = (i, j)
                predicted += link in hypothesis
                wanted += link in sure
                if link in hypothesis:
                    found += link in sure
                    right += link in sure or link in possible
    score = alignment_error_rate(*([row[k] for row in corpus] for k in range(3)))
    if predicted and wanted:
        assert score.aer == pytest.approx(1 - (found + right) / (predicted + wanted))
        assert score.precision == pytest.approx(right / predicted)
        assert score.recall == pytest.approx(found / wanted)
    assert 0 <= score.aer <= 1


def test_empty_cases():
    nothing: list[set[Link]] = [set()]
    link = [{(0, 0)}]
    perfect = alignment_error_rate(nothing, nothing, nothing)
    assert (perfect.aer, perfect.precision, perfect.recall) == (0, 1, 1)
    silent = alignment_error_rate(link, nothing, nothing)
    assert (silent.aer, silent.precision, silent.recall) == (1, 1, 0)
    noisy = alignment_error_rate(nothing, nothing, link)
    assert (noisy.aer, noisy.precision, noisy.recall) == (1, 0, 1)


def test_the_margin_is_that_of_a_bootstrap():
    drawn = random.Random(3)
    corpus = [
        tuple({(drawn.randrange(4), drawn.randrange(4)) for _ in range(5)} for _ in range(2))
        for _ in range(200)
    ]

    def aer(rows: list[Any]) -> Any:
        sure, hypothesis = zip(*rows, strict=True)
        return alignment_error_rate(sure, [set() for _ in rows], hypothesis)

    rates = [aer(drawn.choices(corpus, k=len(corpus))).aer for _ in range(300)]
    assert aer(corpus).margin == pytest.approx(1.96 * statistics.stdev(rates), rel=0.1)
    assert aer(corpus[:1]).margin == 0, "one sentence says nothing of others"


def test_different_numbers_of_sentences():
    with pytest.raises(DataError, match=r"2 \(sure\), 1 \(possible\) and 2 \(hypothesis\)"):
        alignment_error_rate([set(), set()], [set()], [set(), set()])


def test_links_outside_the_words():
    with pytest.raises(DataError, match="outside the 3 source subwords and the 3 target"):
        link_words([(3, 0)], [2, 1], [1, 2])


lengths = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@given(lengths, lengths, st.data())
def test_word_links_agree_with_a_search(source, target, data):
    pairs = st.tuples(st.integers(0, sum(source) - 1), st.integers(0, sum(target) - 1))
    subword = data.draw(st.sets(pairs))
    expected = {
        (w, v)
        for w in range(len(source))
        for v in range(len(target))
        if any(
            sum(source[:w]) <= i < sum(source[: w + 1])
            and sum(target[:v]) <= j < sum(target[: v + 1])
            for i, j in subword
        )
    }
    assert link_words(subword, source, target) == expected


def test_read_alignments(tmp_path):
    path = tmp_path / "gold"
    path.write_text("1-1 2?3 3p1\n\n1-2\n", encoding="utf-8")
    assert read_alignments(path) == ([{(1, 1)}, set(), {(1, 2)}], [{(2, 3), (3, 1)}, set(), set()])
    assert read_alignments(path, one_based=True)[0] == [{(0, 0)}, set(), {(0, 1)}]


@pytest.mark.parametrize("score", ["-3.2", "-0", "1e-05", "-inf", "nan"])
@pytest.mark.parametrize("texts", ["", "a | b ||| der ||| ein Hund ||| "])
def test_what_fast_align_adds_to_links_is_left_out(tmp_path, texts, score):
    path = tmp_path / "links"
    path.write_text(f"{texts}0-0 1-2 ||| {score}\n{texts} ||| {score}\n", encoding="utf-8")
    assert read_alignments(path)[0] == [{(0, 0), (1, 2)}, set()]


@pytest.mark.parametrize("line", ["0-0:0.9 1-2:.8e-1", "0-0,1-2", "0-0\t1-2", "0-0 1-2:1 , "])
def test_links_with_probabilities_commas_and_tabs(tmp_path, line):
    path = tmp_path / "links"
    path.write_text(f"{line}\n\n")
    assert read_alignments(path)[0] == [{(0, 0), (1, 2)}, set()]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# Sentence pair (1) source length 2 target length 2 alignment score : 0.01\n", "GIZA"),
        ("26 2 1\n26 3 3 P\n", "numbered"),
    ],
)
def test_other_formats_of_links_are_named(tmp_path, text, name):
    path = tmp_path / "links"
    path.write_text(text)
    with pytest.raises(
        DataError, match=f"links:1: these are links in the format {name}.*write the links of a"
    ):
        read_alignments(path)


def test_gold_that_counts_from_one_is_noticed():
    warning = say_one_based(
        ([{(1, 1)}, set(), set()], [{(1, 2)}, set(), {(1, 2)}]), [{(1, 1)}, {(0, 1)}]
    )
    assert warning.startswith("2 sentences have gold links, but no link has the number 0")
    assert "--one-based" in warning
    for gold, printed in (([{(1, 1), (1, 0)}], [{(0, 1)}]), ([{(1, 1)}], [{(1, 1)}]), ([], [])):
        assert not say_one_based((gold, [set() for _ in gold]), printed)


def test_talp_differs_from_pharaoh_in_its_mark_and_its_first_number(tmp_path):
    pharaoh, talp = tmp_path / "pharaoh", tmp_path / "talp"
    pharaoh.write_text("0-0 1?2 12-3\n\n4?0\n", encoding="utf-8")
    talp.write_text("1-1 2p3 13-4\n\n5p1\n", encoding="utf-8")
    assert read_alignments(talp, one_based=True) == read_alignments(pharaoh)
    assert read_alignments(pharaoh)[1] == [{(1, 2)}, set(), {(4, 0)}]


@pytest.mark.parametrize(
    ("line", "message"), [("1-1 a-2", "'a-2' is not a link"), ("0-1", "'0-1' counts from 0")]
)
def test_bad_alignments_name_the_line(tmp_path, line, message):
    path = tmp_path / "gold"
    path.write_text(f"1-1\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"gold:2: {message}"):
        read_alignments(path, one_based=True)


@given(st.lists(links))
def test_what_is_written_in_order_can_be_read(tmp_path_factory, corpus):
    assert format_links({(10, 0), (2, 1), (2, 0)}) == "2-0 2-1 10-0"
    path = tmp_path_factory.getbasetemp() / "links"
    path.write_text("".join(f"{format_links(each)}\n" for each in corpus), encoding="utf-8")
    assert read_alignments(path) == (corpus, [set()] * len(corpus))
