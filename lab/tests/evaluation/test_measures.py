import json
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.ter import TER

from lab.tests.evaluation.test_results import cell
from syncattn_fairseq.export.card import make_card, read_scores
from syncattn_lab.cli import score
from syncattn_lab.evaluation.contrast import Contrast
from syncattn_lab.evaluation.contrast_tables import tabulate_plan
from syncattn_lab.evaluation.measures import MEASURES, Measure, decide, format_p, holm
from syncattn_lab.evaluation.results_tables import tabulate_rows
from syncattn_lab.evaluation.table_rows import index_rows, make_rows
from syncattn_lab.evaluation.translation import TranslationScore
from syncattn_lab.recipes import cell_results
from syncattn_lab.recipes.figures import draw_rows


@pytest.mark.parametrize(
    ("difference", "p", "higher_is_better", "p_same", "verdict"),
    [
        (1.0, 0.049, True, None, "better"),
        (1.0, 0.049, False, None, "worse"),
        (-1.0, 0.049, True, None, "worse"),
        (-1.0, 0.0, False, 0.01, "better"),
        (1.0, 0.05, True, None, "not known"),
        (1.0, 0.05, True, 0.049, "the same"),
        (1.0, 0.05, True, 0.05, "not known"),
        (9.0, None, True, None, "not known"),
    ],
)
def test_the_rule(difference, p, higher_is_better, p_same, verdict):
    assert decide(difference, p, higher_is_better, p_same) == verdict


def test_holm():
    assert holm([]) == [] and holm([0.03]) == [0.03]
    # Sorted: .01 (times 4), .02 (3), .03 (2), .9 (1).
    assert holm([0.03, None, 0.01, 0.9, 0.02]) == [
        *(pytest.approx(0.06), None, pytest.approx(0.04), 0.9, pytest.approx(0.06))
    ]
    assert holm([0.5, 0.6]) == [1, 1]
    assert holm([0.02, 0.021, 0.02]) == pytest.approx([0.06] * 3)
    assert [format_p(p) for p in (None, 0.0004, 0.0005)] == ["–", "<0.001", "0.001"]
    assert [format_p(p) for p in (0.0494, 0.0496, 0.05)] == ["0.049", "<0.050", "0.050"]


def test_a_new_score_is_one_entry(tmp_path, monkeypatch):
    """Text, LaTeX, JSON, report, cards, and tables and figures over seeds have its column."""

    def compute(ours: Any, references: Any, tokenizer: str) -> TranslationScore:
        metric = TER()
        number = metric.corpus_score(ours, [references]).score
        return TranslationScore(number, str(metric.get_signature()))

    new = Measure("TER", "ter.score", compute, higher_is_better=False, tested=("seeds",))
    monkeypatch.setattr("syncattn_lab.evaluation.measures.MEASURES", MEASURES)
    MEASURES.insert(3, new)
    try:
        monkeypatch.chdir(tmp_path)
        for name, text in {"ref": "ein Hund bellt laut", "a": "ein Hund bellt leise"}.items():
            Path(name).write_text(f"{text}\n")
        command = ["--references=ref", "--tokenize=none", "--system", "A", "a"]
        files = ["--json=scores.json", "--latex=t.tex"]
        assert score.main([*command, *files]) == 0
        numbers = json.loads(Path("scores.json").read_text())["systems"]["A"]
        assert numbers["ter"]["score"] == numbers["scores"]["TER"] == 25
        assert (
            "& TER & " in Path("t.tex").read_text() and " & 25.00 & " in Path("t.tex").read_text()
        )
        assert cell_results.read_scores(tmp_path)["scores"]["TER"] == 25
        scores = read_scores("scores.json")
        card = make_card(("en", "de"), "x", "m", "the same", "", scores=scores)
        assert "| TER |" in card and "| 25.00 |" in card and ", TER `nrefs:1|" in card
        from syncattn_lab.cli import show

        assert show.main([*command, "--html=r.html"]) == 0
        assert "<th>TER</th>" in Path("r.html").read_text(encoding="utf-8")

        numbers = {"base": [60.0, 60.1, 60.3], "ours": [50.0, 50.2, 50.1]}
        cells = [
            cell(name, seed, 0.0, scores={"BLEU": 20.0, "TER": ter}, valid={"nll_loss": 3.0})
            for name, values in numbers.items()
            for seed, ter in enumerate(values)
        ]
        rows = make_rows({"cells": cells}, ["ours"], None, lambda system: "base")
        tables = tabulate_rows(rows)
        assert "Δ TER" in tables.tables[1][0] and "Δ TER: lower is better" in tables.notes
        assert any(note.startswith("TER, 3 seeds: deviation") for note in tables.notes)
        planned = tabulate_plan([Contrast("ours", "base", seeds=(0, 1, 2))], index_rows(rows))
        assert "TER: lower is better" in planned.notes
        data = draw_rows(rows, {})["datasets"]
        verdicts = [data[f"means {number}"][0]["verdict"] for number in range(3)]
        assert verdicts == ["not known", "better", "not known"], "NLL, TER and BLEU"
    finally:
        MEASURES.remove(new)
