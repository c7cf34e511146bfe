import os
import random
from pathlib import Path
from threading import Thread

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.analysis_lines import LinksOf
from syncattn_lab.printed import decoded
from syncattn_lab.printed.decoded import DecodedSentence, read_decoded

OUTPUT = """\
2026-01-01 10:00:00 | INFO | fairseq_cli.generate | {'_name': None}
X-1\tsource\tsubword\t1 1 1
X-1\tsource\tword\t2 0
X-1\thypothesis\tsubword\t0 0
X-1\thypothesis\tword\t0 1
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


def test_best_hypotheses_in_the_order_of_the_corpus(tmp_path):
    assert read_decoded(write(tmp_path / "out", OUTPUT)) == [
        DecodedSentence(hypothesis="", translation=""),
        DecodedSentence(
            hypothesis="a dog",
            translation="A dog.",
            source="ein@@ en Hund",
            source_heads=[2, 0],
            hypothesis_heads=[0, 1],
            links={(0, 0), (2, 1)},
            is_reference=True,
        ),
    ]


def test_distances_and_links_of_layers(tmp_path):
    [sentence] = read_decoded(
        write(
            tmp_path / "out",
            "X-0\tsource\tdistance-1\t0.5 -0.25\nX-0\tsource\tdistance-2\t0 1\n"
            "X-0\thypothesis\tdistance-2\t1\nL-0\t1\t0-0\nL-0\t3.2\t1-0\nH-0\t-1\ta\n",
        )
    )
    assert sentence.source_distances == {1: [0.5, -0.25], 2: [0, 1]}
    assert sentence.hypothesis_distances == {2: [1]}
    assert sentence.layer_links == {LinksOf(1): {(0, 0)}, LinksOf(3, 2): {(1, 0)}}


def test_plain_text(tmp_path):
    sentences = read_decoded(write(tmp_path / "out", "a dog\n\nS-1 trains\n"))
    assert [s.translation for s in sentences] == ["a dog", "", "S-1 trains"]


def test_lines_in_any_order(tmp_path, monkeypatch):
    """More sentences than are kept uncompressed, and lines of one sentence far from each other."""
    monkeypatch.setattr(decoded, "BLOCK", 3)
    monkeypatch.setattr(decoded, "_AT_ONCE", 4)
    lines = [
        line
        for n in range(20)
        for line in (f"S-{n}\tx y{n}", f"H-{n}\t-1\ta{n}", f"X-{n}\tsource\tword\t0 {n}")
    ]
    random.Random(1).shuffle(lines)
    path = write(tmp_path / "out", "\n".join(lines))
    expected = [DecodedSentence(f"a{n}", f"a{n}", f"x y{n}", [0, n]) for n in range(20)]
    assert read_decoded(path) == expected
    first = next(line for line in lines if line.startswith("S"))
    with pytest.raises(DataError, match=f"out:61: sentence {first[2:].split()[0]} appears twice"):
        read_decoded(write(path, "\n".join([*lines, first])))
    with pytest.raises(DataError, match="sentence 20 has no H- line"):
        read_decoded(write(path, "\n".join([*lines, "H-30\t-1\ta"])))


def test_plain_text_from_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=write, args=(pipe, "a dog\na man\n"))
    writer.start()
    assert [sentence.translation for sentence in read_decoded(pipe)] == ["a dog", "a man"]
    writer.join()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("H-0\t-1\ta\nH-2\t-1\tc\n", "sentence 1 has no H- line.*required-batch-size-multiple 1"),
        ("S-0\ta\nS-1\tb\nH-1\t-1\tb\n", "sentence 0 has no H- line"),
        ("H-0\t-1\ta\nH-1\t-1\tb\nH-0\t-1\ta\n", "out:3: sentence 0 appears twice"),
        ("S-0\ta\nH-0\t-1\ta\nS-0\ta\nH-0\t-1\ta\n", "out:3: sentence 0 appears twice"),
        ("H-0\ta\n", "out:1: expected a score"),
        ("H-0\t-1\ta\nA-0\t0.1,0.9 0.2,0.8\n", "out:2: expected links like 3-4.*alignment hard"),
        ("H-0\t-1\ta\nX-0\tsource\tword\t1 x\n", "out:2: expected heads, got '1 x'"),
        ("H-0\t-1\ta\nX-0\tsource\tdistance-1\t1 x\n", "out:2: expected distances, got '1 x'"),
        ("H-0\t-1\ta\nX-0\tsource\tdistance-1\t1e308\n", "out:2: expected distances, got '1e308'"),
        ("H-0\t-1\ta\nX-0\tsource\tdistance-1\t-1e6\n", "out:2: expected distances, got '-1e6'"),
        ("H-0\t-1\ta\nL-0\t1\t1:1\n", "out:2: expected links like 3-4"),
    ],
)
def test_broken_output(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_decoded(write(tmp_path / "out", text))
