"""``syncattn-score contrast``: pairs, models, tables."""

import json
import shlex

import pytest

from syncattn_lab.cli import score_contrast
from syncattn_lab.cli.score import main
from tests.cli.errors import read_error

FILES = {
    "pairs": "".join(f"s{n}\tright\twrong{n}\tkind\t{n % 2}\n" for n in range(20)),
    "a.pt": "",
    "b.pt": "",
}
COMMAND = shlex.split("contrast pairs --model A a.pt --model B b.pt")


class Model:
    """Finds the right translation as probable as ``good`` says, and any other at 1."""

    def __init__(self, good):
        self.good = good

    def score(self, sources, translations, *, decoding):
        assert decoding.batch_size == 7
        assert len(sources) == len(translations) == 40
        rows = zip(sources, translations, strict=True)
        return [self.good(int(s[1:])) if t == "right" else 1.0 for s, t in rows]


@pytest.fixture
def models(files, monkeypatch):
    """A, which is right in every second pair, and B, which always is."""
    known = {"a.pt": Model(lambda n: 2.0 * (n % 2)), "b.pt": Model(lambda n: 2.0)}
    monkeypatch.setattr(score_contrast, "open_model", lambda args, path: known[path])
    monkeypatch.setattr(score_contrast, "warn_of_unknown", lambda model: None)


def test_accuracy_by_distance(models, capsys):
    assert main([*COMMAND, "--baseline", "A", "--batch-size", "7"]) == 0
    tables = capsys.readouterr().out.split("\n\n")
    lines = tables[0].splitlines()
    assert lines[0].split() == [
        "accuracy",
        "pairs",
        "system",
        "%",
        "difference",
        "p",
        "Holm",
        "verdict",
    ]
    assert lines[1].split()[:4] == ["all", "20", "A", "50.00"]
    assert lines[2].split()[:4] == ["20", "B", "100.00", "+50.00"] and lines[2].endswith("better")
    assert tables[1].startswith("accuracy by distance  pairs")
    assert tables[1].splitlines()[1].split()[:4] == ["0", "10", "A", "0.00"]
    assert tables[2].startswith("accuracy: percentage of the pairs ")


def test_json_and_markdown(models, capsys):
    assert main([*COMMAND, "--batch-size", "7", "--json", "-"]) == 0
    scores = json.loads(capsys.readouterr().out)["contrast"]
    assert {s["system"]: (s["right"], s["total"]) for s in scores if s["kind"] == "all"} == {
        "A": (10, 20),
        "B": (20, 20),
    }
    assert main([*COMMAND, "--batch-size", "7", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("| accuracy | pairs | system | % |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--model A b.pt", "--model: give each name once"),
        ("--baseline C", "no system is named C; choose one of A, B"),
    ],
)
def test_names(models, capsys, arguments, message):
    assert message in read_error(capsys, main([*COMMAND, *shlex.split(arguments)]))
