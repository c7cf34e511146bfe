from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.parsing.parser import FAILED, Parse, Parser, Sentences, parse_in_halves


def tree_of(words: Sequence[str]) -> Parse:
    return Parse(list(range(len(words))), [*words])


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=30), st.integers(1, 9))
def test_every_sentence_but_the_bad_ones_is_parsed_once(shapes, size):
    sentences = [[str(i), *["bad"][:bad], *["w"] * n] for i, (n, bad) in enumerate(shapes)]
    parsed: list[str] = []

    def parse(block: Sentences) -> Iterator[Parse]:
        for words in block:
            if "bad" in words:
                raise ValueError(f"not {words[0]}")
            parsed.append(words[0])
            yield tree_of(words)

    order = range(len(sentences))[::-1]
    blocks = [order[start : start + size] for start in range(0, len(order), size)]
    found = dict(parse_in_halves(parse, sentences, blocks))
    assert len(parsed) == len(set(parsed))
    assert sorted(found) == list(range(len(sentences)))
    for index, result in found.items():
        if "bad" in sentences[index]:
            assert isinstance(result, BadParse) and result.reason == FAILED
            assert str(result) == f"ValueError: not {index}"
        else:
            assert result == tree_of(sentences[index])


def test_a_parser_that_always_fails_is_not_asked_for_ever():
    calls = 0

    def parse(block: Sentences) -> list[Parse]:
        nonlocal calls
        calls += 1
        raise RuntimeError("no memory")

    with pytest.raises(DataError, match="failed on 100 sentences in a row.*RuntimeError: no mem"):
        list(parse_in_halves(parse, [["word"]] * 5000, [range(5000)]))
    assert calls < 300


def test_what_is_wrong_with_the_parser_itself_is_not_the_sentence_s_fault():
    def parse(block: Sentences) -> list[Parse]:
        raise DataError("no such program")

    with pytest.raises(DataError, match="no such program"):
        list(parse_in_halves(parse, [["word"]], [[0]]))


def test_a_parse_of_other_words_is_none():
    class Doubling(Parser):
        def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
            for index, words in enumerate(sentences):
                yield index, tree_of([*words, *words] if "twice" in words else words)

    assert Doubling()([["a"], [], ["twice"], ["b"]]) == [tree_of("a"), None, None, tree_of("b")]


def test_a_parser_that_finds_nothing_is_not_asked_for_ever():
    class Failing(Parser):
        def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
            for index, words in enumerate(sentences):
                yield index, tree_of("a") if words == ["good"] else BadParse("odd", "is odd")

    parser = Failing()
    for _ in range(9):  # a call for each batch that is translated
        parser([["good"], *[["bad"]] * 60])
    with pytest.raises(
        DataError, match="no parse for 100 sentences in a row; its reason .*: is odd"
    ):
        parser([["bad"]] * 40)
