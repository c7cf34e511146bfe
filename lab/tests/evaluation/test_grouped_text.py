"""Words of two programs are matched by their characters."""

from hypothesis import given
from hypothesis import strategies as st

from syncattn_lab.evaluation.grouped_text import count_training, match_words

TEXT = st.text("ab ", min_size=1, max_size=12)


def cut(text, breaks):
    pieces, last = [], 0
    for place in [*sorted(breaks), len(text)]:
        pieces.append(text[last:place])
        last = place
    return [piece for piece in pieces if piece.strip()]


@given(TEXT, st.sets(st.integers(1, 11)), st.sets(st.integers(1, 11)))
def test_words_share_characters(text, one, other):
    words, others = cut(text, one), cut(text, other)
    found = match_words(words, others)
    places = []
    for side in (words, others):
        owners = []
        for index, word in enumerate(side):
            owners += [index] * len("".join(word.split()))
        places.append(owners)
    expected = [set() for _ in words]
    for here, there in zip(*places, strict=True):
        expected[here].add(there)
    assert [set(each) for each in found] == expected


def test_other_characters_do_not_match():
    assert match_words(["do", "n't"], ["don't"]) == [range(1), range(1)]
    assert match_words(["a"], ["b"]) is None
    assert match_words(["a", ""], ["a"]) == [range(1), range(0)]


def test_a_word_of_several_parts_is_as_frequent_as_the_rarest(tmp_path):
    (tmp_path / "train").write_text("well-known, well.\nwell\n", encoding="utf-8")
    words = [["well", "known,", "well."], ["well", "x"]]
    assert count_training(tmp_path / "train", words, "13a") == {
        "well": 2,
        "known,": 0,
        "well.": 1,
        "x": 0,
    }
    assert count_training(tmp_path / "train", words, "none")["well."] == 1
