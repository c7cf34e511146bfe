import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.data.parse_blocks import (
    are_trees,
    parse_heads_of_lines,
    parse_labels_of_lines,
)
from syncattn_fairseq.data.parses import check_tree, parse_heads, read_heads, read_labels


def slow_fault(heads: list[int]) -> str | None:
    if any(head < 0 or head > len(heads) for head in heads):
        return "head out of range"
    if heads.count(0) != 1:
        return "several roots" if 0 in heads else "no root"
    for word in range(1, len(heads) + 1):
        for _ in heads:
            word = heads[word - 1] if word else 0
        if word:
            return "cycle"
    return None


sentences = st.integers(0, 6).flatmap(
    lambda size: (
        st.lists(st.integers(-1, size + 1), min_size=size, max_size=size)
        | st.lists(st.integers(0, size), min_size=size, max_size=size)
        | st.permutations(range(size))
    )
)


@given(sentences)
@example([2, 3, 0])
@example([2, 1, 0])
@example([0, 2])
def test_tree_check_equals_slow_check(heads):
    try:
        check_tree(heads)
        fault = None
    except BadParse as error:
        fault = error.reason
    assert fault == slow_fault(heads)


@given(st.lists(sentences, max_size=5))
def test_trees_of_many_sentences_are_those_of_each(sentences):
    heads = np.array([head for sentence in sentences for head in sentence], np.int64)
    sizes = np.array([len(sentence) for sentence in sentences], np.int64)
    expected = [slow_fault(sentence) is None for sentence in sentences]
    assert are_trees(heads, sizes).tolist() == expected


def test_faults_say_what_is_wrong():
    for heads, message in (
        ([0, 9], "head 9 is out of range 0..2"),
        ([0, 0], "2 words have head 0"),
        ([2, 1], "0 words have head 0"),
        ([0, 3, 2], "from word 2 leads back"),
    ):
        with pytest.raises(BadParse, match=message.replace(".", r"\.")):
            check_tree(heads)


def test_a_long_chain_takes_linear_time():
    check_tree([*range(2, 50_001), 0])
    check_tree([0, *range(1, 50_000)])
    for heads in ([*range(2, 50_001), 0], [0, *range(1, 50_000)]):
        assert are_trees(np.array(heads), np.array([50_000])).all()
    assert not are_trees(np.array([0, *range(3, 50_001), 2]), np.array([50_000])).any()


def test_read_heads(tmp_path):
    path = tmp_path / "train.heads.en"
    path.write_bytes(b"2 0 2\n\n0\r\n 0  1 \n")
    assert list(read_heads(path)) == [[2, 0, 2], None, [0], [0, 1]]


@given(
    st.lists(
        st.lists(
            st.integers(0, 99).map(str)
            | st.sampled_from(["-1", "+1", "1_0", "３", "01", "9" * 19, "9" * 30, "x", "1.0", "_"]),
            max_size=3,
        ).flatmap(
            lambda heads: st.sampled_from([" ", "  ", "\t", "\u3000"]).map(lambda s: s.join(heads))
        )
        | st.sampled_from(["", " ", "\xa0"]),
        min_size=1,
        max_size=4,
    )
)
@example([" "])
@example(["", "1 0"])
@example(["9" * 30])
def test_heads_of_many_lines_are_those_of_each(lines):
    rows: list[list[int] | None] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(parse_heads(line, "heads", number))
        except DataError as error:
            assert str(error).startswith(f"heads:{number}: ")
            rows.append(None)
    heads, sizes = parse_heads_of_lines(lines)
    found = np.split(heads, sizes.cumsum()[:-1])
    for ours, theirs in zip(found, rows, strict=True):
        if theirs is None and max(ours.tolist(), default=0) < 2**63 - 1:
            assert ours.tolist() == [-1]
        elif theirs is not None and max(theirs, default=0) < 2**63 - 1:
            assert ours.tolist() == theirs
        else:  # no such word
            assert not are_trees(ours, np.array([len(ours)])).any()


def test_labels_of_many_lines():
    labels, sizes = parse_labels_of_lines(["det nsubj:pass  root", "", " mañana\t0 "])
    assert labels.tolist() == ["det", "nsubj:pass", "root", "mañana", "0"]
    assert sizes.tolist() == [3, 0, 2]


def test_read_labels(tmp_path):
    path = tmp_path / "train.labels.en"
    path.write_bytes("det nsubj:pass root\n\nroot\r\n mañana  0 \n".encode())
    assert list(read_labels(path)) == [
        ["det", "nsubj:pass", "root"], None, ["root"], ["mañana", "0"],
    ]  # fmt: skip
    path.write_bytes(b"root\n\xff\n")
    with pytest.raises(DataError, match=r"train\.labels\.en:2: not UTF-8"):
        list(read_labels(path))


def test_what_is_not_a_heads_file_names_its_line(tmp_path):
    path = tmp_path / "train.heads.en"
    path.write_text("0\n0 _\n")
    with pytest.raises(DataError, match=r"train\.heads\.en:2: expected one integer per word"):
        list(read_heads(path))
    path.write_bytes(b"0\n\n\n0 \xff\n")
    with pytest.raises(DataError, match=r"train\.heads\.en:4: not UTF-8"):
        list(read_heads(path))
