import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.serving.questions import DEFAULT, Asked, read_question

GOOD = {"sentences": ["the dog"], "beam": 20, "max_len": 7, "length_penalty": -0.5}


def test_sentences_and_settings():
    asked = read_question(json.dumps(GOOD).encode())
    assert asked.sentences == ["the dog"]
    settings = asked.decoding
    assert (settings.beam, settings.max_len, settings.length_penalty) == (20, 7, -0.5)
    assert (settings.max_source, settings.too_long) == (200, "empty")
    assert read_question(b'{"sentences": "a dog"}') == Asked(["a dog"], DEFAULT)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "the request is not valid JSON: Expecting value"),
        (b"{", "the request is not valid JSON: Expecting property name"),
        (b"\xff", "the request is not UTF-8"),
        (b"[" * 40_000, "the request is not valid JSON: nested too deeply"),
        (b'{"beam": ' + b"1" * 5000 + b"}", "the request is not valid JSON: Exceeds the limit"),
        (b'{"beam": NaN}', "the request is not valid JSON: NaN is not a number"),
        (b'["the dog"]', "expected a JSON object, such as "),
        (b"{}", "sentences: give a text, or a list of 1 to 100"),
        ({"sentences": None}, "sentences: give a text, or a list"),
        ({"sentences": []}, "sentences: give a text, or a list"),
        ({"sentences": ["a"] * 101}, "sentences: give a text, or a list"),
        ({"sentences": ["a", 1]}, "sentence 2: expected a text"),
        ({"sentence": ["a"]}, "unknown key 'sentence'; did you mean sentences?; the keys are "),
        ({"\ud800": 1}, "unknown key '\\ud800'; the keys are sentences, beam, max_len, "),
        ({"beam": 0}, "beam: give a whole number from 1 to 20"),
        ({"beam": 21}, "beam: give a whole number from 1 to 20"),
        ({"beam": True}, "beam: give a whole number from 1 to 20"),
        ({"max_len": None}, "max_len: give a whole number from 1 to 300"),
        ({"max_len": 301}, "max_len: give a whole number from 1 to 300"),
        ({"length_penalty": "1"}, "length_penalty: give a number from -10 to 10"),
        ({"length_penalty": 11}, "length_penalty: give a number from -10 to 10"),
        (b'{"sentences": ["a"], "length_penalty": 1e999}', "length_penalty: give a number from"),
    ],
)
def test_one_line_says_what_is_wrong(body, fault):
    if isinstance(body, dict):
        body = json.dumps({"sentences": ["a"], **body}).encode()
    with pytest.raises(DataError) as error:
        read_question(body)
    assert str(error.value).startswith(fault) and len(str(error.value)) < 500


_VALUES: Any = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
)


@given(st.dictionaries(st.sampled_from([*GOOD, "beams"]), _VALUES) | _VALUES, st.data())
def test_whatever_comes_is_read_or_refused(value, data):
    body = json.dumps(value).encode()
    place = data.draw(st.integers(0, len(body)))
    for each in (body, body[:place] + data.draw(st.binary(max_size=3)) + body[place:]):
        try:
            asked = read_question(each)
        except DataError:
            continue
        assert all(isinstance(sentence, str) for sentence in asked.sentences)
        assert 1 <= asked.decoding.beam <= 20
