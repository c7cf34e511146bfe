from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from syncattn_lab.evaluation.trivial import copy_source, translate_by_word
from syncattn_lab.evaluation.word_groups import GroupedText

WORDS = st.lists(st.sampled_from("ab"), max_size=3)
SENTENCES = st.lists(
    st.tuples(WORDS, WORDS, st.sets(st.tuples(st.integers(0, 2), st.integers(0, 2)))), max_size=5
)


@given(SENTENCES)
def test_words_become_what_they_are_linked_with_elsewhere(sentences):
    cut = [
        (source, target, {(i, j) for i, j in links if i < len(source) and j < len(target)})
        for source, target, links in sentences
    ]
    expected = []
    for number, (source, _, _) in enumerate(cut):
        words = []
        for word in source:
            found: Counter[str] = Counter()
            for other, (others, target, links) in enumerate(cut):
                for place, same in enumerate(others):
                    linked = sorted(j for i, j in links if i == place)
                    if other != number and same == word and linked:
                        found[" ".join(target[j] for j in linked)] += 1
            best = sorted(found, key=lambda phrase: (-found[phrase], phrase))
            words.append(best[0] if best else word)
        expected.append(" ".join(words))
    columns = [[*column] for column in zip(*cut, strict=True)] or [[], [], []]
    text = GroupedText(columns[1], columns[0], columns[2])
    assert translate_by_word(text) == expected
    assert copy_source(text) == [" ".join(source) for source, _, _ in cut]


def test_nothing_is_translated_without_links_or_source():
    assert translate_by_word(GroupedText([["a"]], [["b"]])) is None
    assert translate_by_word(GroupedText([["a"]], links=[set()])) is None
    assert copy_source(GroupedText([["a"]])) is None
    assert translate_by_word(GroupedText([["a"]], [["b"]], [None])) == ["b"], "none of its own"
