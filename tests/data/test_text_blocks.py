from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.data.text_blocks import TextBlock
from syncattn_fairseq.data.words import SCHEMES, find_word_starts, join_subwords

# All that str.split takes for white space in one line, a control character that it does not, and
# characters of one to four bytes.
CHARACTERS = "ab@@▁▁  \t\x0b\x1c\x1f\x85\xa0\u1680\u2028\u202f\u3000\x00\u200bé猫😀"
TOKENS = (
    "a",
    "b@@",
    "@@",
    "@",
    "@@@",
    "x@@y",
    "▁",
    "▁",
    "▁a",
    "▁▁b",
    "a▁",
    "▁@@",
    " ",
    "\u3000",
    "\t",
)
SUFFIXED = ("der▁", "▁", "alt", "e▁", "s")
lines = st.lists(
    st.text(st.sampled_from(CHARACTERS), max_size=12)
    | st.lists(st.sampled_from(TOKENS) | st.sampled_from(SUFFIXED), max_size=8).map(" ".join)
    | st.lists(st.sampled_from(SUFFIXED), max_size=8).map(" ".join),
    min_size=1,
    max_size=5,
)


@given(lines, st.sampled_from(SCHEMES))
def test_starts_are_those_of_each_line(lines, scheme):
    block = TextBlock(lines, scheme)
    rows = [find_word_starts(line.split(), scheme) for line in lines]
    assert block.starts.tolist() == [start for row in rows for start in row]
    assert block.subwords.tolist() == [len(row) for row in rows]
    assert block.words.tolist() == [sum(row) for row in rows]


@given(lines, st.sampled_from(SCHEMES))
def test_words_are_those_of_each_line(lines, scheme):
    for ours, line in zip(TextBlock(lines, scheme).join_words(), lines, strict=True):
        words = " ".join(join_subwords(line.split(), scheme))
        if scheme == "sentencepiece":  # marks that begin no subword stay
            ours, words = (" ".join(s.replace("▁", " ").split()) for s in (ours, words))
        assert ours == words
