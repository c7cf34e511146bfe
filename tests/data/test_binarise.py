import tracemalloc
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.base.text import read_blocks
from syncattn_fairseq.data.binarise import (
    HEADS,
    LABELS,
    AnnotatedText,
    TextCounts,
    are_words,
    binarise,
    check_lengths,
    count_values,
)
from syncattn_fairseq.data.labels import build_dictionary
from syncattn_fairseq.data.parses import are_trees, check_tree
from syncattn_fairseq.data.subwords import mark_subwords
from syncattn_fairseq.data.words import SCHEMES, find_word_starts, join_subwords
from tests.data.test_mmap_blocks import write_items


def write(
    folder: Path,
    text: str,
    values: str,
    words: str | None = None,
    kind: str = HEADS,
    scheme: str = "subword_nmt",
    on_bad_parse: str = "stop",
) -> AnnotatedText:
    paths = folder / "bpe.en", folder / f"train.{kind}.en", folder / "train.en"
    for path, content in zip(paths, (text, values, words), strict=True):
        if content is not None:
            path.write_text(content, encoding="utf-8")
    plain = None if words is None else paths[2]
    return AnnotatedText(paths[0], kind, paths[1], scheme, plain, on_bad_parse)


def write_text_dataset(path: Path, sizes: list[int]) -> None:
    write_items(path, map(torch.zeros, sizes), np.int32)


def check(source: AnnotatedText) -> Counter[object]:
    """Read everything, and count the values."""
    return count_values(source)


def read_back(
    source: AnnotatedText, folder: Path, dictionary: Dictionary | None = None
) -> tuple[list[list[int]], TextCounts]:
    """Binarise as after fairseq's own binarisation (n subwords and the end of sentence)."""
    lines = source.text.read_text(encoding="utf-8").splitlines()
    write_text_dataset(folder / "text", [len(line.split()) + 1 for line in lines])
    counts = binarise(source, folder / "marks", dictionary)
    check_lengths(source, folder / "marks", folder / "text")
    dataset = MMapIndexedDataset(str(folder / "marks"))
    assert len(dataset) == len(lines)
    return [dataset[index].tolist() for index in range(len(dataset))], counts


def test_marks_read_back_with_empty_sentences(tmp_path):
    source = write(
        tmp_path, "\na@@ b c\nx y@@ z@@\n\nd\n\n", "\n2 0\n\n\n0\n\n", "\nab c\nx yz\n\nd\n\n"
    )
    check(source)
    marks, counts = read_back(source, tmp_path)
    assert marks == [[], [2, -1, 0], [-2, -2, -1], [], [0], []]
    assert str(counts) == ("6 sentences, 5 words, 7 subwords, 1 without parse, 0 parses dropped")
    assert {path.name for path in tmp_path.glob("*marks*")} == {"marks.bin", "marks.idx"}


@pytest.mark.parametrize(("scheme", "text"), [("sentencepiece", "▁die ▁stra sse"), ("none", "")])
def test_sentencepiece_may_fold_case_itself(tmp_path, scheme, text):
    """Its rules nmt_nfkc_cf do, and make ss of ß."""
    source = write(tmp_path, text or "die strasse", "2 0\n", "Die Stra\u00dfe\n", scheme=scheme)
    if scheme == "sentencepiece":
        assert check(source) == {2: 1, 0: 1}
    else:
        with pytest.raises(DataError, match="word 1 is 'die' in .* but 'Die' in"):
            check(source)
    other = write(tmp_path, "▁die ▁stra tze", "2 0\n", "Die Straße\n", scheme="sentencepiece")
    with pytest.raises(DataError, match="word 2 is 'stratze' in"):
        check(other)


@st.composite
def corpora(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Sentences as heads (empty = no parse) and subwords per word."""
    corpus = []
    for _ in range(draw(st.integers(1, 6))):
        lengths = draw(st.lists(st.integers(1, 3), max_size=6))
        order = draw(st.permutations(range(1, len(lengths) + 1)))
        heads = [0] * len(lengths)
        for place, word in enumerate(order[1:], 1):
            heads[word - 1] = order[draw(st.integers(0, place - 1))]
        corpus.append((heads if draw(st.booleans()) else [], lengths))
    return [*corpus, ([0], [1])]


@given(corpora())
def test_marks_hold_the_heads_and_the_words(tmp_path_factory, corpus):
    folder = tmp_path_factory.mktemp("corpus")
    text = "".join(" ".join("▁a" + " b" * (n - 1) for n in lens) + "\n" for _, lens in corpus)
    words = "".join(" ".join("a" + "b" * (n - 1) for n in lens) + "\n" for _, lens in corpus)
    heads = "".join(" ".join(map(str, heads)) + "\n" for heads, _ in corpus)
    source = write(folder, text, heads, words, scheme="sentencepiece")
    check(source)
    marks, counts = read_back(source, folder)
    for row, (sentence_heads, lengths) in zip(marks, corpus, strict=True):
        assert [mark for mark in row if mark != -1] == (sentence_heads or [-2] * len(lengths))
        bounds = [index for index, mark in enumerate(row) if mark != -1] + [len(row)]
        assert [end - start for start, end in pairwise(bounds)] == lengths
    assert counts.without_parse == sum(not heads and bool(lens) for heads, lens in corpus)


@given(corpora(), st.sets(st.sampled_from("abcdef"), min_size=1))
def test_marks_hold_the_indices_of_labels(tmp_path_factory, corpus, known):
    folder = tmp_path_factory.mktemp("corpus")
    text = "".join(" ".join("a@@ " * (n - 1) + "b" for n in lens) + "\n" for _, lens in corpus)
    labels = [["fedcba"[head % 6] for head in heads] for heads, _ in corpus]
    source = write(folder, text, "".join(" ".join(row) + "\n" for row in labels), kind=LABELS)
    assert check(source) == Counter("".join("".join(row) for row in labels))

    dictionary = build_dictionary(Counter(known))
    marks, counts = read_back(source, folder, dictionary)
    index = {label: number for number, label in enumerate(sorted(known), 4)}
    for row, sentence, (_, lengths) in zip(marks, labels, corpus, strict=True):
        words = [index.get(label, 3) for label in sentence] or [-2] * len(lengths)
        assert row == [
            mark for word, n in zip(words, lengths, strict=True) for mark in [word] + [-1] * (n - 1)
        ]
    assert counts.unknown == sum(row.count(3) for row in marks)
    assert (f", {counts.unknown} unknown labels" in str(counts)) == (counts.unknown > 0)


@pytest.mark.parametrize(
    ("kind", "text", "values", "words", "message"),
    [
        (HEADS, "a\nb\n", "0\n", None, "train.heads.en:1: the file has 1 lines, but"),
        (HEADS, "a\n", "0\n0\n", None, "train.heads.en:1: the file has 2 lines, but"),
        (HEADS, "a\nb\n", "0\n0\n", "a\n", "train.en:1: the file has 1 lines, but"),
        (HEADS, "", "", None, "bpe.en: the file is empty"),
        (HEADS, "\n\n", "\n\n", None, "bpe.en: every line is empty"),
        (HEADS, "a\nb c\n", "0\n0 3\n", None, "train.heads.en:2: head 3 is out of range 0..2"),
        (HEADS, "a\nb@@ c\n", "0\n0 1\n", None, "train.heads.en:2: 2 heads, but 1 words in "),
        (HEADS, "\n", "0\n", None, "train.heads.en:1: 1 heads, but 0 words in "),
        (HEADS, "a\nb@@ c\n", "0\n0\n", "a\nbd\n", "train.heads.en:2: word 1 is 'bc' in "),
        (HEADS, "a b\n", "0 1\n", "a b c\n", "train.heads.en:1: 2 words in "),
        (LABELS, "a\nb\n", "x\n", None, "train.labels.en:1: the file has 1 lines, but"),
        (LABELS, "a\nb@@ c\n", "x\nx y\n", None, "train.labels.en:2: 2 labels, but 1 words in "),
        (LABELS, "a\nb c\n", "x\nx\n", None, "train.labels.en:2: 1 labels, but 2 words in "),
        (LABELS, "a\nb@@ c\n", "x\nx\n", "a\nbd\n", "train.labels.en:2: word 1 is 'bc' in "),
    ],
)
def test_mismatches_name_file_and_line(tmp_path, kind, text, values, words, message):
    with pytest.raises(DataError) as error:
        check(write(tmp_path, text, values, words, kind))
    assert f"{tmp_path}/{message}" in str(error.value)
    assert "\n" not in str(error.value)


def test_dropped_labels_are_not_counted(tmp_path):
    text, labels = "a b\na@@ b c\nd\n", "x y\nx z z\ny\n"
    source = write(tmp_path, text, labels, kind=LABELS, on_bad_parse="drop")
    tally = check(source)
    assert tally == {"x": 1, "y": 2}
    marks, counts = read_back(source, tmp_path, build_dictionary(tally))
    assert marks == [[5, 4], [-2, -1, -2], [4]]
    assert counts.dropped == {"wrong number of labels": 1}


def test_more_labels_than_int16_holds(tmp_path):
    dictionary = build_dictionary(Counter({f"{number:05}": 1 for number in range(40_000)}))
    source = write(tmp_path, "a b\n", "39999 00000\n", kind=LABELS)
    assert read_back(source, tmp_path, dictionary)[0] == [[40_003, 4]]


def test_drop_keeps_the_sentence_without_labels(tmp_path):
    source = write(
        tmp_path,
        "a b\na@@ b c\na b\na b\na b\n",
        "2 0\n0 0\n0 2\n0 1 1\n0 1\n",
        "a b\nab c\na b\na b\na x\n",
        on_bad_parse="drop",
    )
    check(source)
    marks, counts = read_back(source, tmp_path)
    assert marks == [[2, 0], [-2, -1, -2], [-2, -2], [-2, -2], [-2, -2]]
    assert counts.dropped == {
        "several roots": 1, "cycle": 1, "wrong number of heads": 1, "words differ": 1,
    }  # fmt: skip
    assert "4 parses dropped (1 several roots, 1 cycle" in str(counts)


def slow_fault(text: str, heads: str, words: str) -> str | None:
    joined = join_subwords(text.split(), "subword_nmt")
    numbers = [int(head) for head in heads.split()]
    if not numbers:
        return None
    if len(numbers) != len(joined):
        return "wrong number of heads"
    try:
        check_tree(numbers)
    except BadParse as fault:
        return fault.reason
    return None if joined == words.split() else "words differ"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a b", "a@@ b c", "a  b@@", "a@@\u3000b c", "a@@ @@", "▁a b@@ c", ""]),
            st.sampled_from(
                ["2 0", "0 1", " 0\t1", "0 0", "2 1", "0", "0\u20031", "", "1 0 0", "3 0"]
            ),
            st.sampled_from(["a b", "ab c", "a b@@", "a@@\u3000b c", "a  b", "a ", "", "▁a bc"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_the_first_fault_is_found_and_all_can_be_dropped(tmp_path_factory, corpus):
    folder = tmp_path_factory.mktemp("corpus")
    corpus = [*corpus, ("a", "0", "a")]
    files = ["".join(line + "\n" for line in lines) for lines in zip(*corpus, strict=True)]
    faults = [slow_fault(*lines) for lines in corpus]
    first = next((number for number, fault in enumerate(faults, 1) if fault), None)
    source = write(folder, *files)
    with pytest.raises(DataError) if first else nullcontext() as error:
        check(source)
    assert first is None or f"train.heads.en:{first}: " in str(error.value)

    dropping = replace(source, on_bad_parse="drop")
    check(dropping)
    marks, counts = read_back(dropping, folder)
    assert counts.dropped == Counter(filter(None, faults))
    for row, (text, heads, _), fault in zip(marks, corpus, faults, strict=True):
        starts = find_word_starts(text.split(), "subword_nmt")
        numbers = [] if fault else [int(head) for head in heads.split()]
        assert row == mark_subwords(numbers or [-2] * sum(starts), starts)


@pytest.mark.parametrize("length", [1, 200_000])  # many sentences in a block, or one
@pytest.mark.parametrize(
    ("heads", "message"),
    [
        (["0", "0 1", "2 0 1"], "train.heads.en:2: 2 heads, but 1 words"),
        (["0", "0 1", "x"], "train.heads.en:2: 2 heads, but 1 words"),
        (["0", "x", "0 1"], "train.heads.en:2: expected one integer per word"),
        (["0", "1", "1"], "train.heads.en:2: 0 words have head 0"),
    ],
)
def test_the_first_fault_is_named_wherever_blocks_end(tmp_path, heads, message, length):
    text = ("w" * length + "\n") * 3
    source = write(tmp_path, text, "\n".join(heads) + "\n", text)
    with pytest.raises(DataError, match=message):
        check(source)
    source = replace(source, on_bad_parse="drop")
    (tmp_path / "train.heads.en").write_text("0\n1\n\n")
    marks, counts = read_back(source, tmp_path)
    assert marks == [[0], [-2], [-2]]
    assert str(counts).startswith("3 sentences, 3 words, 3 subwords, 1 without parse, 1 parses")


@pytest.mark.parametrize("space", ["\u3000", "\u00a0"])
def test_white_space_is_not_a_difference(tmp_path, space):
    """Inside a word, or as a word of its own, which is none."""
    for text, heads, words in (
        (f"▁a{space} b ▁½\n", "2 0\n", f"a{space}b ½\n"),
        ("▁a b ▁ 20 ▁ ¨ ▁ 円\n", "2 0 2 2\n", f"ab ２０ {space} ¨ 円\n"),
        ("▁a_b ▁_\n", "2 0\n", "a▁b ▁\n"),  # the mark that is replaced in pieces
    ):
        check(write(tmp_path, text, heads, words, scheme="sentencepiece"))


@pytest.mark.parametrize("text", ["▁ <0xE9> <0x82> <0xA3> ▁ <0xE7> <0x8B> <0x97>", "那▁ 狗 ▁"])
def test_bytes_and_final_marks_are_not_a_difference(tmp_path, text):
    source = write(tmp_path, f"{text}\n", "2 0\n", "那 狗\n", scheme="sentencepiece")
    check(source)
    starts = find_word_starts(text.split(), "sentencepiece")
    assert read_back(source, tmp_path)[0] == [mark_subwords([2, 0], starts)]


def test_white_space_that_parsers_split_words_at_is_named(tmp_path):
    source = write(tmp_path, "▁10\u00a0000 ▁b\n", "2 0 2\n", scheme="sentencepiece")
    with pytest.raises(DataError, match=r"3 heads, but 2 words .*; parsers split words at U\+00A0"):
        check(source)
    plain = write(tmp_path, "▁10 ▁b\n", "2 0 2\n", scheme="sentencepiece")
    with pytest.raises(DataError, match=r"2 words in [^;]*\(sentencepiece\); correct it"):
        check(plain)


def test_sentences_too_long_for_int16(tmp_path):
    size = 40_000
    heads = [*range(2, size + 1), 0]
    source = write(tmp_path, "w " * size + "\nw\n", " ".join(map(str, heads)) + "\n0\n")
    marks, _ = read_back(source, tmp_path)
    assert marks == [heads, [0]]


@pytest.mark.parametrize(
    ("words", "sizes", "message"),
    [
        (["a b", "c d"], [3, 4], "bpe.en"),
        (["a b", "c d"], [3], "bpe.en"),
        # A block of its own each.
        (["w" * 200_000] * 2 + ["a b"], [2, 2, 4], r"bpe\.en:3: the line has 2 subwords, but 3 in"),
    ],
    ids=["longer", "fewer", "later block"],
)
def test_a_text_dataset_of_another_text_is_refused(tmp_path, words, sizes, message):
    heads = "".join("0 1\n" if " " in line else "0\n" for line in words)
    source = write(tmp_path, "".join(f"{line}\n" for line in words), heads)
    write_text_dataset(tmp_path / "text", sizes)
    binarise(source, tmp_path / "heads")
    with pytest.raises(DataError, match=message):
        check_lengths(source, tmp_path / "heads", tmp_path / "text")


@pytest.mark.parametrize("suffix", ["idx", "bin"])
def test_a_text_dataset_that_is_cut_short_is_named(tmp_path, suffix):
    source = write(tmp_path, "a b\nc d\n", "0 1\n0 1\n")
    write_text_dataset(tmp_path / "text", [3, 3])
    path = tmp_path / f"text.{suffix}"
    path.write_bytes(path.read_bytes()[:-2])
    binarise(source, tmp_path / "heads")
    with pytest.raises(DataError, match=f"^{path}: the file is damaged or cut short"):
        check_lengths(source, tmp_path / "heads", tmp_path / "text")


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    peaks = []
    for lines in 2_000, 8_000:
        words = ("w" * 50 + "@@ w ") * 9  # more than what is read at once
        source = write(tmp_path, f"{words}\n" * lines, ("0" + " 1" * 8 + "\n") * lines)
        tracemalloc.start()
        binarise(source, tmp_path / "marks")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


PIECES = st.lists(
    st.text(st.sampled_from("ab▁@"), min_size=1, max_size=4) | st.just("<0x41>"), max_size=4
)


@given(PIECES, PIECES.map(" ".join), st.sampled_from(SCHEMES))
@example(["▁a▁"], "a▁", "sentencepiece")  # the mark at the end belongs to no word
@example(["▁", "<0x41>"], "<0x41>", "sentencepiece")
def test_words_that_are_the_same_for_certain_are(pieces, words, scheme):
    joined = " ".join(join_subwords(pieces, scheme))
    assert are_words(joined, pieces, scheme) or "<0x41>" in pieces
    if are_words(words, pieces, scheme):
        assert joined.split() == words.split()


def test_blocks_and_processes_change_nothing(tmp_path, monkeypatch):
    lines = [("a@@ b c", "2 0", "ab c"), ("d", "0", "d"), ("", "", ""), ("a b", "0 0", "a b")] * 9
    source = write(tmp_path, *("\n".join(column) + "\n" for column in zip(*lines, strict=True)))
    source = replace(source, on_bad_parse="drop")
    once = read_back(source, tmp_path)
    defaults = read_blocks.__kwdefaults__ | {"characters": 20}
    monkeypatch.setattr(read_blocks, "__kwdefaults__", defaults)
    assert read_back(source, tmp_path) == once
    assert binarise(source, tmp_path / "marks", workers=2) == once[1]
    read = MMapIndexedDataset(str(tmp_path / "marks"))
    assert [read[index].tolist() for index in range(len(read))] == once[0]
    assert count_values(source, workers=2) == count_values(source) == {0: 18, 2: 9}
    with pytest.raises(DataError, match="train.heads.en:4: 2 words have head 0"):
        binarise(replace(source, on_bad_parse="stop"), tmp_path / "marks", workers=2)


@given(st.lists(st.lists(st.integers(-1, 5) | st.just(2**70), max_size=5), max_size=5))
def test_trees_are_seen_all_at_once(sentences):
    try:
        for heads in filter(None, sentences):
            check_tree(heads)
    except BadParse:
        assert not are_trees(sentences)
    else:
        assert are_trees(sentences)
