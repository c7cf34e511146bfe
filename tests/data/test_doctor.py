"""What the doctor finds in texts that were spoilt on purpose, and nothing in others."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.doctor import (
    KINDS,
    Finding,
    Limits,
    Text,
    examine,
    examine_files,
    read_limits,
)
from syncattn_lab.synthetic.generated_corpus import generate

Pairs = list[tuple[str, str]]


def write(count: int, seed: int) -> Pairs:
    """Return different pairs of the built-in grammar, of eight words or more."""
    pairs = [(" ".join(p.source.words), " ".join(p.target.words)) for p in generate(count, seed)]
    return [(f"{a} {seed}{n} .", f"{b} {seed}{n} .") for n, (a, b) in enumerate(pairs)]


TRAIN, VALID, TEST = write(300, 1), write(20, 2), write(20, 3)


def find(
    train: Pairs = TRAIN,
    valid: Pairs = VALID,
    test: Pairs = TEST,
    languages: tuple[str, str] = ("en", "de"),
    **options: object,
) -> dict[tuple[str, str], Finding]:
    splits = {"train": train, "valid": valid, "test": test}
    texts = [Text(name, (f"{name}.a", f"{name}.b"), iter(x)) for name, x in splits.items()]
    found = examine(texts, languages, **options)  # type: ignore[arg-type]
    assert [f.severe for f in found] == sorted((f.severe for f in found), reverse=True)
    assert len({(f.kind, f.split, f.example) for f in found}) == len(found)
    return {(each.kind, each.split): each for each in found}


def split(pairs: Pairs, find: str, replace: str) -> Pairs:
    return [(a.replace(find, replace), b.replace(find, replace)) for a, b in pairs]


def pieces(pairs: Pairs) -> Pairs:
    return [tuple(" ".join(f"▁{w[:2]} {w[2:]}" for w in x.split()) for x in pair) for pair in pairs]  # type: ignore[misc]


def glued(pairs: Pairs) -> Pairs:
    return split(pairs, " .", ".")


def test_nothing_is_found_in_a_sound_text():
    assert find() == {}
    assert find(*map(glued, (TRAIN, VALID, TEST))) == {}
    assert find(*map(pieces, (TRAIN, VALID, TEST))) == {}
    assert examine([], ("en", "de")) == []
    assert examine([Text("test", ("a", "b"), [])], ("en", "de")) == []


@pytest.mark.parametrize("change", [lambda x: x, glued, pieces, lambda x: split(x, "the", "The")])
@pytest.mark.parametrize("side", [0, 1])
def test_a_test_sentence_in_the_training_text(change, side):
    learnt = list(TRAIN)
    source, target = change([TEST[4]])[0]
    learnt[76] = (
        (source, "etwas ganz anderes .") if side == 0 else ("quite another thing .", target)
    )
    found = find(learnt)["test_in_training", "test"]
    assert (found.count, found.total, found.severe) == (1, 20, True)
    assert str(found) == (
        "test: test sentences are in the training text (1 of 20, 5 %), such as test.a:5, which is "
        "train.a:77; leave these sentences out of the training text: syncattn-clean --exclude, "
        "or in a recipe "
        "clean: {exclude: test}"
    )
    left_out = find(learnt, excluded=["test"])["test_in_training", "test"]
    assert (
        not left_out.severe
        and left_out.is_notable
        and "clean leaves these sentences" in str(left_out)
    )
    assert not find(learnt, limits=Limits(test_in_training=0.06))["test_in_training", "test"].severe
    assert find(learnt, limits=Limits(test_in_training=0.05))["test_in_training", "test"].severe
    assert not find(learnt, limits=Limits(test_in_training=None))["test_in_training", "test"].severe
    assert ("test_in_training", "test") not in find(TRAIN, TEST, TEST[:0])


def test_a_validation_sentence_is_found_but_not_severe():
    found = find([*TRAIN, VALID[0], VALID[1], VALID[1]])
    assert {*found} == {("valid_in_training", "valid"), ("repeated", "train")}
    assert found["valid_in_training", "valid"].count == 2
    assert not found["valid_in_training", "valid"].severe


@pytest.mark.parametrize(
    ("sentence", "is_long"),
    [
        ("one two three four five six seven", False),
        ("one two three four five six seven .", False),
        ("one two three four five six seven eight", True),
        ("▁one ▁two ▁three ▁fo ur ▁fi ve ▁six ▁seven", False),
        ("on@@ e two three four five six seven", False),
        ("これは短い文です", False),
        ("これは八語より長いと思われる文です", True),
    ],
)
def test_short_sentences_may_be_in_both(sentence, is_long):
    both = find([*TRAIN, (sentence, "x")], test=[*TEST, (sentence, "y")])
    kind = "test_in_training" if is_long else "short_in_training"
    assert (kind, "test") in both and both[kind, "test"].severe == is_long
    assert len([key for key in both if key[0].endswith("in_training")]) == 1
    words = find([*TRAIN, (sentence, "x")], test=[*TEST, (sentence, "y")], limits=Limits(words=1))
    assert ("test_in_training", "test") in words


def test_the_longer_side_counts():
    source, target = "so it is .", TEST[4][1]
    learnt = [*TRAIN, (source, "ja ."), ("quite another thing .", target)]
    found = find(learnt, test=[*TEST[:4], (source, target), *TEST[5:]])
    [one] = [each for (kind, _), each in found.items() if kind.endswith("in_training")]
    assert (one.kind, one.count) == ("test_in_training", 1)
    assert one.example == "test.a:5, which is train.a:302"


def test_repeated_pairs():
    found = find([*TRAIN, ("", ""), ("", ""), TRAIN[3], (TRAIN[4][0].upper(), TRAIN[4][1])])
    repeated = found["repeated", "train"]
    assert (repeated.count, repeated.example, repeated.severe) == (2, "train.a:303", False)
    parts = [
        Text("train", (f"{n}.a", f"{n}.b"), part) for n, part in enumerate((TRAIN, TRAIN[5:6]))
    ]
    [over_parts] = examine(parts, ("en", "de"))
    assert (over_parts.kind, over_parts.total, over_parts.example) == ("repeated", 301, "1.a:1")


@pytest.mark.parametrize(
    ("texts", "example"),
    [
        ((TRAIN, TRAIN, TEST), "valid.a, which is train.a"),
        ((TRAIN, VALID, VALID), "test.a, which is valid.a"),
        (([(a, a) for a, _ in TRAIN], VALID, TEST), "train.b, which is train.a"),
        (
            (TRAIN, VALID, [(a, VALID[n][1]) for n, (a, _) in enumerate(TEST)]),
            "test.b, which is valid",
        ),
    ],
)
def test_one_file_that_is_given_twice(texts, example):
    [found] = [f for (kind, _), f in find(*texts).items() if kind == "twice"]
    assert found.severe and found.count == found.total and found.example.startswith(example)


def turn(pairs: Pairs) -> Pairs:
    return [(b, a) for a, b in pairs]


def test_swapped_sides():
    xx = ("xx", "yy")  # nothing is known of these
    for languages in (xx, ("en", "de"), ("en_GB", "de-AT")):
        assert {*find(test=turn(TEST), languages=languages)} == {("swapped", "test")}
        assert {*find(valid=turn(VALID), languages=languages)} == {("swapped", "valid")}
        assert {*find(turn(TRAIN), languages=languages)} >= {
            ("swapped", "train")
        } or languages == xx
    found = find(turn(TRAIN))
    assert {*found} == {("swapped", "train")} and found["swapped", "train"].severe
    assert found["swapped", "train"].count == 300, "the others are as their names say"
    everywhere = find(*map(turn, (TRAIN, VALID, TEST)))
    assert {*everywhere} == {("swapped", x) for x in ("train", "valid", "test")}
    assert find(*map(turn, (TRAIN, VALID, TEST)), languages=("de", "en")) == {}
    assert {*find(*map(pieces, (TRAIN, VALID, turn(TEST))), languages=xx)} == {("swapped", "test")}


def test_sides_of_nearly_one_language_are_not_swapped():
    halves = [a for a, _ in TRAIN[::2]], [a for a, _ in TRAIN[1::2]]
    swapped = [f"{line} x" for line in halves[1]], [f"{line} x" for line in halves[0]]
    train, test = (list(zip(*sides, strict=True)) for sides in (halves, swapped))
    found = find(train, [], test, languages=("xx", "yy"))
    assert ("swapped", "test") not in found


@pytest.mark.parametrize(
    ("texts", "example"),
    [
        ((TRAIN, VALID, glued(TEST)), "test.a (raw text) beside train.a (words)"),
        ((glued(TRAIN), glued(VALID), TEST), "test.a (words) beside train.a (raw text)"),
        (
            (pieces(TRAIN), pieces(VALID), TEST),
            "test.a (words) beside train.a (subwords of sentencepiece)",
        ),
        (
            (split(TRAIN, "e", "e@@ "), split(VALID, "e", "e@@ "), pieces(TEST)),
            "test.a (subwords of sentencepiece) beside train.a (subwords of subword-nmt)",
        ),
    ],
)
def test_raw_text_words_and_subwords(texts, example):
    found = find(*texts)
    assert {*found} == {("forms", "test")}
    assert found["forms", "test"].example == example and found["forms", "test"].is_notable


def test_untranslated_pairs():
    same = [(a, a) for a, _ in TRAIN]
    half = find([*same[:150], *TRAIN[150:]])["untranslated", "train"]
    assert (half.count, half.severe) == (150, True)
    assert half.example.startswith("train.a:1: '")
    less = find([*same[:149], *TRAIN[149:]])["untranslated", "train"]
    assert (less.count, less.severe) == (149, False)
    assert ("untranslated", "train") not in find([*TRAIN, ("1 2 .", "1 2 .")])


@pytest.mark.parametrize(
    ("pair", "kind", "shown"),
    [
        (("", TRAIN[0][1]), "empty", "train.a:301"),
        ((TRAIN[0][0], " \t"), "empty", "train.a:301"),
        (("yes .", TRAIN[0][1] * 3), "uneven", "train.a:301: 'yes .'"),
        (
            ("старик видит собак .", "der Alte sieht 2 Hunde ."),
            "script",
            "train.a:301 (CYRILLIC): 'с",
        ),
        (("a man .", "狗看见老人 . "), "script", "train.b:301 (CJK): '狗看见老人 .'"),
        (("a man \ufffd .", "ein Mann ."), "odd", "train.a:301: 'a man \ufffd .'"),
        (("a man .", "ein Ã¤rger ."), "odd", "train.b:301: 'ein Ã¤rger .'"),
        (("a <b>man</b> .", "ein Mann ."), "odd", "train.a:301: 'a <b>man</b> .'"),
        (("R&amp;D is it .", "ein Mann ."), "odd", "train.a:301: 'R&amp;D is it .'"),
    ],
)
def test_odd_pairs(pair, kind, shown):
    found = find([*TRAIN, pair])
    assert (kind, "train") in found and len(found) == 1, found
    one = found[kind, "train"]
    assert (one.count, one.total, one.severe, one.is_notable) == (1, 301, False, False)
    assert one.example.startswith(shown)
    assert f"(1 of 301, {100 / 301:.3g} %)" in str(one)
    assert find([*TRAIN, *[(f"{pair[0]}", pair[1])] * 4])[kind, "train"].is_notable


def test_words_of_the_moses_tokenizer_are_not_odd():
    escaped = [(f"{a} &quot; x &apos;s &amp; &lt; 3", f"{b} < 3 < 4 y") for a, b in TRAIN]
    assert find(escaped) == {}


def test_scripts_that_one_text_mixes():
    japanese = [(a, f"これは{n}本のペンです . ＡＢ") for n, (a, _) in enumerate(TRAIN)]
    assert not [key for key in find(japanese, [], []) if key[0] == "script"]


def test_limits_are_names_of_kinds_and_shares():
    assert {each.name for each in fields(Limits)} == {"words", *KINDS}
    assert read_limits({"repeated": 0.3, "twice": None, "words": 5}) == Limits(
        words=5, repeated=0.3, twice=None
    )
    for values, fault in (
        ({"leaks": 1}, "leaks: no such kind of fault; choose from words, test_in_training"),
        ({"words": 0}, "words: 0: give a whole number from 1"),
        ({"words": 1.5}, "words: 1.5: give a whole"),
        ({"odd": 2}, "odd: 2: give a share from 0 to 1, or null"),
        ({"odd": True}, "odd: True: give a share"),
        ({"odd": float("nan")}, "odd: nan: give a share"),
        ({"odd": "1"}, "odd: '1': give a share"),
    ):
        with pytest.raises(DataError, match=f"^{fault}"):
            read_limits(values)


def test_files_are_read(tmp_path):
    for name, pairs in {"train": TRAIN, "test": TRAIN[:3]}.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (tmp_path / f"{name}.{language}").write_text(text)
    prefixes = {name: tmp_path / name for name in ("test", "train")}
    [found] = examine_files(prefixes, ("en", "de"))
    assert found.example == f"{tmp_path}/test.en:1, which is {tmp_path}/train.en:1"
    (tmp_path / "test.de").write_text("a\n")
    with pytest.raises(DataError, match=r"test\.de: has another number of lines than .*test\.en$"):
        examine_files(prefixes, ("en", "de"))
    with pytest.raises(FileNotFoundError):
        examine_files({"train": Path("none")}, ("en", "de"))


LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30)


@given(*[st.lists(st.tuples(LINES, LINES), max_size=8)] * 3)
def test_any_text_is_examined(train, valid, test):
    for finding in find(train, valid, test).values():
        assert 0 < finding.count <= finding.total and str(finding).isprintable()
