import json
import math
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

import pytest
from scipy.stats import spearmanr

from benchmarks import likelihood
from benchmarks.trials import make_table
from syncattn_fairseq.lab.evaluation.differences import make_difference
from syncattn_fairseq.lab.evaluation.intervals import Interval, welch, welch_interval
from syncattn_fairseq.lab.evaluation.measures import BLEU, CHRF, NLL
from syncattn_fairseq.lab.recipes.contrasts import MeasuredPlan, index_cells, judge, nats_per_word
from syncattn_fairseq.lab.recipes.corpus_facts import load_corpus
from syncattn_fairseq.lab.recipes.plan import load_plan
from tests.importing import import_file

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def load_script(name: str) -> ModuleType:
    return import_file(ROOT / "scripts" / f"{name}.py")


def test_the_page_of_options_is_up_to_date():
    page = (DOCS / "options.md").read_text(encoding="utf-8")
    assert load_script("options_page").make_page() == page
    for option in ("--supervised-gate-layers", "--tree-position", "--sync-mse-weight"):
        assert f"| `{option}` |" in page


@pytest.mark.parametrize("name", [path.name for path in sorted(DOCS.glob("results_*.md"))])
def test_tables_are_those_of_the_results(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (DOCS / name).read_text(encoding="utf-8")
    assert load_script("results_page").fill_in(page) == page
    assert page.count("\n<!-- syncattn-recipe ") == page.count("\n<!-- end -->\n")
    shown = re.findall(r"^<!-- syncattn-recipe .* docs/results/(\S+) -->$", page, re.MULTILINE)
    results = DOCS / "results"
    made = {path.relative_to(results).as_posix() for path in results.rglob("*.json")}
    assert shown and {*shown} <= made


def test_a_page_of_results_gets_all_its_tables_or_stays(tmp_path, capsys):
    path, before = tmp_path / "page.md", tmp_path / "before.md"
    results = DOCS / "results" / "builtin_en_de.json"
    command = "builtin_en_de --table --markdown"
    parts = [
        f"<!-- syncattn-recipe {command} --results {file} -->\n<!-- end -->\n"
        for file in (results, tmp_path / "none.json")
    ]
    path.write_text("".join(parts), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        load_script("results_page").update(path)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {tmp_path}/none.json: no such file; run the recipe without --t")
    assert path.read_text(encoding="utf-8") == "".join(parts)
    path.write_text(parts[0], encoding="utf-8")
    before.hardlink_to(path)
    load_script("results_page").update(path)
    assert "p Holm" in path.read_text(encoding="utf-8")
    assert before.read_text(encoding="utf-8") == parts[0]  # another file took its place
    assert {*tmp_path.iterdir()} == {path, before}


def test_a_page_leaves_out_what_is_the_same_everywhere(monkeypatch):
    monkeypatch.chdir(ROOT)
    command = "syncattn-recipe builtin_en_de transformer dbsa syncattn --table --markdown --results"
    text = f"<!-- {command} docs/results/builtin_en_de.json -->\n<!-- end -->\n"
    _, first, rest = load_script("results_page").fill_in(text).split("\n\n", 2)
    assert first.startswith(
        "| system | BLEU | Δ NLL | seeds as blocks | p Holm | Δ chrF | p Holm |"
    )
    assert first.count("\n") == 4 and "| transformer | 79.2 ± 1.8 | – | – |" in first
    assert "- seeds: 3\n" in rest and "- NLL, 3 seeds: " in rest
    assert not re.search(r"RIBES|updates|hardware|layer", first + rest)


def read_rows(page: str, header: str) -> list[list[str]]:
    """Return the cells of the table that begins with a header, without it."""
    table = page[page.index(header) :].partition("\n\n")[0]
    return [[text.strip() for text in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


def read_cells(corpus: str) -> dict[str, list[Any]]:
    """Return the results of each system."""
    results = json.loads((DOCS / "results" / f"{corpus}.json").read_text(encoding="utf-8"))
    cells: dict[str, list[Any]] = {}
    for cell in sorted(results["cells"], key=lambda cell: cell["seed"]):
        cells.setdefault(cell["system"], []).append(cell)
    return cells


#: The verdicts that settle a contrast.
SURE = ("better", "worse", "the same")
#: Systems of planned trainings in a table.
NAME = re.compile("`(.*?)`")
#: A corrected p, as in "(p = .004)".
CORRECTED = re.compile(r"\(p ([=<]) (\.\d+)\)")
#: The heading of results that nobody had planned.
EXPLORATORY = "Exploratory: 3,625 pairs"
#: Names in the table of verdicts that are not those of configs.
VERDICTS = {
    "LPSI": "lpsi",
    "Transformer": "transformer",
    "local attention": "local_attention",
    "SynchMSE": "synch_mse",
    "SynchRank": "synch_rank",
    "DBSA": "dbsa",
    "SyncAttn": "syncattn",
    "PASCAL": "pascal",
    "random parents": "pascal_random",
    "LISA": "lisa",
    "S&H": "sh",
    "GlobalAtt + SDAtt": "rnn_syntax_directed_double",
    "GlobalAtt": "rnn_global",
}
#: The corpora of the table of all texts, and the systems that both directions of ATIS have.
TEXTS = ["multi30k_tiny_en_de_3625", "multi30k_tiny_en_de_7250", "atis_en_tr", "atis_tr_en"]
TEXTS += ["enja_10000", "builtin_en_de"]
SIX = ("transformer", "rotary", "local_attention", "lpsi", "dbsa", "pascal")
MEASURED: dict[str, tuple[Any, int]] = {
    "NLL": (lambda cell: cell["valid"]["nll_loss"] * math.log(2), 3),
    "chrF": (lambda cell: cell["scores"]["chrF"], 1),
    "BLEU": (lambda cell: cell["scores"]["BLEU"], 1),
}


def measure_plan(corpus: str = "multi30k_tiny_en_de_3625") -> list[MeasuredPlan]:
    """Return the planned contrasts of a corpus in each measure."""
    plan = load_plan(ROOT / "configs" / corpus)
    made = {path.stem for path in (DOCS / "results" / "planned").iterdir()}
    corpora = [corpus, *(other for other in plan.list_corpora() if other in made)]
    own, *rest = (read_cells(f"planned/{name}") for name in corpora)
    others = {c: {"cells": [*chain(*x.values())]} for c, x in zip(corpora[1:], rest, strict=True)}
    known = index_cells({"cells": [*chain(*own.values())]}, others, plan.names)
    return [MeasuredPlan(plan, known, measure) for measure in (NLL, CHRF, BLEU)]


def check_intervals(shown: Iterable[str], found: Iterable[Interval | None]) -> None:
    """Check differences and intervals, written ``−.1 [−.2, .0]``, in all measures or in some."""
    for text, interval, (_, digits) in zip(shown, found, MEASURED.values(), strict=False):
        assert interval is not None
        values = [interval.difference, interval.low, interval.high]
        read = re.findall(r"[−+]?[\d.]+", text)
        assert [float(x.replace("−", "-")) for x in read] == pytest.approx(
            [round(value, digits) for value in values]
        ), text


def check_differences(shown: list[str], ours: list[Any], theirs: list[Any]) -> None:
    """Check the differences of two systems that nobody had planned to compare."""
    samples = ([[n(cell) for cell in x] for x in (ours, theirs)] for n, _ in MEASURED.values())
    check_intervals(shown, (welch_interval(*both) for both in samples))


def test_the_table_of_verdicts_is_that_of_the_results():
    page = (DOCS / "findings.md").read_text(encoding="utf-8")
    before = read_cells("multi30k_tiny_en_de_3625")
    found, *others = measure_plan()
    contrasts = {contrast.name: contrast for contrast in found.plan.contrasts}
    results = (
        (DOCS / "results_multi30k.md").read_text(encoding="utf-8").partition(f"## {EXPLORATORY}")[2]
    )
    corrected = {row[0]: row for row in read_rows(results, "| system | BLEU | Δ NLL |")}
    rows = read_rows(page, "| what the paper says |")
    assert len(rows) == 17
    every = {s: NLL.by_seed(cells) for s, cells in before.items() if ":" not in s}
    for _, test, nll, blocks, *rest, verdict in rows:
        shown = [nll, *rest]
        assert len(shown) == len(MEASURED)
        if names := NAME.findall(test):
            assert verdict.startswith("planned: ")
            contrast = contrasts[" − ".join(names)]
            check_intervals(shown, (one.interval(contrast) for one in (found, *others)))
            difference = found.difference(contrast)
            decided = judge(found, contrast)
            said = CORRECTED.search(verdict)
            assert bool(said) == (decided in SURE), verdict
            if said:
                _, p = (found.p_same if decided == "the same" else found.p)[contrast]
                sign, number = said.groups()
                assert p < 0.001 if sign == "<" else f"{p:.3f}" == f"0{number}", verdict
        else:
            systems = [VERDICTS[name] for name in test.split(" − ")]
            check_differences(shown, *(before[system] for system in systems))
            pair = (every[system] for system in systems)
            difference = make_difference(NLL, *pair, every.values())
            for p in re.findall(r"p Holm (\.\d+)", verdict):
                known = corrected[systems[0]]
                assert float(p) in {round(float(x), 2) for x in (known[4], known[6], known[8])}
        assert difference and difference.block_interval
        ends = difference.block_interval.format_ends(3)
        assert blocks == re.sub(r"(?<!\d)0\.", ".", ends).replace("+", ""), test


def test_the_likelihood_of_the_test_text_is_that_of_the_results():
    page = " ".join((DOCS / "findings.md").read_text(encoding="utf-8").split())
    place = DOCS / "results" / "likelihood" / "multi30k_tiny_en_de_3625.json"
    found: dict[str, list[float]] = {}
    for row in json.loads(place.read_text()):
        found.setdefault(row["system"], []).append(row["test"])
    text = page.partition("On the test text (not planned)")[2]
    said = re.findall(r"([.\d]+)(?: nats)? \[([−.\d]+), ([−.\d]+)\]", text)[:3]
    for other, numbers in zip(("random", "mirrored", "linear"), said, strict=True):
        ours, theirs = found["distance_tree"], found[f"distance_{other}"]
        assert len(ours) == len(theirs) == 5
        if other != "linear":
            ours, theirs = theirs, ours
        interval = welch_interval(ours, theirs)
        assert interval is not None
        expected = [interval.difference, interval.low, interval.high]
        read = [float(number.replace("−", "-")) for number in numbers]
        assert read == pytest.approx([round(value, 3) for value in expected])


def test_the_table_of_all_texts_is_that_of_the_plans():
    page = (DOCS / "findings.md").read_text(encoding="utf-8")
    rows = read_rows(page, "| contrast in NLL |")
    assert len(rows) == 11
    for column, corpus in enumerate(TEXTS):
        cells = read_cells(f"planned/{corpus}")
        found = measure_plan(corpus)[0]
        planned = {contrast.name: found.interval(contrast) for contrast in found.plan.contrasts}
        for name, *row in rows:
            ours, theirs = NAME.findall(name)
            shown = row[column]
            if interval := planned.get(f"{ours} − {theirs}"):
                check_intervals([shown], [interval])
            elif interval := planned.get(f"{theirs} − {ours}"):
                turned = Interval(-interval.difference, -interval.high, -interval.low)
                check_intervals([shown], [turned])
            elif ours in cells and theirs in cells:
                assert shown.startswith("(")
                check_differences([shown], cells[ours], cells[theirs])
            else:
                assert shown == "–"
    means = [
        [mean(cell["valid"]["nll_loss"] for cell in cells[s] if cell["seed"] < 9) for s in SIX]
        for cells in map(read_cells, ("planned/atis_tr_en", "planned/atis_en_tr"))
    ]
    assert f"Rank correlation {spearmanr(*means).statistic:.2f} over".replace("0.", ".") in page


MULTI30K = "planned/multi30k_tiny_en_de_3625"
#: Numbers in the text of findings.md that no table has: what stands around them (``#``; ``*`` is
#: another number), the corpus, and the systems, the one that is ahead last.
PROSE = [
    ("distances in the parser's trees are # ahead", MULTI30K, "transformer", "distance_tree"),
    ("those in mirrored trees (#)", MULTI30K, "transformer", "distance_mirrored"),
    (
        "those in mirrored trees (*) and in random ones (#)",
        MULTI30K,
        "transformer",
        "distance_random",
    ),
]


@pytest.mark.parametrize(("words", "corpus", "worse", "better"), PROSE)
def test_a_number_in_the_text_is_that_of_the_results(words, corpus, worse, better):
    page = " ".join((DOCS / "findings.md").read_text(encoding="utf-8").split())
    number = r"([−.\d]+(?: nats)? \[[−.\d]+, [−.\d]+\])"
    pattern = re.escape(words).replace(r"\#", number).replace(r"\*", r"[^()]+")
    [shown] = re.findall(pattern, page)
    cells = read_cells(corpus)
    check_differences([shown], cells[worse], cells[better])


def test_the_trainings_that_ended_at_their_limit_are_counted():
    page = " ".join((DOCS / "findings.md").read_text(encoding="utf-8").split())

    def count(names: str, limit: int, systems: str = "") -> tuple[int, int]:
        paths = (DOCS / "results" / "planned").glob(names)
        cells = [c for path in paths for c in json.loads(path.read_text())["cells"]]
        ended = [c["updates"] >= limit for c in cells if systems in c["system"]]
        return sum(ended), len(ended)

    assert "on ATIS {} of {}, with".format(*count("atis_*", 1800)) in page
    assert count("multi30k_tiny_en_de_7250.json", 1800) == (9, 9)
    assert count("builtin_en_de.json", 850) == (24, 24)
    assert "in Japanese {} of {};".format(*count("enja_10000.json", 3600)) in page
    tuned = count("multi30k_tiny_en_de_3625.json", 1800, ":model.dropout=0.4")
    assert "Of these {1} trainings, {0} ended".format(*tuned) in page
    assert count("multi30k_tiny_en_de_3625.json", 1800)[0] == tuned[0]


def test_the_readme_is_short_and_its_figure_is_that_of_the_plan():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 90
    assert not re.findall(r"\[[−+.\d]+, [−+.\d]+\]", page), "intervals are for docs/findings.md"
    pytest.importorskip("altair")
    data = load_script("readme_figure").draw()["datasets"]
    svg = (DOCS / "six_contrasts.svg").read_text(encoding="utf-8")
    means = [float(x.replace("−", "-")) for x in re.findall(r'="mean: (\S+);', svg)]
    assert [name["text"] for name in data["names"]] == re.findall(r">([^<]+ against [^<]+)<", svg)
    assert means == pytest.approx([row["mean"] for row in data["means 0"]])
    assert int(re.findall(r'width="(\d+)"', svg)[0]) <= 358, "a phone shows it in its own size"
    assert all(float(size) >= 11 for size in re.findall(r'font-size="([\d.]+)px"', svg))


def test_a_phone_shows_the_picture_of_the_readme_with_legible_words():
    svg = (DOCS / "attention.svg").read_text(encoding="utf-8")
    shown = min(1.0, 358 / int(re.findall(r'width="(\d+)"', svg)[0]))
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)]
    assert len(sizes) == 19 and min(sizes) * shown >= 11


def test_each_page_says_where_to_go_next():
    for path in DOCS.glob("*.md"):
        last = path.read_text(encoding="utf-8").rstrip().split("\n\n")[-1]
        assert path.name == "index.md" or (last.startswith("Next: ") and "](" in last), path


def test_the_table_of_learning_rates_is_that_of_the_results():
    page = (DOCS / "details.md").read_text(encoding="utf-8")
    rows = read_rows(page, "| system | loss at 0.002 | at 0.004 | BLEU at 0.002 |")
    systems = re.findall(r"(\w+):\$L", page)  # the commands below have the order of the rows
    assert len(rows) == len(systems) == 19
    cells = read_cells("multi30k_tiny_en_de_3625")
    for (_, *shown), system in zip(rows, systems, strict=True):
        first = [cells[name][0] for name in (f"{system}:optimization.lr=[0.002]", system)]
        assert [cell["seed"] for cell in first] == [1, 1]
        losses = [f"{cell['valid']['loss']:.3f}" for cell in first]
        assert shown == [*losses, *(f"{cell['scores']['BLEU']:.1f}" for cell in first)]


def test_the_numbers_of_tuned_systems_are_those_of_the_plan():
    page = " ".join((DOCS / "findings.md").read_text(encoding="utf-8").split())
    text = page.partition("## Is the baseline too weak?")[2].partition("## ")[0]
    said = re.findall(r"([.\d]+)(?: nats| BLEU)?(?: are left)? \[([−.\d]+), ([−.\d]+)\]", text)
    nll, _, bleu = measure_plan()
    contrasts = {contrast.name: contrast for contrast in nll.plan.contrasts}
    expected = []
    for name in ("lpsi_tuned − transformer", "rotary_tuned − transformer", "lpsi_tuned − rotary"):
        better = 1 if name == "lpsi_tuned − rotary" else -1  # the page says who is ahead
        for one, sign, digits in ((nll, better, 3), (bleu, -better, 1)):
            found = one.interval(contrasts[f"{name}_tuned"])
            assert found is not None
            limits = sorted((sign * found.low, sign * found.high))
            expected.append([round(x, digits) for x in (sign * found.difference, *limits)])
    cells = read_cells(MULTI30K)
    for system in ("transformer", "lpsi", "rotary"):  # what the trials changed
        samples = (
            [nats_per_word(c) or 0.0 for c in cells[name]]
            for name in (system, nll.plan.names[f"{system}_tuned"])
        )
        found = welch_interval(*samples)
        assert found is not None
        expected.append([round(x, 3) for x in (found.difference, found.low, found.high)])
    assert [[float(x.replace("−", "-")) for x in one] for one in said] == expected


def test_the_table_of_trials_is_that_of_the_results():
    page = (DOCS / "details.md").read_text(encoding="utf-8")
    paths = sorted((DOCS / "results" / "trials").glob("multi30k_tiny_en_de_3625*.json"))
    assert len(paths) == 3 and f"\n{make_table(paths)}\n" in page


def test_the_table_of_the_test_text_is_that_of_the_results():
    page = (DOCS / "results_multi30k.md").read_text(encoding="utf-8")
    corpus = "multi30k_tiny_en_de_3625"
    rows = json.loads((DOCS / "results" / "likelihood" / f"{corpus}.json").read_text())
    assert f"\n{likelihood.make_table(corpus, rows)}\n" in page


@pytest.mark.parametrize("system", ["transformer", "rotary", "lpsi"])
def test_a_tuned_system_is_the_best_of_its_trials(system):
    trials = {}
    for path in (DOCS / "results" / "trials").glob("multi30k_tiny_en_de_3625*.json"):
        results = json.loads(path.read_text(encoding="utf-8"))
        for cell in results["cells"]:
            if cell["system"].partition(":")[0] == system:
                trials[results["corpus"], cell["system"]] = nats_per_word(cell)
    chosen = measure_plan()[0].plan.names[f"{system}_tuned"]
    assert len(trials) == 8
    assert min(trials, key=trials.__getitem__) == ("multi30k_tiny_en_de_3625", chosen)


def test_atis_has_the_size_and_the_rate_that_its_trials_chose():
    path = DOCS / "results" / "trials" / "atis_en_tr.json"
    trials = {
        cell["system"]: nats_per_word(cell)
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    }
    best = min(trials, key=trials.__getitem__)
    assert best == "transformer:model.encoder_layers=2:model.decoder_layers=2"
    config = load_corpus(ROOT / "configs" / "atis_en_tr").system("transformer").load()
    assert [config["model"][f"{side}_layers"] for side in ("encoder", "decoder")] == [2, 2]
    assert config["model"]["encoder_embed_dim"] == 128 and config["optimization"]["lr"] == [0.004]
    plan = " ".join((DOCS / "plan.md").read_text(encoding="utf-8").split())
    assert len(trials) == 6 and all(f"{value:.3f}" in plan for value in trials.values())


#: The rows of the table of what we tried: a system, and the first setting that was changed.
TRIED = [
    ("pascal", "common.user_dir=examples/parent_bias"),
    ("pascal_self", "common.user_dir=examples/parent_bias"),
    ("dbsa", "criterion.tgt_dep_weight=0"),
    ("syncattn", "common.user_dir=examples/sharp_sync"),
    ("synch_mse", "criterion.sync_mse_weight=1"),
    ("synch_mse", "model.encoder_normalize_before=true"),
    ("transformer", "model.encoder_normalize_before=true"),
    ("lisa", "generation.gold_source_heads=true"),
    ("rnn_syntax_directed_double", "model.tree_position=expected"),
]


def test_the_table_of_what_we_tried_is_that_of_the_results():
    page = (DOCS / "details.md").read_text(encoding="utf-8")
    cells = read_cells("multi30k_tiny_en_de_3625")
    for (_, _, *shown), (system, setting) in zip(
        read_rows(page, "| system | idea |"), TRIED, strict=True
    ):
        [changed] = [
            found for name, found in cells.items() if name.startswith(f"{system}:{setting}")
        ]
        both = changed, cells[system]
        bleu, was = (mean(cell["scores"]["BLEU"] for cell in found) for found in both)
        expected = [f"{bleu:.1f}, was {was:.1f}", "–", "–"]
        if system != "lisa":  # only decoding was changed
            losses = [[cell["valid"]["loss"] for cell in found] for found in both]
            p = welch(*losses)
            assert p is not None
            p_shown = f"{p:.3f}" if p < 0.005 else f"{p:.2f}"
            expected[1:] = ["{:.3f}, was {:.3f}".format(*map(mean, losses)), p_shown.lstrip("0")]
        assert shown == expected, (system, setting)
