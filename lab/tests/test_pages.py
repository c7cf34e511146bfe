import json
import math
import re
from collections.abc import Iterable
from itertools import chain
from statistics import mean
from types import ModuleType
from typing import Any

import pytest
from benchmarks.trials import make_table
from scipy.stats import spearmanr, ttest_rel

from benchmarks import likelihood
from syncattn_lab.evaluation.differences import make_difference
from syncattn_lab.evaluation.intervals import Interval, welch, welch_interval
from syncattn_lab.evaluation.measures import BLEU, CHRF, NLL
from syncattn_lab.recipes.contrasts import MeasuredPlan, index_cells, judge, nats_per_word
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.plan import load_plan
from tests.importing import ROOT, import_file

DOCS = ROOT / "docs"


def load_script(name: str) -> ModuleType:
    return import_file(ROOT / "scripts" / f"{name}.py")


def read(name: str) -> str:
    """Return a page or picture of ``docs/``."""
    return (DOCS / name).read_text(encoding="utf-8")


def read_prose(name: str) -> str:
    """Return a page as one line, in which words stand beside each other however it is broken."""
    return " ".join(read(name).split())


def read_cells_of(name: str) -> list[Any]:
    """Return the cells of a file of results."""
    cells: list[Any] = json.loads(read(f"results/{name}.json"))["cells"]
    return cells


def read_numbers(text: str) -> list[float]:
    """Return the numbers of a text, which may begin with a plus or a minus sign."""
    return [float(number.replace("−", "-")) for number in re.findall(r"[−+]?[\d.]+", text)]


def round_ends(interval: Interval | None, digits: int, sign: int = 1) -> list[float]:
    """Return a difference, or the opposite one, and the ends of its interval."""
    assert interval is not None
    ends = sorted((sign * interval.low, sign * interval.high))
    return [round(number, digits) for number in (sign * interval.difference, *ends)]


def test_the_page_of_options_is_up_to_date():
    page = read("options.md")
    assert load_script("options_page").make_page() == page
    for option in ("--supervised-gate-layers", "--tree-position", "--sync-mse-weight"):
        assert f"| `{option}` |" in page


@pytest.mark.parametrize("name", [path.name for path in sorted(DOCS.glob("results_*.md"))])
def test_tables_are_those_of_the_results(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = read(name)
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
    cells: dict[str, list[Any]] = {}
    for cell in sorted(read_cells_of(corpus), key=lambda cell: cell["seed"]):
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
#: Names in the table of verdicts that are written otherwise than those of configs.
VERDICTS = {
    "synchmse": "synch_mse",
    "synchrank": "synch_rank",
    "random_parents": "pascal_random",
    "s&h": "sh",
    "globalatt_+_sdatt": "rnn_syntax_directed_double",
    "globalatt": "rnn_global",
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
        assert read_numbers(text) == pytest.approx(round_ends(interval, digits)), text


def check_differences(shown: list[str], ours: list[Any], theirs: list[Any]) -> None:
    """Check the differences of two systems that nobody had planned to compare."""
    samples = ([[n(cell) for cell in x] for x in (ours, theirs)] for n, _ in MEASURED.values())
    check_intervals(shown, (welch_interval(*both) for both in samples))


def test_the_table_of_verdicts_is_that_of_the_results():
    before = read_cells("multi30k_tiny_en_de_3625")
    found, *others = measure_plan()
    contrasts = {contrast.name: contrast for contrast in found.plan.contrasts}
    results = read("results_multi30k.md").partition(f"## {EXPLORATORY}")[2]
    corrected = {row[0]: row for row in read_rows(results, "| system | BLEU | Δ NLL |")}
    rows = read_rows(read("findings.md"), "| what the paper says |")
    assert len(rows) == 18
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
            systems = [name.lower().replace(" ", "_") for name in test.split(" − ")]
            systems = [VERDICTS.get(name, name) for name in systems]
            check_differences(shown, *(before[system] for system in systems))
            pair = (every[system] for system in systems)
            difference = make_difference(NLL, *pair, every.values())
            for p in re.findall(r"p Holm (\.\d+)", verdict):
                known = corrected[systems[0]]
                assert float(p) in {round(float(x), 2) for x in (known[4], known[6], known[8])}
        assert difference and difference.block_interval
        ends = difference.block_interval.format_ends(3)
        assert blocks == re.sub(r"(?<!\d)0\.", ".", ends).replace("+", ""), test
    [dasa] = re.findall(r"ATIS's trees \((.+) in blocks\)", read("findings.md"))
    atis = measure_plan("atis_en_tr")[0]
    [contrast] = (c for c in atis.plan.contrasts if c.name == "dasa − dasa_random")
    check_intervals([dasa], [atis.difference(contrast).block_interval])


def test_the_likelihood_of_the_test_text_is_that_of_the_results():
    found: dict[str, list[float]] = {}
    for row in json.loads(read("results/likelihood/multi30k_tiny_en_de_3625.json")):
        found.setdefault(row["system"], []).append(row["test"])
    text = read_prose("findings.md").partition("On the test text (not planned)")[2]
    said = re.findall(r"[.\d]+(?: nats)? \[[−.\d]+, [−.\d]+\]", text)[:3]
    for other, numbers in zip(("random", "mirrored", "linear"), said, strict=True):
        ours, theirs = found["distance_tree"], found[f"distance_{other}"]
        assert len(ours) == len(theirs) == 5
        if other != "linear":
            ours, theirs = theirs, ours
        check_intervals([numbers], [welch_interval(ours, theirs)])


def test_the_table_of_all_texts_is_that_of_the_plans():
    rows = read_rows(read("findings.md"), "| contrast in NLL |")
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
    correlation = f"Rank correlation {spearmanr(*means).statistic:.2f} over".replace("0.", ".")
    assert correlation in read("findings.md")


MULTI30K = "planned/multi30k_tiny_en_de_3625"


@pytest.mark.parametrize(
    ("words", "better"),  # ``#`` is the number, and ``*`` another
    [
        ("distances in the parser's trees are # ahead", "distance_tree"),
        ("those in mirrored trees (#)", "distance_mirrored"),
        ("those in mirrored trees (*) and in random ones (#)", "distance_random"),
    ],
)
def test_a_number_that_no_table_has_is_that_of_the_results(words, better):
    number = r"([−.\d]+(?: nats)? \[[−.\d]+, [−.\d]+\])"
    pattern = re.escape(words).replace(r"\#", number).replace(r"\*", r"[^()]+")
    [shown] = re.findall(pattern, read_prose("findings.md"))
    cells = read_cells(MULTI30K)
    check_differences([shown], cells["transformer"], cells[better])


def test_what_links_do_to_aer_is_that_of_the_results():
    cells, names = (
        read_cells("planned/builtin_en_de"),
        load_plan(ROOT / "configs/builtin_en_de").names,
    )
    for title, name in (("SyncAttn", "syncattn"), ("SynchMSE", "synch_mse")):
        systems = names[f"{name}_guided"], name
        guided, plain = ([cell["scores"]["AER"] for cell in cells[system]] for system in systems)
        low, high = ttest_rel(guided, plain).confidence_interval()
        ends = f"({mean(guided) - mean(plain):.1f} [{low:.1f}, {high:+.1f}])".replace("-", "−")
        words = f"from {mean(plain):.1f} to {mean(guided):.1f} for {title} {ends}"
        assert words in read_prose("results_builtin.md")


@pytest.mark.parametrize(
    ("corpus", "page"), [("multi30k_tiny_en_de_3625", "multi30k"), ("atis_en_tr", "atis")]
)
def test_the_lead_over_another_sentences_tree_is_that_of_the_results(corpus, page):
    cells = read_cells(f"another/{corpus}")
    both = cells["distance_tree"], cells["distance_another"]
    right, other = ([MEASURED["NLL"][0](cell) for cell in found] for found in both)
    assert len(other) == len(right) == 3
    interval = ttest_rel(other, right).confidence_interval()
    lead = " ".join(f"{x:.3f}" for x in (mean(other) - mean(right), *interval))
    text = "{} nats [{}, {}]".format(*lead.replace("0.", ".").replace("-", "−").split())
    assert text in read_prose("findings.md")
    text = read_prose(f"results_{page}.md").partition("`distance_another` is ")[2]
    *shown, tested = re.findall(r"[−+]?[.\d]+ \[[−.\d]+, [−.\d]+\]", text)[:4]
    check_differences(shown, *both)
    samples = ([cell["test"]["nll_loss"] * math.log(2) for cell in found] for found in both)
    check_intervals([tested], [welch_interval(*samples)])


def test_the_trainings_that_ended_at_their_limit_are_counted():
    page = read_prose("findings.md")

    def count(names: str, limit: int, systems: str = "") -> tuple[int, int]:
        paths = (DOCS / "results" / "planned").glob(f"{names}.json")
        cells = [c for path in paths for c in read_cells_of(f"planned/{path.stem}")]
        ended = [c["updates"] >= limit for c in cells if systems in c["system"]]
        return sum(ended), len(ended)

    assert "on ATIS {} of {}, with".format(*count("atis_*", 1800)) in page
    assert count("multi30k_tiny_en_de_7250", 1800) == (9, 9)
    assert count("builtin_en_de", 850) == (36, 36)
    assert "in Japanese {} of {};".format(*count("enja_10000", 3600)) in page
    tuned = count("multi30k_tiny_en_de_3625", 1800, ":model.dropout=0.4")
    assert "Of these {1} trainings, {0} ended".format(*tuned) in page
    assert count("multi30k_tiny_en_de_3625", 1800)[0] == tuned[0]


def test_the_readme_is_short_and_its_figure_is_that_of_the_plan():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 90
    assert f"all {len(re.findall('>[^<]+ against ', read('planned.svg')))} contrasts" in page
    assert not re.findall(r"\[[−+.\d]+, [−+.\d]+\]", page), "intervals are for docs/findings.md"
    pytest.importorskip("altair")
    data = load_script("readme_figure").draw()["datasets"]
    svg = read("six_contrasts.svg")
    means = read_numbers(" ".join(re.findall(r'="mean: (\S+);', svg)))
    assert [name["text"] for name in data["names"]] == re.findall(r">([^<]+ against [^<]+)<", svg)
    assert means == pytest.approx([row["mean"] for row in data["means 0"]])
    assert int(re.findall(r'width="(\d+)"', svg)[0]) <= 358, "a phone shows it in its own size"
    assert all(float(size) >= 11 for size in re.findall(r'font-size="([\d.]+)px"', svg))


def test_a_phone_shows_the_picture_of_the_readme_with_legible_words():
    svg = read("attention.svg")
    shown = min(1.0, 358 / int(re.findall(r'width="(\d+)"', svg)[0]))
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)]
    assert len(sizes) == 19 and min(sizes) * shown >= 11


def test_each_page_says_where_to_go_next():
    for path in DOCS.glob("*.md"):
        last = read(path.name).rstrip().split("\n\n")[-1]
        assert path.name == "index.md" or (last.startswith("Next: ") and "](" in last), path


def test_the_table_of_learning_rates_is_that_of_the_results():
    page = read("details.md")
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
    page = read_prose("findings.md")
    text = page.partition("## Is the baseline too weak?")[2].partition("## ")[0]
    said = re.findall(r"[.\d]+(?: nats| BLEU)?(?: are left)? \[[−.\d]+, [−.\d]+\]", text)
    nll, _, bleu = measure_plan()
    contrasts = {contrast.name: contrast for contrast in nll.plan.contrasts}
    expected = []
    for name in ("lpsi_tuned − transformer", "rotary_tuned − transformer", "lpsi_tuned − rotary"):
        better = 1 if name == "lpsi_tuned − rotary" else -1  # the page says who is ahead
        for one, sign, digits in ((nll, better, 3), (bleu, -better, 1)):
            expected.append(round_ends(one.interval(contrasts[f"{name}_tuned"]), digits, sign))
    cells = read_cells(MULTI30K)
    for system in ("transformer", "lpsi", "rotary"):  # what the trials changed
        samples = (
            [nats_per_word(c) or 0.0 for c in cells[name]]
            for name in (system, nll.plan.names[f"{system}_tuned"])
        )
        expected.append(round_ends(welch_interval(*samples), 3))
    assert [read_numbers(one) for one in said] == expected


def test_the_tables_that_benchmarks_make_are_those_of_the_results():
    paths = sorted((DOCS / "results" / "trials").glob("multi30k_tiny_en_de_3625*.json"))
    assert len(paths) == 3 and f"\n{make_table(paths)}\n" in read("details.md")
    corpus = "multi30k_tiny_en_de_3625"
    rows = json.loads(read(f"results/likelihood/{corpus}.json"))
    assert f"\n{likelihood.make_table(corpus, rows)}\n" in read("results_multi30k.md")


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
    trials = {cell["system"]: nats_per_word(cell) for cell in read_cells_of("trials/atis_en_tr")}
    best = min(trials, key=trials.__getitem__)
    assert best == "transformer:model.encoder_layers=2:model.decoder_layers=2"
    config = load_corpus(ROOT / "configs" / "atis_en_tr").system("transformer").load()
    assert [config["model"][f"{side}_layers"] for side in ("encoder", "decoder")] == [2, 2]
    assert config["model"]["encoder_embed_dim"] == 128 and config["optimization"]["lr"] == [0.004]
    plan = read_prose("plan.md")
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
    cells = read_cells("multi30k_tiny_en_de_3625")
    rows = read_rows(read("details.md"), "| system | idea |")
    for (_, _, *shown), (system, setting) in zip(rows, TRIED, strict=True):
        [changed] = [x for name, x in cells.items() if name.startswith(f"{system}:{setting}")]
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
