import json

import pytest

from lab.tests.printed.making import line
from syncattn_lab.cli import score
from tests.cli.errors import read_error


def main(arguments: list[str]) -> int:
    return score.main(["trees", *arguments])


FILES = {
    # Words: the man sleeps . / a | || ( c ) / no tree / yes
    "gold": "(ROOT (S (NP (DT the) (NN man)) (VP (VBZ sleeps)) (. .)))\n"
    "(NP (NP (NN a) (SYM |) (SYM ||)) (PRN (-LRB- () (NN c) (-RRB- ))))\n"
    "\n"
    "(S (INTJ (UH yes)))\n",
    "flat": "(X (X the) (X man) (X sleeps) (X .))\n"
    "(X (X a) (X |) (X ||) (X () (X c) (X )))\n"
    "(())\n"
    "(X yes)\n",
    "same": "(S (A (B the) (C man)) (D (E sleeps)) (F .))\n"
    "(G (H (I a) (J |) (K ||)) (L (M -LRB-) (N c) (O -RRB-)))\n"
    "(X x)\n"
    "( (P (Q (R yes))))\n",
}
ARGUMENTS = ["--gold", "gold", "--system", "Flat", "flat", "--system", "Same", "same"]


pytestmark = pytest.mark.usefixtures("files")


def test_table(capsys):
    assert main(ARGUMENTS) == 0
    table, notes = capsys.readouterr().out.split("\n\n")
    rows = [line.split() for line in table.splitlines()]
    assert rows[0] == ["system", "evalb", "P", "evalb", "R", "evalb", "F1", "sentence", "F1"]
    # evalb: 8 gold brackets, 04 02 23 and 06 03 36 and 01 01; Flat has the two whole sentences.
    # Sentence F1: gold 02 of the man sleeps, and 03 of a | || c; yes is too short.
    assert rows[1] == ["Flat", "100.00", "25.00", "40.00", "0.00"]
    assert rows[2] == ["Same", "100.00", "100.00", "100.00", "100.00"]
    # 04 03 02 and 06 05 04 03 02: four right of eight; 02, and 03 beside 02.
    assert rows[3] == ["left-branching", "50.00", "50.00", "50.00", "83.33"]
    # 04 14 24 and 06 16 26 36 46: three right of eight; 13, and 14 24.
    assert rows[4] == ["right-branching", "37.50", "37.50", "37.50", "0.00"]
    # 04 02 24 and 06 03 13 36 46: five right of eight; 02, and 03 beside 13.
    assert rows[5] == ["balanced", "62.50", "62.50", "62.50", "83.33"]
    assert rows[6][0] == "random" and len(rows) == 7
    assert "of all 3 sentences (11 words) are counted together" in notes
    assert "the 2 sentences" in notes and "seed 1" in notes
    assert notes.splitlines()[-1] == "1 sentences without a gold tree left out"


def test_json(files, capsys):
    assert main([*ARGUMENTS, "--json", "scores.json"]) == 0
    assert capsys.readouterr().out.startswith("system")
    written = json.loads((files / "scores.json").read_text(encoding="utf-8"))
    assert list(written["systems"]) == ["Flat", "Same"]
    assert list(written["baselines"]) == ["left-branching", "right-branching", "balanced", "random"]
    assert written["systems"]["Flat"] == {
        "evalb": {
            **{"precision": 1, "recall": 0.25, "f1": 0.4, "matched": 2, "predicted": 2, "gold": 8},
            **{"sentences": 3, "words": 11},
        },
        "sentence": {"precision": 0, "recall": 0, "f1": 0, "sentences": 2, "too_short": 1},
        "left_out": 1,
    }
    assert main([*ARGUMENTS, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == written


def test_gold_without_binarisation(files, capsys):
    binarised = "(S (NP (DT the) (NN man)) (@S (VP (VBZ sleeps)) (@S (X (U on) (V on)) (. .))))\n"
    (files / "gold").write_text(binarised)
    plain = binarised.replace("(@S ", "").replace("))))\n", "))\n")
    (files / "plain").write_text(plain)
    arguments = ["--gold", "gold", "--system", "Plain", "plain", "--json", "-"]
    recalls = []
    for options in ([], ["--debinarise"]):
        assert main([*arguments, *options]) == 0
        evalb = json.loads(capsys.readouterr().out)["systems"]["Plain"]["evalb"]
        recalls.append((evalb["matched"], evalb["gold"]))
    assert recalls == [(4, 6), (4, 4)]


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (
            {"flat": "(X x)\n"},
            ARGUMENTS,
            "flat:1: the file has 1 lines, but there are 4 gold trees",
        ),
        (
            {"same": "((the man) sleeps)\n\n\n\n"},
            ARGUMENTS,
            "same:1: the tree has 2 words, but the gold tree has 4",
        ),
        ({"same": "(X x\n\n\n\n"}, ARGUMENTS, "same:1: brackets left open: 1"),
        ({"gold": "\n\n"}, ARGUMENTS, "gold: has no gold tree; give one tree"),
        ({}, [*ARGUMENTS, "--system", "Same", "flat"], "--system Same: give each name once"),
        ({}, [*ARGUMENTS, "--system", "Other", "none"], "No such file"),
    ],
)
def test_one_line_says_what_is_wrong(files, capsys, change, arguments, message):
    for name, text in change.items():
        (files / name).write_text(text, encoding="utf-8")
    assert message in read_error(capsys, main([*arguments, "--json", "scores.json"]))
    assert not (files / "scores.json").exists()


def test_trees_that_distances_induce(files, capsys):
    """A layer splits the sentence at its largest gap, between words."""
    gaps = {1: [0, 1, 2, 9, 3], 2: [0, 9, 8, 2, 3]}
    lines = [
        line("the ma@@ n sleeps .", target_distances=gaps),
        line("a | || ( c )", target_distances={1: [0] * 6, 2: [0] * 6}),
        line("no tree", target_distances={1: [0, 1], 2: [0, 1]}),
        line("yes", target_distances={1: [0], 2: [0]}),
    ]
    (files / "forced.jsonl").write_text("".join(lines), encoding="utf-8")
    arguments = ["--gold", "gold", "--system", "LPSI", "forced.jsonl", "--json", "-"]
    assert main(arguments) == 0
    systems = json.loads(capsys.readouterr().out)["systems"]
    # Layer 1: ((the man) (sleeps .)), with 04 and 02; layer 2: (the ((man sleeps) .)), with 04;
    # both: 06 and 36 of (a (| (|| (( (c )))))).
    assert list(systems) == ["LPSI layer 1", "LPSI layer 2"]
    assert [one["evalb"]["sentences"] for one in systems.values()] == [3, 3]
    for one in systems.values():
        assert one["left_out"] == 1
    assert [one["evalb"]["matched"] for one in systems.values()] == [4, 3]
    (files / "forced.jsonl").write_text("".join(lines[:2]), encoding="utf-8")
    assert "forced.jsonl: has 2 sentences, but there are 4 gold trees" in read_error(
        capsys, main(arguments)
    )
    assert "no syntactic distances of the source; only LPSI" in read_error(
        capsys, main([*arguments, "--side=source"])
    )
