from collections.abc import Iterable, Iterator
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.parsing import parsed_file
from syncattn_fairseq.parsing.formats.parsed_sentence import Analysis, Surface
from syncattn_fairseq.parsing.parsed_file import (
    DIFFERENT,
    DROPPED,
    EMPTY,
    LOOK_AHEAD,
    NO_TREE,
    SPLIT,
    STOPPED,
    match_parses,
)
from syncattn_fairseq.parsing.parser import Parse


def chain(*words: str) -> Analysis:
    size = len(words)
    return Analysis(list(words), [*range(2, size + 1), 0][:size], ["l"] * size)


def outcomes(lines: Iterable[str], analyses: Iterable[Analysis]) -> Iterator[Parse | str]:
    for parse in match_parses(lines, analyses, "parsed.txt"):
        yield parse.reason if isinstance(parse, BadParse) else parse


def reasons(lines: Iterable[str], analyses: Iterable[Analysis]) -> list[str | None]:
    return [one if isinstance(one, str) else None for one in outcomes(lines, analyses)]


def test_lines_and_sentences_go_together_in_order():
    found = outcomes(["a b", "c"], [chain("a", "b"), chain("c")])
    assert [*found] == [Parse([2, 0], ["l", "l"]), Parse([0], ["l"])]
    assert [*outcomes([], [])] == []


def test_words_cut_otherwise_are_realigned():
    found = outcomes(["don't &quot;", "im Haus"], [
        chain("do", "n't", "''"),
        Analysis(["in", "dem", "Haus"], [3, 3, 0], ["x", "y", "z"], [Surface("im", 0, 2)]),
    ])  # fmt: skip
    assert [*found] == [Parse([2, 0], ["l", "l"]), Parse([2, 0], ["x", "z"])]


def chains(*lines: str) -> list[Analysis]:
    return [chain(*line.split()) for line in lines]


IM = Analysis(["in", "dem"], [0, 1], ["l", "l"], [Surface("im", 0, 2)])
NO_TREES = [
    Analysis(["a"]),
    Analysis(["b", "b"], [2, 1], ["l", "l"]),
    Analysis(["c", "c"], [0, 0], ["l", "l"]),
    Analysis(["d"], [7], ["l"]),
    chain("e"),
]


@pytest.mark.parametrize(
    ("lines", "analyses", "expected"),
    [
        ("a / b", [Analysis([]), chain("b")], [DROPPED, None]),
        (
            "a / b b / c c / d / e",
            NO_TREES,
            [NO_TREE, "no root", "several roots", "head out of range", None],
        ),
        # A split line takes all its sentences.
        ("a . b . c / d", [*chains("a .", "b ."), Analysis(["c"]), chain("d")], [SPLIT, None]),
        ("im . b / d", [IM, *chains(". b", "d")], [SPLIT, None]),
        # A line with other words costs only itself, also where the parser has made two of it,
        ("a / b / c", chains("a", "x", "c"), [None, DIFFERENT, None]),
        ("a / b / c / d", chains("a", "x", "y", "c", "d"), [None, DIFFERENT, None, None]),
        # where there are several, and where nothing fits any more.
        ("a b / c d / z / e f", chains("x", "y", "z z", "e f"), [*[DIFFERENT] * 3, None]),
        ("a / b", chains("x", "y"), [DIFFERENT, DIFFERENT]),
        ("a / b /  / c", chains("a"), [None, STOPPED, EMPTY, STOPPED]),
    ],
)
def test_why_lines_have_no_parse(lines, analyses, expected):
    assert reasons(lines.split(" / "), analyses) == expected


@pytest.mark.parametrize("empty", [[], [Analysis([])], [Analysis([]), Analysis([], [], [])]])
def test_blank_lines_take_no_sentence_but_an_empty_one(empty):
    found = reasons(["", "a", " ", "b", "\u3000"], [*empty, chain("a"), *empty, chain("b"), *empty])
    assert found == [EMPTY, None, EMPTY, None, EMPTY]


@pytest.mark.parametrize("dropped", range(1, LOOK_AHEAD + 1))
def test_lines_that_the_parser_left_out_cost_nothing_else(dropped):
    lines = [f"x{number}" for number in range(dropped)]
    found = reasons(["a", *lines, "b", "c"], [chain("a"), chain("b"), chain("c")])
    assert found == [None, *[DROPPED] * dropped, None, None]


@pytest.mark.parametrize("changed", [0, 1])
@pytest.mark.parametrize("lost", [LOOK_AHEAD + 2, 57])
def test_a_batch_that_the_parser_left_out_costs_nothing_else(lost, changed):
    """Lines that are alike, before the end of the gap and after it, mislead nobody."""
    lines = [f"a{n} b" if n % 10 else "no" for n in range(100)]
    lines[15] = ""
    analyses = chains(*lines[:9], *["x y"] * changed, *lines[9 + lost :])
    found = reasons(lines, analyses)
    expected = [DROPPED] * lost
    expected[6] = EMPTY
    assert found[:9] == [None] * 9 and found[9 + lost :] == [None] * (91 - lost)
    assert found[10 : 9 + lost] == expected[1:]


def test_a_text_of_others_is_looked_through_once_in_a_while(monkeypatch):
    asked = []
    look = parsed_file._look_far
    monkeypatch.setattr(parsed_file, "_look_far", lambda *a: asked.append(1) or look(*a))
    lines = [f"a{n}" for n in range(100)]
    assert reasons(lines, chains(*["x"] * 100)) == [DIFFERENT] * 100
    assert len(asked) == 10
    # One line that fits by chance, far from here, is not enough.
    assert reasons(lines, chains("x", "a50", *["x"] * 98))[:50] == [DIFFERENT] * 50


def test_sentences_after_the_last_line_are_an_error():
    found = match_parses(["a"], [chain("a"), Analysis([]), chain("b", "c")], "parsed.txt")
    assert isinstance(next(found), Parse)
    fault = r"^parsed\.txt: has more sentences .* is 'b c'; parse exactly"
    with pytest.raises(DataError, match=fault):
        next(found)


def test_nothing_is_read_far_ahead():
    read = {"lines": 0, "sentences": 0}

    def counted(what: str) -> Iterator[int]:
        for number in count():
            read[what] = number
            yield number

    lines = (f"a{number} b" for number in counted("lines"))
    # Every third sentence is not that of its line.
    sentences = (chain(f"a{n}" if n % 3 else "x", "b") for n in counted("sentences"))
    first, _, _, last, *_ = islice(outcomes(lines, sentences), 99)
    assert first == last == DIFFERENT
    assert max(read.values()) <= 99 + LOOK_AHEAD


#: What may happen to a line, and the reason for which it then has no parse.
FATES = {"blank": EMPTY, "split": SPLIT, "left out": DROPPED, "changed": DIFFERENT}


@given(st.lists(st.lists(st.sampled_from(sorted(FATES)), max_size=5), max_size=6))
def test_trouble_in_some_lines_costs_no_others(troubles):
    fates = [fate for trouble in troubles for fate in [*trouble, "parsed"]]
    lines, analyses = [], []
    for number, fate in enumerate(fates):
        words = [f"a{number}", *"b" * (number % 3 + 1)]
        lines.append("" if fate == "blank" else " ".join(words))
        analyses += {
            "parsed": [chain(*words)],
            "split": [chain(*words[:1]), chain(*words[1:])],
            "changed": [chain(*words, "!")],
        }.get(fate, [])
    found = outcomes(lines, analyses)
    number = 0
    for trouble in troubles:
        reasons_of_trouble = [*islice(found, len(trouble))]
        assert [reason == EMPTY for reason in reasons_of_trouble] == [
            fate == "blank" for fate in trouble
        ]
        if len(trouble) == 1:  # of several it may not be clear which line has which
            assert reasons_of_trouble == [FATES[trouble[0]]]
        number += len(trouble) + 1
        heads = [*range(2, len(lines[number - 1].split()) + 1), 0]
        assert next(found) == Parse(heads, ["l"] * len(heads))
    assert list(found) == []
