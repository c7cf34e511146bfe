from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import syncattn_fairseq
from syncattn_fairseq.cli.score import main

FILES = {
    "ref": "der Hund\nja\n",
    "heads.en": "2 0\n0\n",
    "heads.de": "2 0\n\n",
    "align": "1-1 2-2\n1?1\n",
    "beam": "S-1\tyes\nH-1\t-1\tja\nS-0\tthe dog\nH-0\t-1\td@@ er Hund\n",
    "plain": "der Hund\nnein\n",
    "forced": (
        "X-0\tsource\tword\t2 1\nX-0\thypothesis\tword\t0 0\nS-0\tthe d@@ og\n"
        "H-0\t-1\td@@ er Hund\nA-0\t0-0 0-1 2-2\n"
        "X-1\tsource\tword\t0\nX-1\thypothesis\tword\t0\nS-1\tyes\nH-1\t-1\tja\nA-1\t0-0\n"
    ),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SYSTEMS = shlex.split("--system Ours beam forced --system Plain plain --references ref")
GOLD = shlex.split("--source-heads heads.en --target-heads heads.de --alignments align --one-based")


def test_table_of_the_real_command(files: Path) -> None:
    command = [sys.executable, "-m", "syncattn_fairseq.cli.score", *SYSTEMS, *GOLD]
    environment = os.environ | {"PYTHONPATH": str(Path(syncattn_fairseq.__file__).parents[1])}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert " ".join(lines[0].split()) == "system BLEU chrF UAS source UAS target AER sentences"
    # UAS source 2 of 3, target 1 of 1; |A| = 3, |S| = 2, every sure link is found, none is wrong.
    assert lines[1].split() == ["Ours", "0.00", "100.00", "66.67", "100.00", "0.00", "2"]
    assert lines[2].split()[3:] == ["-", "-", "-", "2"]
    assert len({len(line) for line in lines[:3]}) == 1
    assert lines[4].startswith("BLEU nrefs:1|") and lines[5].startswith("chrF nrefs:1|")
    assert "50.0 % of the words" in lines[6]


def test_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SYSTEMS, *GOLD, "--json", "scores.json"]) == 0
    assert capsys.readouterr().out.startswith("system")
    written = json.loads((files / "scores.json").read_text(encoding="utf-8"))
    ours = written["systems"]["Ours"]
    assert ours["source_attachment"]["uas"] == pytest.approx(2 / 3)
    assert ours["alignment"] == {"aer": 0, "precision": 1, "recall": 1}
    assert written["systems"]["Plain"]["alignment"] is None

    assert main([*SYSTEMS, *GOLD, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == written


def test_detokenize(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "beam").write_text("der Hund bellt laut , ja .\n", encoding="utf-8")
    (files / "ref").write_text("der Hund bellt laut, ja.\n", encoding="utf-8")
    arguments = shlex.split("--system Ours beam --references ref --json -")
    assert main([*arguments, "--detokenize", "moses:de"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"]["Ours"]["chrf"]["score"] == 100


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"ref": "ja\n"}, SYSTEMS, "system Ours: 2 translations, 1 references"),
        ({"beam": "H-0\t-1\tja\n"}, SYSTEMS, "system Ours: 1 translations, 2 references"),
        ({}, SYSTEMS[:4] + SYSTEMS, "--system Ours: give each name once"),
        ({}, ["--system", "Ours", "--references", "ref"], "--system Ours: give each name once"),
        ({"align": "1-1\n"}, SYSTEMS + GOLD, "system Ours: 2 decoded sentences, but 1 gold align"),
        ({"align": "1-1 x\n\n"}, SYSTEMS + GOLD, "align:1: 'x' is not a link"),
        ({"heads.de": "2 0 0\n\n"}, SYSTEMS + GOLD, "target: sentence 1: 2 heads, 3 gold heads"),
        ({}, [*SYSTEMS, "--source-heads", "none.there"], "none.there"),
    ],
)
def test_one_line_says_what_is_wrong(
    files: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, str],
    arguments: list[str],
    message: str,
) -> None:
    for name, text in change.items():
        (files / name).write_text(text, encoding="utf-8")
    assert main([*arguments, "--json", "scores.json"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("error: ") and message in err
    assert not (files / "scores.json").exists()
