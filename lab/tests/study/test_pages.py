"""The pages of the study have the numbers and the tables of the results."""

import re

import pytest

from study import facts, figures, pages, tables
from study.exchange_rate import Cells
from study.facts import Number, compute
from study.pages import PAGES, list_shown
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json
from syncattn_lab.evaluation.measures import NLL_PER_WORD, format_p
from syncattn_lab.recipes.corpus_facts import load_corpus
from tests.importing import ROOT

STUDY = ROOT / "study"
CORPUS = "multi30k_tiny_en_de_3625"
PLANNED = f"planned/{CORPUS}"
#: How many numbers of a page comments name, at least: none may lose its comment unnoticed.
NAMED = {
    "README.md": 15,
    "details.md": 212,
    "findings.md": 445,
    "plan.md": 13,
    "results_atis.md": 12,
    "results_builtin.md": 16,
    "results_japanese.md": 3,
    "results_multi30k.md": 23,
}


def read(name):
    return (STUDY / name).read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


# ---- the pages


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_numbers_and_tables_are_those_of_the_results(path):
    page = read(path.name)
    new = pages.fill_in(page, path.name)
    assert [*zip(new.splitlines(), page.splitlines(), strict=True)] == [
        (line, line) for line in page.splitlines()
    ]
    assert len(list_shown(page)) >= NAMED.get(path.name, 0)
    assert len(re.findall("^<!-- (?!end|numbers)", page, re.M)) == page.count("\n<!-- end -->\n")
    shown = re.findall(r"^<!-- .* study/results/(\S+) -->$", page, re.M)
    assert all([*facts.RESULTS.glob(file)] for file in shown)
    assert shown or not path.name.startswith("results_")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_digit_of_a_named_number_can_be_another(path):
    for shown in list_shown(read(path.name)):
        text = shown.match[0]
        for place, digit in enumerate(text):
            if digit.isdigit():
                wrong = f"{text[:place]}{(int(digit) + 1) % 10}{text[place + 1 :]}"
                match = pages._NUMBER.fullmatch(wrong)
                changed = pages.Shown(shown.fact, match, shown.number)
                assert changed.write() != wrong, f"{wrong} for {text}: {shown.fact}"


def hide(pattern, text):
    return pattern.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), text)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_interval_says_what_it_is(path):
    """And every p of the findings."""
    page = read(path.name)
    named = {place for shown in list_shown(page) for place in range(*shown.match.span())}
    for pattern in (tables.TABLE, pages._CODE, pages._COMMENT):
        page = hide(pattern, page)
    found = [*re.finditer(r"\[[−+.\d]+,\s+[−+.\d]+\]", page)]
    if path.name == "findings.md":
        found += re.finditer(r"\bp (?:Holm )?(?:[=<] )?\.\d+", page)
        assert len(found) > 120
    for interval in found:
        digits = {x for x in range(*interval.span()) if page[x].isdigit()}
        assert digits <= named, (
            f"{path.name}: {interval[0]}: say what it is, as study/pages.py does"
        )


def test_the_verdicts_say_what_was_planned():
    rows = [row for row in read("findings.md").splitlines() if "ends within seeds, chrF" in row]
    assert len(rows) == 18
    for row in rows:
        _, test, *_, verdict = row.strip("|").split(" | ")
        assert ("`" in test) == verdict.startswith("planned: ") == (f"in {CORPUS}" not in row)
        if "`" in test:
            assert ", verdict" in row, "it says whether its p is shown"


def test_a_corrected_p_is_that_of_the_table():
    page = read("results_multi30k.md").partition(f"{CORPUS} @all --table")[2]
    table = page[page.index("| system |") :].partition("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    compared = [row for row in rows if "–" not in row[:9]]
    assert len(compared) == 17
    for name, _, _, _, nll, _, chrf, _, bleu, *_ in compared:
        system = name.removeprefix("| ")
        base = "rnn_global" if system.startswith("rnn_") else "transformer"
        found = compute(f"{system} − {base}: p, chrF p, BLEU p in {CORPUS}")
        assert [format_p(number.value) for number in found] == [nll, chrf, bleu]


# ---- what the pages say in words


def test_all_trainings_of_two_corpora_ended_at_their_limit():
    for corpus, limit, trainings in (
        ("multi30k_tiny_en_de_7250", 1800, 9),
        ("builtin_en_de", 850, 36),
    ):
        found = compute(f"*: trainings, ended at {limit} in planned/{corpus}")
        assert [number.value for number in found] == [trainings, trainings]


def test_of_3625_pairs_only_trainings_of_tuned_systems_ended_at_their_limit():
    for_all, tuned = (
        compute(f"{systems}: ended at 1800 in {PLANNED}")
        for systems in ("*", "*:model.dropout=0.4*")
    )
    assert for_all == tuned == [Number(11, 0)]


@pytest.mark.parametrize("system", ["transformer", "rotary", "lpsi"])
def test_a_tuned_system_is_the_best_of_its_trials(system):
    trials = {
        (path.stem, cell["system"]): NLL_PER_WORD.of_cell(cell)
        for path in (facts.RESULTS / "trials").glob(f"{CORPUS}*.json")
        for cell in facts.open_results(f"trials/{path.stem}").cells
        if cell["system"].partition(":")[0] == system
    }
    chosen = facts.open_results(PLANNED).plan.names[f"{system}_tuned"]
    assert len(trials) == 8
    assert min(trials, key=trials.__getitem__) == (CORPUS, chosen)


def test_atis_has_the_size_and_the_rate_that_its_trials_chose():
    cells = facts.open_results("trials/atis_en_tr").cells
    trials = {cell["system"]: NLL_PER_WORD.of_cell(cell) for cell in cells}
    best = min(trials, key=trials.__getitem__)
    assert len(trials) == 6
    assert best == "transformer:model.encoder_layers=2:model.decoder_layers=2"
    config = load_corpus(ROOT / "configs" / "atis_en_tr").system("transformer").load()
    assert [config["model"][f"{side}_layers"] for side in ("encoder", "decoder")] == [2, 2]
    assert config["model"]["encoder_embed_dim"] == 128 and config["optimization"]["lr"] == [0.004]


# ---- figures


def test_the_figure_of_the_readme_is_that_of_the_plan():
    pytest.importorskip("altair")
    data = figures.draw_six()["datasets"]
    svg = read("six_contrasts.svg")
    means = [float(x.replace("−", "-")) for x in re.findall(r'="mean: ([^;]+);', svg)]
    assert [name["text"] for name in data["names"]] == re.findall(r">([^<]+ against [^<]+)<", svg)
    assert means == pytest.approx([row["mean"] for row in data["means 0"]])
    assert len(re.findall(r'="zero: 0"[^>]* y2="240"', svg)) == 1, "one line, from end to end"
    shrunk = 358 / int(re.findall(r'width="(\d+)"', svg)[0])  # on a phone
    assert all(shrunk * float(size) >= 9 for size in re.findall(r'font-size="([\d.]+)px"', svg))


def test_the_figure_of_pairs_is_that_of_the_results():
    pytest.importorskip("altair")
    svg = read("pairs.svg")
    dots = re.findall(r'text: ([\d,]+); nats[^:]*: ([\d.]+); system: ([^"]+)"', svg)
    cells = Cells(read_json(figures.PAIRS))
    expected = [
        (f"{size:,}", pytest.approx(float(value)), words)
        for name, words in figures.SHOWN.items()
        for size in cells.sizes
        if cells.has(name, size)
        for value in cells.by_seed(name, size)
    ]
    assert [(size, float(value), words) for size, value, words in dots] == expected
    assert {words for *_, words in dots} == {*figures.SHOWN.values()}
    shrunk = 358 / int(re.findall(r'width="(\d+)"', svg)[0])  # on a phone
    assert all(shrunk * float(size) >= 9 for size in re.findall(r'font-size="([\d.]+)px"', svg))


def test_the_readme_counts_the_contrasts_of_the_plans_figure():
    count = len(re.findall(">[^<]+ against ", read("planned.svg")))
    assert f"all {count} contrasts" in (ROOT / "README.md").read_text(encoding="utf-8")


# ---- how pages are written

TREES = "<!-- = distance_random − distance_tree: NLL"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f".123 nats [.1, 9]{TREES} -->", f".044 nats [.031, .057]{TREES} -->"),
        (f"0.123 [+0.1, −0.2]{TREES} -->", f"0.044 [+0.031, 0.057]{TREES} -->"),
        (f"3,625 pairs: 1 [1, 1]{TREES} -->", f"3,625 pairs: .044 [.031, .057]{TREES} -->"),
        (
            "−1 [1, 1]<!-- = distance_tree − distance_random: NLL -->",
            "−.044 [−.057, −.031]<!-- = distance_tree − distance_random: NLL -->",
        ),
        (f"(p = .5)\n{TREES} p -->", f"(p = .003)\n{TREES} p -->"),
        (f"(p = .00)\n{TREES} p -->", f"(p = .003)\n{TREES} p -->"),
        (
            "(p = .01)<!-- = rotary − transformer: p -->",
            "(p < .001)<!-- = rotary − transformer: p -->",
        ),
        (f"(p < .001){TREES} p -->", f"(p = .003){TREES} p -->"),
        ("1,900 of 9<!-- = *: trainings, margin -->", "152 of .04<!-- = *: trainings, margin -->"),
        ("11<!-- = rotary − lpsi: BLEU p -->", "1.000<!-- = rotary − lpsi: BLEU p -->"),
        ("`.5` .5 [](a0.md)<!-- = *: trainings -->", "`.5` 152 [](a0.md)<!-- = *: trainings -->"),
        ("```\n.1<!-- = nonsense -->\n```", "```\n.1<!-- = nonsense -->\n```"),
    ],
)
def test_wrong_numbers_are_written_anew(before, after):
    head = f"<!-- numbers of {PLANNED} -->\n\n"
    assert pages.fill_in(head + before) == head + after
    assert pages.fill_in(head + after) == head + after


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "1 [2, 3]<!-- = distance_tre − lpsi: NLL -->",
            "distance_tre: no such system; did you mea",
        ),
        ("1 [2, 3]<!-- = distance_tree − lpsi: NLLL -->", "'NLLL' is unknown; known are AER, BLEU"),
        ("1 [2, 3]<!-- = distance_tree: p -->", "'p' is unknown; known are"),
        ("1<!-- = *: ended at last -->", "'ended at last' is unknown; known are AER, BLEU"),
        ("1<!-- = *: trainings here -->", "'trainings here' is unknown"),
        ("1<!-- = *: NLL -->", r"\*: several systems in planned/multi30k"),
        ("1 [2, 3]<!-- = lpsi − rotary: NLL in planned/atis -->", "planned/atis: no such file"),
        ("1 [2, 3]<!-- = lpsi − rotary: NLL in a b c -->", "'a b c': expected FILE, FILE seed N"),
        ("1 [2]<!-- = lpsi − rotary: NLL -->", "names 3 numbers, but in front of it are 2"),
        ("1\n\n[2, 3]<!-- = lpsi − rotary: NLL -->", "names 3 numbers, but in front of it are 2"),
        ("1\n- [2, 3]<!-- = lpsi − rotary: NLL -->", "names 3 numbers, but in front of it are 2"),
        ("1 [2, 3]<!-- = lpsi − rotary -->", "what of it"),
        ("1 [2, 3]<!-- lpsi − rotary: NLL -->", "begin with '= '"),
        ("1<!-- = lpsi − dbsa: BLEU only -->", "dbsa: no such system"),
        ("1<!-- = lpsi − distance_tree: p -->", "lpsi − distance_tree: not known in planned/m"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text, fault):
    with pytest.raises(DataError, match=rf"^x.md:\d+: .*{fault}"):
        list_shown(f"<!-- numbers of {PLANNED} -->\n\n{text}", "x.md")


def test_a_fact_needs_a_file():
    with pytest.raises(DataError, match="^the page:1: .*: in which file"):
        list_shown("1 [2, 3]<!-- = lpsi − rotary: NLL -->")


def test_a_page_gets_all_its_tables_or_stays(tmp_path, capsys):
    path, before = tmp_path / "page.md", tmp_path / "before.md"
    command = "builtin_en_de --table --markdown"
    parts = [
        f"<!-- syncattn-recipe {command} --results {file} -->\n<!-- end -->\n"
        for file in (facts.RESULTS / "builtin_en_de.json", tmp_path / "none.json")
    ]
    path.write_text("".join(parts), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        pages.update(path)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {tmp_path}/none.json: no such file; run the recipe without --t")
    assert path.read_text(encoding="utf-8") == "".join(parts)
    path.write_text(parts[0], encoding="utf-8")
    before.hardlink_to(path)
    pages.update(path)
    assert "p Holm" in path.read_text(encoding="utf-8")
    assert before.read_text(encoding="utf-8") == parts[0]  # another file took its place
    assert {*tmp_path.iterdir()} == {path, before}


def test_what_has_changed_is_printed(tmp_path, capsys):
    path = tmp_path / "page.md"
    path.write_text(f".045 [.031, .057]{TREES} in {PLANNED} -->\n", encoding="utf-8")
    pages.update(path)
    assert capsys.readouterr().out.splitlines() == [
        "page.md: tables 0, numbers 3",
        f"  .045 → .044: distance_random − distance_tree: NLL in {PLANNED}",
    ]
    assert path.read_text(encoding="utf-8").startswith(".044 [.031, .057]<!--")


def test_a_page_leaves_out_what_is_the_same_everywhere():
    command = "syncattn-recipe builtin_en_de transformer dbsa syncattn --table --markdown --results"
    text = f"<!-- {command} study/results/builtin_en_de.json -->\n<!-- end -->\n"
    _, first, rest = tables.fill_in(text).split("\n\n", 2)
    assert first.startswith(
        "| system | BLEU | Δ NLL | seeds as blocks | p Holm | Δ chrF | p Holm |"
    )
    assert first.count("\n") == 4 and "| transformer | 79.2 ± 1.8 | – | – |" in first
    assert "- seeds: 3\n" in rest and "- NLL, 3 seeds: " in rest
    assert not re.search(r"RIBES|updates|hardware|layer", first + rest)


def test_another_program_prints_no_table():
    with pytest.raises(DataError, match=r"^python -m study.loops x: pages have tables of syncattn"):
        tables.fill_in("<!-- python -m study.loops x -->\n<!-- end -->\n")
