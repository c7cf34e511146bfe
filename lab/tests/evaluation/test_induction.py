from dataclasses import replace

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.induction import induce_tree
from syncattn_lab.printed.decoded import DecodedSentence

SENTENCE = DecodedSentence(
    hypothesis="▁the ▁ma n ▁sleep s",
    translation="",
    source="▁(the ▁<unk>",
    hypothesis_distances={1: [0.9, 0.5, 0.8, 0.2, 0.7], 2: [0.9, 0.1, 0.8, 0.2, 0.7]},
    source_distances={1: [0.0, 0.0]},
)


def brackets(*args: object, **options: object) -> str:
    tree = induce_tree(*args, **options)  # type: ignore[arg-type]
    assert tree is not None
    return str(tree)


def test_the_gap_before_a_word_is_that_before_its_first_subword():
    """Gaps 0.5 and 0.2 in layer 1, 0.1 and 0.2 in layer 2; those inside of words are no matter."""
    found = brackets(SENTENCE, "hypothesis", "sentencepiece", layer=1)
    assert found == "(X (X the ) (X (X man ) (X sleeps ) ) )"
    found = brackets(SENTENCE, "hypothesis", "sentencepiece")
    assert found == "(X (X (X the ) (X man ) ) (X sleeps ) )"


def test_words_are_restored_and_parentheses_escaped():
    found = brackets(SENTENCE, "source", "sentencepiece", words=["(the", "dog"])
    assert found == "(X (X -LRB-the ) (X dog ) )"


def test_no_tree_where_an_unknown_subword_hides_the_words():
    words = ["(the", "small", "dog"]
    assert induce_tree(SENTENCE, "source", "sentencepiece", words=words) is None


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"layer": 3}, "no distances of layer 3; choose one of 1, 2"),
        ({}, {"words": ["one"]}, "3 words, but 1 in the text"),
        ({"hypothesis_distances": {}}, {}, "no distances of the hypothesis; decode with --print"),
        ({"hypothesis": "▁a ▁b"}, {}, "5 distances for 2 subwords; leave --remove-bpe out"),
    ],
)
def test_faults(changes, options, message):
    with pytest.raises(DataError, match=message):
        induce_tree(replace(SENTENCE, **changes), "hypothesis", "sentencepiece", **options)
