"""Contrastive pairs: files, judgements and accuracies."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.contrastive import (
    ContrastivePair,
    judge_pairs,
    read_contrastive,
    score_contrastive,
)

LINGEVAL = [
    {
        "source": "the man sees it",
        "reference": "der Mann sieht es",
        "origin": "made.1",
        "errors": [
            {"type": "np_agreement", "contrastive": "die Mann sieht es", "distance": 1},
            {"type": "polarity", "contrastive": "der Mann sieht es nicht", "frequency": 3},
        ],
    },
    {"source": "yes", "reference": "ja", "errors": []},
]
CONTRAPRO = [
    {
        "src segment": "It sleeps.",
        "ref segment": "Er schläft.",
        "src pronoun": "It",
        "ref pronoun": "Er",
        "ante distance": 2,
        "errors": [{"contrastive": "Sie schläft."}, {"contrastive": "Es schläft."}],
    }
]
AGREEMENT = ContrastivePair("the man", "der Mann", ("die Mann",), "agreement", 1)


def read(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_contrastive(tmp_path / name)


def test_our_own_columns(tmp_path):
    rows = ["source\tright\twrong\tkind\tdistance", "the man\tder Mann\tdie Mann\tagreement\t1"]
    rows += ["the man \tder Mann\tdie Mann\tword order\t", "the man\tder Mann\tdie Mann"]
    assert read(tmp_path, "own.tsv", "\n".join(rows) + "\n") == [
        AGREEMENT,
        ContrastivePair("the man", "der Mann", ("die Mann",), "word order", None),
        ContrastivePair("the man", "der Mann", ("die Mann",)),
    ]


def test_errors_of_lingeval97_are_pairs_of_their_own(tmp_path):
    source, right = "the man sees it", "der Mann sieht es"
    assert read(tmp_path, "set.json", json.dumps(LINGEVAL)) == [
        ContrastivePair(source, right, ("die Mann sieht es",), "np_agreement", 1),
        ContrastivePair(source, right, ("der Mann sieht es nicht",), "polarity", None),
    ]


def test_errors_of_contrapro_are_one_pair(tmp_path):
    assert read(tmp_path, "set.json", json.dumps(CONTRAPRO)) == [
        ContrastivePair("It sleeps.", "Er schläft.", ("Sie schläft.", "Es schläft."), "it:er", 2)
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.tsv",
            "",
            "a.tsv: has no pairs; give a source, a right and a wrong translation on each line",
        ),
        ("a.tsv", "a\tb\tc\na\tb\n", "a.tsv:2: the line has 2 columns; write source, right"),
        ("a.tsv", "a\tb\tc\td\t1\t2\n", "a.tsv:1: the line has 6 columns"),
        ("a.tsv", "a\tb\t \n", "a.tsv:1: the wrong translation is missing or empty"),
        ("a.tsv", "a\tb\tc\td\tfar\n", "a.tsv:1: the distance 'far' is not a whole number from 0"),
        ("a.tsv", "a\tb\tc\td\t-1\n", "a.tsv:1: the distance '-1' is not a whole number from 0"),
        ("a.json", "{}", "a.json: is not a list of sentences, as in LingEval97 and ContraPro"),
        ("a.json", "[" * 99999, "a.json: not valid JSON"),
        ("a.json", "[1]", 'a.json: sentence 1: the list "errors" is missing, as in LingEval97'),
        ("a.json", '[{"errors": [1]}]', 'a.json: sentence 1: the list "errors" is missing'),
        ("a.json", '[{"errors": [{}]}]', "a.json: sentence 1: the source is missing or empty"),
        (
            "a.json",
            '[{"source": "a", "reference": "b\\nc", "errors": [{"contrastive": "d"}]}]',
            "a.json: sentence 1: the right translation has several lines; write one",
        ),
        (
            "a.json",
            '[{"source": "a", "reference": "b", "errors": [{"contrastive": "d", "type": []}]}]',
            r"a.json: sentence 1: the kind '\[\]' is not a text",
        ),
        (
            "a.json",
            '[{"source":"a","reference":"b","errors":[{"contrastive":"d","distance":true}]}]',
            "a.json: sentence 1: the distance 'True' is not a whole number from 0",
        ),
        ("a.json", '[{"ref segment": "a", "errors": []}]', "sentence 1: no wrong translation"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message) as error:
        read(tmp_path, name, text)
    assert "\n" not in str(error.value)


def test_a_pair_is_right_if_the_right_one_is_above_all(tmp_path):
    pairs = [
        ContrastivePair("s", "3", ("1", "2")),
        ContrastivePair("s", "2", ("1", "3")),
        ContrastivePair("s", "2", ("2",)),
        ContrastivePair("s", "nan", ("1",)),
        ContrastivePair("t", "1", ("nan",)),
    ] * 300
    asked, done = [], []

    def score(sources, translations):
        asked.append(len(sources))
        assert len(sources) == len(translations)
        return [*map(float, translations)]

    verdicts = judge_pairs(pairs, score, done.append)
    assert verdicts == [True, False, False, False, False] * 300
    assert sum(done) == 1500 and len(asked) > 1 and sum(asked) == 300 * 12


PAIRS = st.builds(
    ContrastivePair,
    st.sampled_from("abc"),
    st.just("right"),
    st.just(("wrong",)),
    st.sampled_from(["x", "y", ""]),
    st.sampled_from([None, 0, 1, 2, 3, 4, 9, 10, 15, 99]),
)
BUCKETS = {0: "0", 1: "1", 2: "2", 3: "3-4", 4: "3-4", 9: "5-9", 10: "10-14", 15: "15+", 99: "15+"}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(PAIRS, st.booleans()), min_size=1, max_size=12))
def test_accuracies_are_those_of_a_slow_loop(drawn):
    pairs, right = zip(*drawn, strict=True)
    kinds = {pair.kind for pair in pairs}
    expected = {}
    for pair, is_right in drawn:
        groups = [("all", "all")]
        if len(kinds) > 1:
            groups.append(("kind", pair.kind or "unknown"))
        same = [p.distance for p in pairs if p.kind == pair.kind and p.distance is not None]
        if pair.distance is not None and len({BUCKETS[distance] for distance in same}) > 1:
            kind = pair.kind or "unknown"
            title = f"distance of {kind}" if len(kinds) > 1 else "distance"
            groups.append((title, BUCKETS[pair.distance]))
        for group in groups:
            before = expected.get(group, (0, 0))
            expected[group] = before[0] + is_right, before[1] + 1
    scores = score_contrastive(pairs, {"one": right})
    assert {(s.kind, s.group): (s.right, s.total) for s in scores} == expected
    assert {s.measure for s in scores} == {"accuracy"}


def test_pairs_of_a_source_are_drawn_together():
    """Each of ten sources has ten pairs, all right or all wrong: the interval is as wide."""
    pairs = [ContrastivePair(f"{n // 10}", "r", ("w",), "x", n % 2) for n in range(100)]
    ours, theirs = [n // 10 < 5 for n in range(100)], [n % 2 == 0 for n in range(100)]
    scores = score_contrastive(pairs, {"theirs": theirs, "ours": ours}, "theirs")
    everything = {score.system: score for score in scores if score.kind == "all"}
    low, high = everything["ours"].interval
    assert (low, high) == pytest.approx((0.2, 0.8))
    assert everything["theirs"].interval is None
    assert everything["ours"].sentences == 10
    assert everything["ours"].verdict == "not known" and everything["ours"].p > 0.9
    titles = dict.fromkeys(score.kind for score in scores)
    assert [*titles] == ["all", "distance"]
