import pytest

from lab.tests.printed.making import printed
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.induction import induce_tree

SENTENCE = printed(
    "▁the ▁ma n ▁sleep s",
    source="▁(the ▁<unk>",
    scheme="sentencepiece",
    target_distances={1: [0.9, 0.5, 0.8, 0.2, 0.7], 2: [0.9, 0.1, 0.8, 0.2, 0.7]},
    source_distances={1: [0.0, 0.0]},
)


def test_the_gap_before_a_word_is_that_before_its_first_subword():
    """Gaps 0.5 and 0.2 in layer 1, 0.1 and 0.2 in layer 2; those inside of words are no matter."""
    found = str(induce_tree(SENTENCE.target, 1))
    assert found == "(X (X the ) (X (X man ) (X sleeps ) ) )"
    found = str(induce_tree(SENTENCE.target, 2))
    assert found == "(X (X (X the ) (X man ) ) (X sleeps ) )"


def test_words_are_restored_and_parentheses_escaped():
    found = str(induce_tree(SENTENCE.source, 1, ["(the", "dog"]))
    assert found == "(X (X -LRB-the ) (X dog ) )"


def test_no_tree_where_an_unknown_subword_hides_the_words():
    assert induce_tree(SENTENCE.source, 1, ["(the", "small", "dog"]) is None


def test_faults():
    with pytest.raises(
        DataError, match="layer 3 has no syntactic distances; layers with distances: 1, 2"
    ):
        induce_tree(SENTENCE.target, 3)
    with pytest.raises(
        DataError, match="layer 1 has no syntactic distances; layers with distances: none"
    ):
        induce_tree(printed("a b").target, 1)
    with pytest.raises(DataError, match="the side has 3 words, but the text has 1"):
        induce_tree(SENTENCE.target, 1, ["one"])
    assert induce_tree(printed("", target_distances={1: []}).target, 1) is None
