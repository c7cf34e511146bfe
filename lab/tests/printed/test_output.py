"""What is read of the files that programs print when they translate."""

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from lab.tests.printed.making import line, printed
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.printed import fairseq_output
from syncattn_lab.printed.output import has_analyses, read_output

OUTPUT = """\
2026-01-01 10:00:00 | INFO | fairseq_cli.generate | {'_name': None}
S-1\tein@@ en Hund
T-1\ta dog
H-1\t-0.25\ta dog
D-1\t-0.25\tA dog.
P-1\t-0.1 -0.2
A-1\t0-0 2-1
H-1\t-0.75\tone dog
D-1\t-0.75\tOne dog.
A-1\t1-0 2-1
S-0\t
H-0\t-0.5\t
Generate test with beam=5: BLEU4 = 12.00
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def translations(path: Path, text: str) -> list[str]:
    return [sentence.translation for sentence in read_output(write(path / "out", text))]


def test_best_hypotheses_in_the_order_of_the_corpus(tmp_path):
    links = {(0, 0), (2, 1)}
    assert [*read_output(write(tmp_path / "out", OUTPUT))] == [
        printed("", ""),
        printed("a dog", "A dog.", "ein@@ en Hund", links=links, forced=True),
    ]


def test_records_are_read_as_they_were_written(tmp_path):
    sentences = [
        {"target": "a d@@ og", "source": "ein@@ en Hund", "links": [(0, 0), (2, 1)]},
        {
            **{"target": "a", "source": "ein", "source_heads": [1], "target_heads": [0]},
            **{"layer_links": {(1, 0): [(0, 0)], (3, 2): []}, "forced": True},
            **{"source_distances": {1: [0.5]}, "target_distances": {2: [1.0]}},
        },
    ]
    path = write(tmp_path / "out", "".join(line(**one) for one in sentences))
    found = [*read_output(path)]
    for side in ("source", "target"):
        texts = [getattr(sentence, side) for sentence in found]
        assert [text.text for text in texts] == [" ".join(text.words) for text in texts]
    bare = [
        replace(s, source=replace(s.source, text=""), target=replace(s.target, text=""))
        for s in found
    ]
    assert bare == [printed(**one) for one in sentences]
    assert has_analyses(path)
    with pytest.raises(DataError, match="out:3: source: unexpected value null"):
        read_output(write(path, path.read_text() + "{}\n"))


def test_lines_of_an_earlier_version_are_named(tmp_path):
    said = []
    path = write(tmp_path / "out", "X-0\tsource\tword\t0\nL-0\t1\t0-0\nS-0\ta\nH-0\t-1\tb\n")
    assert [*read_output(path, warn=said.append)] == [printed("b", source="a")]
    [warning] = said
    assert warning.startswith(
        f"{path}: has 2 lines of an earlier version (X- or L-), which are not read"
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a dog", "", "S-1 trains"], ["a dog", "", "S-1 trains"]),
        (["a d@@ og", "the@@ y"], ["a dog", "they"]),
        (["▁a ▁d og", "▁the y"], ["a dog", "they"]),
        (["a ▁ b", "c d", "e"], ["a ▁ b", "c d", "e"]),  # a character of the text, on one line
        (["mail a@@ b", *100 * ["c"]], ["mail a@@ b", *100 * ["c"]]),
        (["mail a@@ b", *99 * ["c"]], ["mail ab", *99 * ["c"]]),
        (["a dog ||| 0-0 1-1", "", "b ||| ", "c"[:0]], ["a dog", "", "b", ""]),
        (["a | b ||| c ||| 0-0:0.5"], ["a | b ||| c"]),
        (["a d@@ og ||| 0-0 1-1 2-1", "the@@ y ||| 0-0"], ["a dog", "they"]),
        (["a ||| b", "c ||| d"], ["a ||| b", "c ||| d"]),
        (
            ["0 ||| a dog ||| F0= -1 ||| -1", "0 ||| one ||| F0= -2 ||| -2", "1 ||| b ||| -1"],
            ["a dog", "b"],
        ),
        (
            [
                json.dumps({"sentence_id": 1, "translation": "a dog", "score": 0.4}),
                json.dumps({"sentence_id": 2, "translation": "", "score": 0.4}),
            ],
            ["a dog", ""],
        ),
        (['{"translations": ["a dog", "one"], "scores": [1, 2]}'] * 2, ["a dog", "a dog"]),
        (['{"translation": null, "translations": ["b"]}'], ["b"]),
        (['{"translations": []}', '{"translations": [1]}'], None),
        (['{"a": 1}', "[]"], ['{"a": 1}', "[]"]),
        (["a dog ||| 0.9,.1 1e-05,1 0.5,0.5", "b ||| 0.25,0.75"], ["a dog", "b"]),
        (["0 ||| a ||| 0-0 ||| F0= -1 ||| -1", "1 ||| b ||| 0-0 ||| F0= -1 ||| -1"], ["a", "b"]),
        (["a b", "H-1\tis a lorry", "c"], ["a b", "H-1\tis a lorry", "c"]),
        (["INFO | one", "INFO | two", "INFO | three", "S-0\tx", "H-0\t-1\ta"], ["a"]),
    ],
)
def test_translations_of_any_program(tmp_path, lines, expected):
    found = translations(tmp_path, "".join(f"{one}\n" for one in lines))
    assert found == (lines if expected is None else expected)


def test_columns_that_no_program_prints_are_named(tmp_path):
    said = []
    for name, lines in (("bars", "a ||| b\nc ||| d\n"), ("some", "a ||| b\nc\nd\n")):
        read_output(write(tmp_path / name, lines), warn=said.append)
    [warning] = said
    assert warning.startswith(f"{tmp_path / 'bars'}: most lines have ' ||| ', but in a form that")


def test_subwords_are_marked_as_most_lines_show(tmp_path):
    marks = "▁", "x", "y"  # U+2581 is a word of the text, on one line of three
    lines = [f"S-{n}\ta {marks[n]} b\nH-{n}\t-1\tc@@ d e{n}\nA-{n}\t0-0 2-2\n" for n in range(3)]
    path = write(tmp_path / "out", "".join(lines))
    sentence = read_output(path)[0]
    assert sentence.translation == "cd e0"
    assert (sentence.source.words, sentence.target.words) == (["a", "▁", "b"], ["cd", "e0"])
    assert sentence.links == {(0, 0), (2, 1)}
    [unjoined, *_] = read_output(path, scheme="none")
    assert unjoined.translation == "c@@ d e0"


def test_translations_whose_subwords_fairseq_joined_stay(tmp_path):
    """--remove-bpe joins those of the D- lines; an @@ in one of them is the text's own."""
    lines = [f"H-{n}\t-1\tc@@ d\nD-{n}\t-1\tcd\n" for n in range(101)]
    lines[1] = "H-1\t-1\tc@@ d @\nD-1\t-1\tcd @@ d\n"
    assert translations(tmp_path, "".join(lines)) == ["cd", "cd @@ d", *99 * ["cd"]]


def test_bytes_that_fairseq_left_in_its_translations_are_joined(tmp_path):
    """Of a model of raw sentences; what fairseq detokenised stays, and so does a text's own."""
    hypothesis = "▁C af <0xC3> <0xA9> !"
    for joined, expected in (
        ("Caf<0xC3><0xA9>!", "Café!"),
        ("Caf<0xC3><0xA9> !", "Caf<0xC3><0xA9> !"),
        (hypothesis, "Café!"),
    ):
        text = f"H-0\t-1\t{hypothesis}\nD-0\t-1\t{joined}\n"
        assert translations(tmp_path, text) == [expected]
    assert translations(tmp_path, "H-0\t-1\t<0xC3>\nD-0\t-1\t<0xC3>\n") == ["<0xC3>"]
    (tmp_path / "out").write_text(f"H-0\t-1\t{hypothesis}\n", "utf-8")
    [sentence] = read_output(tmp_path / "out", "raw:uax29")
    assert (sentence.translation, sentence.target.words) == ("Café!", ["Café", "!"])


def test_lines_in_any_order(tmp_path, monkeypatch):
    """More sentences than are kept uncompressed, and lines of one sentence far from each other."""
    monkeypatch.setattr(fairseq_output, "BLOCK", 3)
    monkeypatch.setattr(fairseq_output, "_AT_ONCE", 4)
    lines = [
        line for n in range(20) for line in (f"S-{n}\tx y{n}", f"H-{n}\t-1\ta{n}", f"A-{n}\t1-0")
    ]
    random.Random(1).shuffle(lines)
    lines = sorted(lines, key=lambda one: one.startswith("A"))
    path = write(tmp_path / "out", "\n".join(lines))
    expected = [printed(f"a{n}", source=f"x y{n}", links=[(1, 0)]) for n in range(20)]
    assert [*read_output(path)] == expected
    first = next(line for line in lines if line.startswith("S"))
    with pytest.raises(DataError, match=f"out:61: sentence {first[2:].split()[0]} appears twice"):
        read_output(write(path, "\n".join([*lines, first])))
    with pytest.raises(DataError, match="sentence 20 has no H- line"):
        read_output(write(path, "\n".join([*lines, "H-30\t-1\ta"])))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a dog\na man\n", ["a dog", "a man"]),
        (line("a") + line("b"), ["a", "b"]),
        ("H-0\t-1\ta\n", ["a"]),
    ],
)
def test_a_pipe_is_read_once(tmp_path, text, expected):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=write, args=(pipe, text))
    writer.start()
    assert [sentence.translation for sentence in read_output(pipe)] == expected
    writer.join()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "out: the file is empty; give translations, one on each line"),
        ("H-0\t-1\ta\nH-2\t-1\tc\n", "sentence 1 has no H- line.*required-batch-size-multiple 1"),
        ("S-0\ta\nS-1\tb\nH-1\t-1\tb\n", "sentence 0 has no H- line"),
        ("H-0\t-1\ta\nH-1\t-1\tb\nH-0\t-1\ta\n", "out:3: sentence 0 appears twice"),
        ("S-0\ta\nH-0\t-1\ta\nS-0\ta\nH-0\t-1\ta\n", "out:3: sentence 0 appears twice"),
        ("H-0\ta\nH-1\t-1\ta\n", "out:1: expected a score"),
        ("H-0\t-1\ta\nA-0\t0.1,0.9 0.2,0.8\n", "out:2: expected links like 3-4.*alignment hard"),
        ("S-0\ta\nH-0\t-1\ta\nA-0\t1-0\n", "out: sentence 0: "),
        ("a ||| 0-0\nb ||| 0-0\nc\n", "out:3: no ' ||| ' with links"),
        ("0 ||| a ||| 1\n2 ||| a ||| 1\n", "out:2: expected sentence 1, got sentence 2"),
        (
            "0 ||| a ||| 1\n1 ||| b ||| 1\nc\n",
            "out:3: expected a line of an n-best list: 'NUMBER ||| TEXT",
        ),
        ('{"translation": "a"}\n{"translation": "b"}\nc\n', 'out:3: expected JSON with a "tr'),
        ('{"translation": "a\\nb"}\n', "out:1: the translation is not a line of text"),
    ],
)
def test_broken_output(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_output(write(tmp_path / "out", text))


def test_fairseqs_links_of_raw_sentences_are_of_words_with_places(tmp_path):
    output = "S-0\t▁It ▁isn ' t .\nH-0\t-1\t▁Nein .\nA-0\t0-0 3-0 4-1\n"
    [sentence] = read_output(write(tmp_path / "out", output), "raw:uax29")
    assert sentence.links == {(0, 0), (1, 0), (2, 1)}
    assert sentence.source.words == ["It", "isn't", "."]
    assert str(sentence.source) == "It isn't."
    assert sentence.source.spans == [(0, 2), (3, 8), (8, 9)]
    assert sentence.target.spans == [(0, 4), (4, 5)]
