"""What the plan's analysis finds in numbers that are made up, where the truth is known."""

import json
import math
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress, ttest_1samp, ttest_rel

from study import exchange_rate
from study.exchange_rate import Cells, Curve, decide, fit_curve, main, measure_gain
from syncattn_fairseq.base.errors import DataError

SIZES = (3625, 10000, 29000)


@given(st.floats(0.5, 3), st.floats(1, 200), st.floats(0.05, 1.5), st.floats(-0.5, 1.5))
def test_a_curve_is_found_again_and_gains_with_it(a, b, c, gain):
    truth = Curve(a, b, c)
    found = fit_curve({size: truth.nats(size) for size in SIZES})
    assert found.c == pytest.approx(c, rel=1e-3, abs=1e-3)
    nats = truth.nats(10000 * 2**gain)
    assert found.pairs(nats) == pytest.approx(10000 * 2**gain, rel=0.01)
    assert found.gain(10000, nats) == pytest.approx(gain, abs=0.02)


def test_what_has_no_curve():
    with pytest.raises(DataError, match="2 sizes; a curve needs three"):
        fit_curve({1: 2.0, 2: 1.0})
    with pytest.raises(DataError, match="NLL does not fall with more pairs"):
        fit_curve(dict(zip(SIZES, (2.0, 2.1, 1.0), strict=True)))
    with pytest.raises(DataError, match="NLL falls no slower with more pairs"):
        fit_curve(dict(zip(SIZES, (2.0, 1.9, 1.0), strict=True)))
    curve = Curve(1.0, 5.0, 0.3)
    assert curve.pairs(0.9) == curve.pairs(1.0) == math.inf


def make(gains, noise=0.002, sentences=60, seed=1, device="GPU"):
    """Make cells of systems whose true gains in log2 pairs are known, by size."""
    generator = np.random.default_rng(seed)
    subwords = generator.integers(5, 20, size=sentences)
    hardness = generator.normal(0, 0.3, size=sentences)
    truth, rows = Curve(1.0, 30.0, 0.35), []
    for run in range(5):
        shared = generator.normal(0, 0.02)  # of a seed, in all systems
        for system, by_size in gains.items():
            for size, gain in zip(SIZES, by_size, strict=True):
                level = truth.nats(size * 2**gain) + shared + generator.normal(0, noise)
                nats = (level + hardness) * subwords
                rows.append({"system": system, "size": size, "seed": 31 + run, "device": device})
                rows[-1] |= {"nats": nats.tolist(), "subwords": subwords.tolist()}
    return rows


def test_gains_and_their_intervals(monkeypatch):
    monkeypatch.setattr(exchange_rate, "SAMPLES", 200)
    gains = {"rotary": (0, 0, 0), "right_tree": (1, 0.7, 0.4), "other_tree": (-0.3, 0, 0)}
    cells = Cells(make(gains))
    for system, by_size in gains.items():
        for size, gain in zip(SIZES, by_size, strict=True):
            found = measure_gain(cells, system, size)
            assert found.difference == pytest.approx(gain, abs=0.15)
            assert found.low <= found.difference <= found.high
            assert system == "rotary" or 0.001 < found.high - found.low < 0.6
    assert measure_gain(cells, "right_tree", 3625) == measure_gain(cells, "right_tree", 3625)


def test_a_gain_without_end():
    cells = Cells(make({"rotary": (0, 0, 0), "right_tree": (0, 0, math.inf)}))
    curve = fit_curve({x: float(cells.by_seed("rotary", x).mean()) for x in SIZES})
    nats = float(cells.by_seed("right_tree", 29000).mean())
    assert curve.gain(29000, nats) > 5


def loop(rows, size):
    return [
        [
            sum(r["nats"]) / sum(r["subwords"])
            for r in rows
            if (r["system"], r["size"]) == (system, size)
        ]
        for system in ("right_tree", "other_tree")
    ]


def test_the_decision_by_the_rule():
    rows = make({"right_tree": (0.9, 0.6, 0.4), "other_tree": (0, 0, 0)})
    found = decide(Cells(rows))
    test = ttest_rel(*loop(rows, 29000))
    assert found.p == pytest.approx(test.pvalue)
    ends = test.confidence_interval()
    assert (found.interval.low, found.interval.high) == pytest.approx((ends.low, ends.high))
    slopes = []
    for run in range(5):
        points = [loop(rows, size) for size in SIZES]
        slopes.append(linregress(np.log2(SIZES), [p[0][run] - p[1][run] for p in points]).slope)
    assert found.slope.difference == pytest.approx(mean(slopes))
    assert found.p_slope == pytest.approx(ttest_1samp(slopes, 0).pvalue)
    assert found.verdict == "the right trees are better, by less with more pairs"


@pytest.mark.parametrize(
    ("gains", "noise", "verdict"),
    [
        ({"right_tree": (0, 0, 0), "other_tree": (0, 0, 0)}, 0.002, "the same"),
        ({"right_tree": (0, 0, 0), "other_tree": (0, 0, 0)}, 0.2, "not known"),
        (
            {"right_tree": (0, 0, 0), "other_tree": (0.9, 0.6, 0.4)},
            0.002,
            "the right trees are worse, by less with more pairs",
        ),
        (
            {"right_tree": (0.1, 0.4, 0.9), "other_tree": (0, 0, 0)},
            0.002,
            "the right trees are better, by more with more pairs",
        ),
    ],
)
def test_other_verdicts(gains, noise, verdict):
    assert decide(Cells(make(gains, noise))).verdict == verdict


def test_only_the_largest_size_decides_at_first():
    rows = make({"right_tree": (0.9, 0.6, 0.4), "other_tree": (0, 0, 0)})
    found = decide(Cells([row for row in rows if row["size"] == 29000]))
    assert found.slope is None and found.verdict == "the right trees are better"
    missing = [r for r in rows if (r["system"], r["size"], r["seed"]) != ("right_tree", 3625, 33)]
    assert decide(Cells(missing)).slope is None
    with pytest.raises(DataError, match="other_tree, 29000 pairs: not all seeds are there"):
        decide(Cells([r for r in rows if (r["system"], r["seed"]) != ("other_tree", 31)]))


def test_cells_that_cannot_be_compared():
    rows = make({"right_tree": (0, 0, 0)})
    with pytest.raises(DataError, match="GPU and CPU are never in one contrast"):
        Cells([*rows, *make({"other_tree": (0, 0, 0)}, device="cpu")])
    with pytest.raises(DataError, match="cells of different test texts"):
        Cells([*rows, *make({"other_tree": (0, 0, 0)}, sentences=9)])


def test_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(exchange_rate, "SAMPLES", 20)
    rows = make({"rotary": (0, 0, 0), "right_tree": (0.9, 0.6, 0.4), "other_tree": (0, 0, 0)})
    (tmp_path / "gpu.json").write_text(json.dumps(rows))
    main([str(tmp_path / "gpu.json")])
    printed = capsys.readouterr().out
    assert printed.startswith("right_tree − other_tree, 29,000 pairs: −0.")
    assert "better, by less with more pairs" in printed
    assert (
        "| system | gain at 3,625 pairs | gain at 10,000 pairs | gain at 29,000 pairs |" in printed
    )
    assert "| right_tree | +0." in printed and "| rotary |" not in printed


def test_what_a_lead_is_worth_in_pairs(tmp_path, capsys):
    # Twice the pairs gain .4, .5 and .6 nats; the trees' lead is .1, .05 and .06: log2 of the
    # factor is .25, .1 and .1.
    nats = {("rotary", 1812): (3.4, 3.5, 3.6), ("rotary", 3625): (3.0, 3.0, 3.0)}
    nats["right_tree", 3625] = (2.9, 2.95, 2.94)
    rows = [
        {"system": system, "size": size, "seed": 31 + run, "device": "CPU, x"}
        | {"nats": [8 * value, 12 * value], "subwords": [8, 12]}
        for (system, size), values in nats.items()
        for run, value in enumerate(values)
    ]
    doubled = math.log2(3625 / 1812)
    ends = ttest_1samp([0.25 * doubled, 0.1 * doubled, 0.1 * doubled], 0).confidence_interval()
    shown = [100 * (2**x - 1) for x in (0.15 * doubled, ends.low, ends.high)]
    cells = Cells(rows)
    lead = cells.by_seed("right_tree", 3625) - cells.by_seed("rotary", 3625)
    worth = exchange_rate.measure_worth(lead, exchange_rate.measure_steepness(cells, 3625))
    assert [worth.difference, worth.low, worth.high] == pytest.approx(shown)
    assert exchange_rate.measure_steepness(cells, 1812) is None  # there are no fewer pairs
    (tmp_path / "cpu.json").write_text(json.dumps(rows))
    main([str(tmp_path / "cpu.json")])
    printed = capsys.readouterr().out
    assert f"| −{shown[0] / (1 + shown[0] / 100):.1f} [" in printed  # rotary − right_tree
    assert "- rotary: +0.500 [+0.251, +0.748] nats per doubling of 1,812 pairs to 3,625" in printed
    main([str(tmp_path / "cpu.json")])
    (tmp_path / "cpu.json").write_text(json.dumps([row for row in rows if row["seed"] == 31]))
    capsys.readouterr()
    main([str(tmp_path / "cpu.json")])
    printed = capsys.readouterr().out
    assert "| 3,625 | rotary − right_tree | +0.100 | +0.100 | −15.9 |" in printed
    assert "- rotary: +0.400 nats per doubling" in printed
    # A seed that lacks a training at one size counts at the other, where it is complete.
    (tmp_path / "cpu.json").write_text(json.dumps(rows[1:]))
    main([str(tmp_path / "cpu.json")])
    printed = capsys.readouterr().out
    assert "+0.100, +0.050, +0.060 | – |" in printed and "per doubling" not in printed


def test_the_exploratory_table(tmp_path, capsys):
    gains = {"rotary": (0, 0, 0), "right_tree": (0.9, 0.6, 0.4), "other_tree": (0, 0, 0)}
    rows = [row for row in make(gains) if row["size"] == 3625 and row["seed"] < 34]
    for row in rows:
        row["device"] = f"CPU, model {row['seed']}"  # each seed may have a machine
    begun = make({"rotary": (0, 0, 0)}, device="CPU, model 9")[9:10]
    (tmp_path / "cpu.json").write_text(json.dumps([*rows, *begun]))
    main([str(tmp_path / "cpu.json")])
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "- exploratory; seeds: 31, 32, 33"  # the other seed is not complete
    assert [line.split("|")[2].strip() for line in printed[2:5]] == [
        "right_tree − other_tree",
        "rotary − other_tree",
        "rotary − right_tree",
    ]
    right, other = loop(rows, 3625)
    by_seed = [first - second for first, second in zip(right, other, strict=True)]
    ends = ttest_1samp(by_seed, 0).confidence_interval()
    row = printed[2].replace("−", "-").replace("+", "")
    assert f"| {mean(by_seed):.3f} [{ends.low:.3f}, {ends.high:.3f}] |" in row
    assert ", ".join(f"{value:.3f}" for value in by_seed) in row
    (tmp_path / "cpu.json").write_text(json.dumps([row for row in rows if row["seed"] == 31]))
    main([str(tmp_path / "cpu.json")])
    assert "[" not in capsys.readouterr().out  # one seed has no interval
    rows[0]["device"] = "CPU, model 9"
    with pytest.raises(DataError, match="cells of several devices"):
        Cells(rows)
