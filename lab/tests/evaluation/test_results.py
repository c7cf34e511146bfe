import base64
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_ind, ttest_rel

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text_tables import markdown_table
from syncattn_lab.evaluation.intervals import bootstrap_seeds, fit_blocks, welch
from syncattn_lab.evaluation.results_file import (
    list_differing,
    load_results,
    pack_counts,
    record,
    unpack_counts,
)
from syncattn_lab.evaluation.results_tables import tabulate_rows
from syncattn_lab.evaluation.significance import compare_with_baseline, randomisation
from syncattn_lab.evaluation.table_rows import make_rows
from syncattn_lab.evaluation.tables import Tables, spread
from syncattn_lab.evaluation.translation import count_ngrams


def cell(system: str, seed: int, bleu: float, **more: Any) -> dict[str, Any]:
    return {
        **{"system": system, "seed": seed, "overrides": {}, "scores": {"BLEU": bleu}},
        **{"signatures": {"BLEU": "tok:none"}, "valid": {"loss": 3.0}, "updates": 850},
        **{"seconds": 90.0, "updates_per_second": 9.5, "commit": "abc", "hardware": "a CPU"},
        **more,
    }


def baseline(system: str) -> str:
    return "base"


def shown(path: Path, systems: list[str], seeds: list[int] | None = None) -> list[str]:
    rows = make_rows(load_results(path), systems, seeds, baseline)
    return tabulate_rows(rows).format().splitlines()


def test_cells_are_kept_and_replaced(tmp_path):
    path = tmp_path / "new" / "x.json"
    record(path, "x", [cell("base", 1, 10.0), cell("base", 2, 11.0)])
    record(path, "x", [cell("base", 2, 12.0), cell("ours", 1, 13.0)])
    found = [(c["system"], c["seed"], c["scores"]["BLEU"]) for c in load_results(path)["cells"]]
    assert found == [("base", 1, 10.0), ("base", 2, 12.0), ("ours", 1, 13.0)]
    with pytest.raises(DataError, match="has results of the corpus x, not of y"):
        record(path, "y", [cell("base", 1, 10.0)])
    assert [p.name for p in path.parent.iterdir() if not p.name.startswith(".")] == ["x.json"]


def test_rows_of_one_name_are_pooled_only_if_they_are_the_same(tmp_path):
    path = tmp_path / "x.json"
    wide = {"config": "ours", "changes": {"model.a": 2}}
    record(
        path,
        "x",
        [
            *(cell("base", seed, 10.0 + seed, config="base", changes={}) for seed in (1, 2)),
            *(cell("wide", seed, 20.0 + seed, **wide) for seed in (1, 2)),
            cell("wide", 3, 30.0, config="ours", changes={"model.a": 3}),
            cell("wide", 4, 40.0, **wide, plugin="0123456789abcdef"),
            cell("ours:model.a=2", 1, 50.0, **wide),
        ],
    )
    rows = make_rows(load_results(path), ["base", "wide", "ours:model.a=2"], None, baseline)
    assert [(row.name, [c["seed"] for c in row.cells]) for row in rows] == [
        ("base", [1, 2]),
        ("wide (ours:model.a=2)", [1, 2]),
        ("wide (ours:model.a=3)", [3]),
        ("wide (ours:model.a=2, plugin 01234567)", [4]),
        ("ours:model.a=2", [1]),
    ]
    assert all(row.baseline is not None and row.baseline.name == "base" for row in rows[1:])
    notes = tabulate_rows(rows).notes
    assert "wide: ours:model.a=3" in notes and "plugin: 01234567" in notes


GOOD = json.dumps({"corpus": "x", "cells": [cell("base", 1, 10.0), cell("ours", 1, 10.0)]})


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (GOOD, "{", "x.json: not valid JSON"),
        (GOOD, "[" * 10**5, "x.json: not valid JSON"),
        (GOOD, "[]", "x.json: is not a results file"),
        (GOOD, '{"corpus": "x"}', "x.json: is not a results file"),
        (GOOD, '{"corpus": "x", "cells": {}}', "x.json: expected the name of a corpus, and a list"),
        (GOOD, '{"corpus": 1, "cells": []}', "x.json: expected the name of a corpus, and a list"),
        (GOOD, '{"corpus": "x", "cells": [[]]}', "x.json: cell 1: expected a JSON object"),
        ('"seed": 1, ', "", "cell 1: has no seed"),
        ('"seed": 1', '"seed": true', "cell 1: seed: 'True'; expected a whole number"),
        ('"seed": 1', '"seed": [1]', r"cell 1: seed: '\[1\]'; expected a whole number"),
        ('"base"', '"ours"', "cell 2: has the same system and seed as cell 1; remove one"),
        ('"base"', '"a\\nb"', r"cell 1: system: 'a\\nb'; expected a name"),
        ('"base"', '"\\ud800"', "cell 1: system: "),
        ('"BLEU": 10.0', '"BLEU": "10"', "cell 1: scores: .*; expected finite numbers with names"),
        ('"BLEU": 10.0', '"BLEU": NaN', "cell 1: scores: .*; expected finite numbers"),
        ('"BLEU": 10.0', '"BLEU": 1e999', "cell 1: scores: .*; expected finite numbers"),
        ('"BLEU": 10.0', f'"BLEU": {10**400}', "cell 1: scores: .*; expected finite numbers"),
        ('{"loss": 3.0}', "3.0", "cell 1: valid: '3.0'; expected finite numbers with names"),
        ('"updates": 850', '"updates": null', "cell 1: updates: 'None'; expected a number"),
        ('"updates": 850', '"updates": true', "cell 1: updates: 'True'; expected a number"),
        ('"overrides": {}', '"overrides": []', r"cell 1: overrides: '\[\]'; expected settings"),
        ('"commit": "abc"', '"config": 1, "commit": "abc"', "cell 1: config: '1'; expected a name"),
        ('"commit": "abc"', '"changes": 1, "commit": "abc"', "cell 1: changes: '1'; expected set"),
        ('"commit": "abc"', '"plugin": [], "commit": "abc"', r"cell 1: plugin: '\[\]'; expected"),
        ('"commit": "abc"', '"commit": {}', r"cell 1: commit: '\{\}'; expected text"),
    ],
)
def test_results_that_are_none(tmp_path, old, new, fault):
    path = tmp_path / "x.json"
    with pytest.raises(FileNotFoundError):
        load_results(path)
    path.write_text(GOOD)
    assert len(load_results(path)["cells"]) == 2
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(DataError, match=fault) as error:
        load_results(path)
    assert str(error.value).isprintable() and len(str(error.value)) < 300


def test_the_table(tmp_path):
    path = tmp_path / "x.json"
    ours = {1: 12.0, 2: 12.4, 3: 13.0}
    base = {1: 10.0, 2: 10.5, 3: 11.0}
    both = (("base", base), ("ours", ours))
    loss = {"base": {1: 3.0, 2: 3.1, 3: 2.9}, "ours": {1: 2.9, 2: 2.92, 3: 2.94}}
    cells = [
        cell(name, seed, bleu, valid={"loss": loss[name][seed], "nll_loss": loss[name][seed]})
        for name, found in both
        for seed, bleu in found.items()
    ]
    record(path, "x", cells)
    lines = shown(path, ["base", "ours"])
    ours_base = [*ours.values()], [*base.values()]
    test = ttest_ind(*ours_base, equal_var=False)
    nll = [[math.log(2) * value for value in found.values()] for found in loss.values()]
    other = ttest_ind(*reversed(nll), equal_var=False)
    assert lines[0].split() == ["system", "seeds", "BLEU"]
    assert lines[1].split() == ["base", "3", "10.5", "±", "0.5", "(10.0–11.0)"]
    blocks = ["seeds as blocks", "p Holm"]
    assert re.split("  +", lines[4]) == ["system", "Δ NLL", *blocks, "Δ BLEU", *blocks]
    (low, high), (low_nll, high_nll) = (x.confidence_interval(0.95) for x in (test, other))
    difference = -0.08 * math.log(2)
    shown_nll = f"{difference:+.3f} [{low_nll:+.3f}, {high_nll:+.3f}]".replace("-", "−")
    paired, paired_nll = (ttest_rel(*both).confidence_interval() for both in (ours_base, nll[::-1]))
    ends = f"[{paired_nll.low:+.3f}, {paired_nll.high:+.3f}] {other.pvalue:.3f}"
    expected = f"ours {shown_nll} {ends} +2.0 [{low:+.1f}, {high:+.1f}] "
    expected += f"[{paired.low:+.1f}, {paired.high:+.1f}] {test.pvalue:.3f}"
    assert " ".join(lines[5].split()) == expected.replace("-", "−")
    losses_shown = ["2.920", "±", "0.020", "(2.900–2.940)"]
    assert lines[9].split() == ["ours", "850", "1.5", "9.50", *losses_shown]
    found = fit_blocks(ours_base)
    assert found is not None
    [power] = [line for line in lines if line.startswith("BLEU, 3 seeds: deviation within")]
    assert f"seeds {found.deviation:.2g} (2 d.f.). Seeds explain " in power
    assert f". A difference of {found.detectable():.2g} is shown with 80 % power" in power
    assert {"BLEU tok:none", "hardware: a CPU", "commit: abc"} <= {*lines}
    spread = "mean ± standard deviation (lowest–highest) over seeds"
    assert spread in lines and spread not in shown(path, ["base", "ours"], [1])
    # With one seed, there is nothing to test.
    one = shown(path, ["base", "ours"], [1])
    assert one[4].split() == ["system", "Δ", "NLL", "Δ", "BLEU"]
    assert one[5].split() == ["ours", "−0.069", "+2.0"]
    assert not [line for line in one if "power" in line]
    rows = make_rows(load_results(path), ["base"], None, baseline)
    page = tabulate_rows(rows).format(markdown=True)
    [_, rule, *_] = page.split("\n")
    assert rule == "|---|---|---|"
    assert "\n- hardware: a CPU\n- commit: abc" in page
    assert "Δ" not in page and "p Holm" not in page  # what is not there is not explained
    record(path, "x", [{**cells[0], "hardware": "a GPU"}])
    assert {"hardware: a CPU", "hardware: a GPU"} <= {*shown(path, ["base", "ours"])}


def test_names_are_no_html():
    [_, _, row] = markdown_table([["system"], ["<script>a</script> | p < .05 <b>"]]).split("\n")
    assert row == r"| &lt;script>a&lt;/script> \| p < .05 &lt;b> |"
    notes = Tables([], ["x|y <img src=a>", "p <.05"])
    assert notes.format(markdown=True) == "- x|y &lt;img src=a>\n- p <.05"


def test_p_is_corrected_for_all_comparisons(tmp_path):
    bleu = {"base": [10.0, 10.5, 11.0], "a": [12.0, 12.4, 13.0], "b": [10.9, 12.0, 11.7]}
    cells = [
        cell(name, seed, score, valid={"loss": score / 10})
        for name, found in bleu.items()
        for seed, score in enumerate(found)
    ]
    record(tmp_path / "x.json", "x", cells)
    lines = shown(tmp_path / "x.json", ["base", "a", "b"])
    smaller, larger = (
        ttest_ind(bleu[name], bleu["base"], equal_var=False).pvalue for name in ("a", "b")
    )
    assert [line.split()[0] for line in lines[6:8]] == ["a", "b"], "not the baseline"
    assert [line.split()[-1] for line in lines[6:8]] == [f"{2 * smaller:.3f}", f"{larger:.3f}"]
    assert "p Holm: corrected for the family's 2 contrasts" in lines


def test_seeds_are_blocks_of_all_systems_that_have_them(tmp_path):
    bleu = {"base": [10.0, 10.5, 11.0], "a": [12.0, 12.4, 13.0], "b": [10.9, 12.0]}
    cells = [cell(name, n, score) for name, x in bleu.items() for n, score in enumerate(x)]
    lines = tabulate_rows(make_rows({"cells": cells}, [*bleu], None, baseline)).format()
    three, two = fit_blocks([bleu["base"], bleu["a"]]), fit_blocks([x[:2] for x in bleu.values()])
    assert three and two
    for blocks, difference in ((three, 2 - 0.1 / 3), (two, 1.2)):
        assert blocks.interval(difference).format_ends(1) in lines
    # A system that fails with a seed does not widen the intervals of the others.
    failing = [cell("failing", n, score) for n, score in enumerate((10.0, 90.0, 11.0))]
    rows = make_rows({"cells": cells + failing}, [*bleu, "failing"], None, baseline)
    assert three.interval(2 - 0.1 / 3).format_ends(1) in tabulate_rows(rows).format()


def test_what_differs_between_trainings_is_said():
    one = {"hardware": "a CPU, 1 at a time", "commit": "abc", "precision": "single"}
    two = {"hardware": "a CPU, 2 at a time", "commit": "def", "precision": "half"}
    unsaid = {"hardware": "a CPU", "commit": "abc"}
    assert list_differing([one, unsaid]) == list_differing([]) == []
    assert list_differing([one, unsaid, two]) == ["precision", "commit"]
    cells = [cell("base", 1, 1.0), cell("ours", 1, 1.0, hardware="a GPU")]
    lines = tabulate_rows(make_rows({"cells": cells}, ["ours"], None, baseline)).format()
    assert re.search(r"Δ BLEU +mixed\nours +\+0.0 +machine\n", lines)


def test_nll_is_compared_at_the_last_update_that_all_reached():
    curves = {"base": {"50": 3.0, "100": 2.5, "150": 2.0}, "ours": {"50": 3.0, "100": 2.0}}
    cells = [cell(name, 1, 1.0, nll_by_update=curve) for name, curve in curves.items()]
    lines = tabulate_rows(make_rows({"cells": cells}, [*curves], None, baseline)).format()
    assert "NLL at 100 updates" in lines and f"  {2.5 * math.log(2):.3f}\n" in lines


def test_other_measures_and_changed_settings(tmp_path):
    path = tmp_path / "x.json"
    scores = {
        "BLEU": 1.0,
        "AER layer 1 forward": 20.0,
        "AER layer 1 grow-diag-lilt": 15.0,
        "trees": 5.0,
    }
    changed = {"optimization.max_update": 30}
    record(path, "x", [cell("base", 1, 1.0, scores=scores, overrides=changed)])
    lines = shown(path, ["base"])
    assert lines[3].split("  ") == ["system", "AER layer 1 grow-diag-lilt", "trees"]
    assert "changed settings: optimization.max_update=30" in lines


def test_a_system_without_scores_of_structure_has_no_row_of_them():
    both = [
        cell("base", 1, 1.0, scores={"BLEU": 1.0, "AER": 20.0}),
        cell("ours", 1, 2.0),
    ]
    tables = tabulate_rows(make_rows({"cells": both}, ["base", "ours"], None, baseline)).tables
    assert [list(row) for row in tables[2]] == [["system", "AER"], ["base", "20.0"]]


def test_spread():
    assert spread([]) == "–" and spread([1.25]) == "1.2" and spread([2.0, 2.0]) == "2.0"
    assert spread([1.0, 2.0, 4.5], 2) == "2.50 ± 1.80 (1.00–4.50)"


def texts(count: int, wrong: float, seed: int) -> list[str]:
    generator = random.Random(seed)
    words = [[f"w{(i * 7 + j) % 50}" for j in range(8)] for i in range(count)]
    return [" ".join("x" if generator.random() < wrong else w for w in s) for s in words]


def test_with_one_seed_it_is_the_test_of_two_outputs():
    references, ours, theirs = texts(40, 0, 1), texts(40, 0.2, 2), texts(40, 0.25, 3)
    counts = [count_ngrams(text, references, "none") for text in (ours, theirs)]
    expected = compare_with_baseline({"a": counts[1], "b": counts[0]}, "a", "none")["b"]
    difference, p = randomisation(counts[:1], counts[1:])
    assert (difference, p) == (expected.difference, expected.p) and difference > 0
    assert randomisation(counts[1:], counts[:1]) == pytest.approx((-difference, p))
    assert randomisation(counts[:1], counts[:1]) == (0.0, 1.0)


def test_seeds_are_pooled_by_sentence():
    references = texts(60, 0, 1)
    theirs = count_ngrams(texts(60, 0.3, 3), references)
    ours = [count_ngrams(texts(60, 0.22, seed), references) for seed in (4, 5, 6)]
    once = randomisation(ours, [theirs])
    assert randomisation(ours * 3, [theirs] * 2) == pytest.approx(once)
    with pytest.raises(DataError, match="59 translations, but 60 references"):
        count_ngrams(texts(59, 0.3, 3), references)
    for compare in (randomisation, bootstrap_seeds):
        with pytest.raises(DataError, match="different texts, with 59 and 60 sentences"):
            compare(ours, [theirs[:59]])


def test_counts_are_kept_as_text(tmp_path):
    references = texts(60, 0, 1)
    counts = {
        (system, seed): count_ngrams(texts(60, wrong, seed), references)
        for system, wrong, seeds in (("base", 0.3, (1, 2)), ("ours", 0.29, (2, 3, 4)))
        for seed in seeds
    }
    short = count_ngrams(["a", "a b c", ""], ["a", "a b", "b"])
    long = count_ngrams(["a " * 65_540, "b"], ["a " * 65_535 + "b", "b"])
    assert long.max() > 65_535
    for one in (*counts.values(), short, long):
        assert (unpack_counts(pack_counts(one)) == one).all()
    with pytest.raises(DataError, match="ngrams: the counts are damaged"):
        unpack_counts("x")
    with pytest.raises(DataError, match="ngrams: there is no sentence; score this training again"):
        unpack_counts(pack_counts(short[:0]))
    with pytest.raises(DataError, match="ngrams: of more than .* or cut off"):
        unpack_counts(base64.b64encode(base64.b64decode(pack_counts(short))[:-4]).decode())
    path = tmp_path / "x.json"
    cells = [cell(*key, 10.0 + key[1], ngrams=pack_counts(one)) for key, one in counts.items()]
    record(path, "x", [*cells, cell("ours", 1, 10.0), cell("older", 1, 10.0)])
    lines = shown(path, ["base", "ours", "older"])
    _, p = randomisation([counts["ours", 2]], [counts["base", 2]])
    assert lines[5].endswith("  p sentences")
    assert "mean ± standard deviation (lowest–highest) over seeds" in lines, "of some systems"
    # Seed 1 of ours cannot be tested, and the baseline has no other seed than 2.
    assert lines[6].endswith(f"  {p:.3f} (seed 2)") and lines[7].endswith("  –")
    assert shown(path, ["base", "ours"], [2])[5].endswith(f"  {p:.3f}")
    record(path, "x", [cell("ours", 2, 10.0, ngrams=pack_counts(short))])
    with pytest.raises(DataError, match="^ours: outputs of different texts, with 3 and 60 sent"):
        shown(path, ["base", "ours"])


def test_a_system_with_several_settings_has_a_row_for_each(tmp_path):
    path, few = tmp_path / "x.json", {"optimization.max_update": 60}
    record(path, "x", [cell("base", 1, 10.0), cell("base", 2, 11.0)])
    assert shown(path, ["base"])[1].split()[:2] == ["base", "2"]
    record(path, "x", [cell("base", seed, 3.0 + seed, overrides=few) for seed in (2, 3)])
    record(path, "x", [cell("ours", seed, 4.0 * seed, overrides=few) for seed in (2, 3)])
    lines = shown(path, ["base", "ours"])
    changed = "base (optimization.max_update=60)"
    assert [line[:33].strip() for line in lines[1:4]] == ["base", changed, "ours"]
    assert [line[33:].split()[0] for line in lines[1:4]] == ["1", "2", "2"]
    # It is compared with that of its own settings.
    assert lines[6].split()[0] == "ours"
    assert lines[6].split()[-1] == f"{welch([8.0, 12.0], [5.0, 6.0]):.3f}", lines[6]
    record(path, "x", [cell("third", seed, 4.0 * seed) for seed in (4, 5)])
    record(path, "x", [cell("base", 1, 10.0, overrides=few)])
    lines = shown(path, ["base", "third"])
    assert "third: not compared with base, which has other settings" in lines
    assert lines[0].split() == ["system", "seeds", "BLEU"]


def test_two_baselines_of_the_same_settings_are_not_mixed_up():
    other = cell("base", 2, 11.0, plugin="0123456789")
    cells = [cell("base", 1, 10.0), other, cell("ours", 1, 12.0)]
    [row] = make_rows({"cells": cells}, ["ours"], None, baseline)
    assert row.baseline is None and "not compared with" in row.note


def test_systems_without_results_are_refused(tmp_path):
    record(tmp_path / "x.json", "x", [cell("base", 1, 10.0), cell("ours", 2, 11.0)])
    for systems, seeds, message in (
        (["base", "other"], None, "no results of other; there are results of base, ours"),
        (["base", "ours"], [2], "no results of base with seed 2; there are results of ours"),
        (["base"], [3, 4], "no results of base with seed 3, 4; there are no others"),
    ):
        with pytest.raises(DataError, match=message):
            shown(tmp_path / "x.json", systems, seeds)
