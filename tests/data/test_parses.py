import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.base.numbers import read_whole
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
    with pytest.raises(BadParse, match="from word 2 leads back"):
        check_tree([0, *range(3, 50_001), 2])


def test_read_heads(tmp_path):
    path = tmp_path / "train.heads.en"
    path.write_bytes(b"2 0 2\n\n0\r\n 0  1 \n")
    assert list(read_heads(path)) == [[2, 0, 2], None, [0], [0, 1]]


@given(
    st.lists(
        st.integers(0, 99).map(str)
        | st.sampled_from(["-1", "+1", "1_0", "３", "01", "9" * 9, "9" * 10, "x", "1.0", "_"]),
        max_size=3,
    ),
    st.sampled_from([" ", "  ", "\t", "\u3000"]),
)
def test_heads_are_whole_numbers_between_white_space(heads, space):
    try:
        expected = [read_whole(head) for head in heads]
    except ValueError:
        with pytest.raises(DataError, match="^heads:7: expected one integer per word"):
            parse_heads(space.join(heads), "heads", 7)
    else:
        assert parse_heads(space.join(heads), "heads", 7) == expected


def test_read_labels(tmp_path):
    path = tmp_path / "train.labels.en"
    path.write_bytes("det nsubj:pass root\n\nroot\r\n mañana  0 \n".encode())
    assert list(read_labels(path)) == [
        ["det", "nsubj:pass", "root"], None, ["root"], ["mañana", "0"],
    ]  # fmt: skip


def test_what_is_not_a_heads_file_names_its_line(tmp_path):
    path = tmp_path / "train.heads.en"
    path.write_text("0\n0 _\n")
    with pytest.raises(DataError, match=r"train\.heads\.en:2: expected one integer per word"):
        list(read_heads(path))
