"""The queue of the experiment on what a parse is worth, without any training."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fairseq import checkpoint_utils

from study import exchange
from study.exchange import (
    EXPLORATORY,
    PLANNED,
    SIZES,
    SYSTEMS,
    Cell,
    choose_updates,
    make_command,
)
from syncattn_fairseq.base.errors import DataError
from tests.checkpoints import make_checkpoint


def test_the_order_of_the_queue():
    cells = PLANNED.list_cells()
    assert len(cells) == len({cell.key for cell in cells}) == 105
    first = [(cell.size, cell.system) for cell in cells[:20]]
    assert {size for size, _ in first} == {29000}
    assert {name for _, name in first} == {"rotary", "right_tree", "other_tree", "transformer"}
    assert all(
        cell.size < 29000 and cell.system == first[n % 4][1] for n, cell in enumerate(cells[20:60])
    )
    assert {cell.system for cell in cells[60:]} == {"linear", "dbsa", "constant_decay"}
    # A contrast of one seed is complete before the next seed begins.
    assert [cell.seed for cell in cells[:8]] == [31] * 4 + [32] * 4
    small = [cell.key for cell in EXPLORATORY.list_cells()]
    systems = ("rotary", "right_tree", "other_tree")
    assert small[:9] == [(3625, system, seed) for seed in (31, 32, 33) for system in systems]
    assert small[9:] == [(1812, "rotary", seed) for seed in (31, 32, 33)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_cell_has_a_command(system, tmp_path):
    words = make_command(tmp_path, Cell(10000, system, 32), 4000, PLANNED)
    assert words[0] == "fairseq-hydra-train"
    assert f"++task.data={tmp_path}/data-bin/multi30k_tiny_en_de.10000" in words
    assert {"++common.seed=32", "++optimization.max_update=4000", "++task.fast=true"} <= {*words}
    assert ("++model.source_trees=another" in words) == (system == "other_tree")
    assert "++checkpoint.keep_interval_updates=5" in words
    config = exchange.load_corpus(exchange.SHARED / exchange.CORPUS).system(SYSTEMS[system][0])
    loaded = config.load({})
    rotary = "++model.positions=rotary" in words or loaded["model"].get("positions") == "rotary"
    assert rotary == (system != "transformer")


def test_the_updates_are_the_fewest_that_are_good_enough():
    assert choose_updates({2000: 2.0, 4000: 1.504, 6000: 1.5, 8000: 1.51}) == 4000
    assert choose_updates({2000: 1.4, 4000: 1.5, 6000: 1.5, 8000: 1.5}) == 2000
    assert choose_updates({2000: 2.0, 4000: 1.506, 6000: 1.6, 8000: 1.5}) == 8000


@pytest.fixture
def trainings(small_corpus, tmp_path, monkeypatch):
    """A work folder whose trainings are checkpoints that are there already; what was run."""
    made = make_checkpoint(small_corpus, tmp_path / "made.pt", "syntax_transformer")
    for size in SIZES:
        data = exchange._find_data(tmp_path, size)
        data.parent.mkdir(exist_ok=True)
        data.symlink_to(small_corpus.data)
    ran = []

    def train(work, cell, updates, design):
        ran.append(cell.key)
        folder = exchange._find_checkpoints(work, cell)
        folder.mkdir(parents=True)
        # fairseq leaves out what falls on the end of an epoch, here update 600.
        for update in range(200, updates + 1, 200):
            if update != 600:
                (folder / f"checkpoint_1_{update}.pt").symlink_to(made)

    def average(words, check):
        assert words[0] == "syncattn-average" and check
        ran.append([int(Path(word).stem.rpartition("_")[2]) for word in words[1:-1]])
        shutil.copy(words[1], words[-1].removeprefix("--output="))

    monkeypatch.setattr(exchange, "_train", train)
    monkeypatch.setattr(exchange, "find_commit", lambda: "1a2b3c4")
    monkeypatch.setattr(exchange.subprocess, "run", average)
    return tmp_path, ran


def run(work, results, design):
    exchange.run(work, work / "results" / results, design)


def test_cells_are_written_as_they_end_and_done_once(trainings, monkeypatch, small_corpus):
    work, ran = trainings
    systems = ("rotary", "right_tree", "other_tree")
    groups = ((systems[:2], SIZES[-1:]), (systems[2:], SIZES[:-1]))
    design = replace(PLANNED, groups=groups, seeds=(31,), updates=(1200, 1400), apart=200, cpu=True)
    results, updates = work / "results" / "cpu.json", work / "results" / "updates_cpu.json"
    with pytest.raises(DataError, match="3625, 10000, 29000 pairs: no number of updates; run tune"):
        run(work, "cpu.json", design)
    exchange.tune(work, updates, design)
    chosen = json.loads(updates.read_text())
    assert [(row["size"], row["updates"]) for row in chosen] == [(size, 1200) for size in SIZES]
    late = [[1200, 1000, 800, 400, 200], [1400, 1200, 1000, 800, 400]]
    assert [one if isinstance(one, tuple) else one[::-1] for one in ran] == [
        part for size in SIZES for part in ((size, "transformer", 11), *late)
    ]
    ran.clear()
    exchange.tune(work, updates, design)
    assert not ran

    cells = design.list_cells()
    run(work, "cpu.json", replace(design, groups=groups[:1]))
    assert [one for one in ran if isinstance(one, tuple)] == [cell.key for cell in cells[:2]]
    ran.clear()
    with exchange._claiming(work, cells[2]):  # another process trains it
        run(work, "cpu.json", design)
    assert [one for one in ran if isinstance(one, tuple)] == [cells[3].key]
    ran.clear()
    run(work, "cpu.json", design)
    assert [one for one in ran if isinstance(one, tuple)] == [cells[2].key]
    rows = json.loads(results.read_text())
    order = [cells[number].key for number in (0, 1, 3, 2)]
    assert [(x["size"], x["system"], x["seed"]) for x in rows] == order
    assert all(row["updates"] == 1200 and row["device"].startswith("CPU, ") for row in rows)
    # Each sentence's NLL, in order, beside fairseq's own loss.
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task([str(work / "made.pt")])
    task.load_dataset("test")
    for index, (nats, size) in enumerate(zip(rows[0]["nats"], rows[0]["subwords"], strict=True)):
        sample = task.dataset("test").collater([task.dataset("test")[index]])
        logs = model.eval()(**sample["net_input"])[0].log_softmax(-1)
        expected = -logs.gather(-1, sample["target"].unsqueeze(-1)).sum().item()
        assert nats == pytest.approx(expected, abs=2e-3) and size == sample["target"].numel()
    ran.clear()
    rows[1]["device"] = "CPU, another"
    results.write_text(json.dumps([rows[1]]))
    with pytest.raises(DataError, match="cpu.json: has cells with seed 31 of CPU, another; name a"):
        run(work, "cpu.json", design)
    assert not ran
    # Another seed may be trained on another machine.
    (work / "checkpoints" / "29000.rotary.31.lock").unlink()
    run(work, "cpu.json", replace(design, groups=((("rotary",), SIZES[-1:]),), seeds=(32,)))
    assert [one for one in ran if isinstance(one, tuple)] == [(29000, "rotary", 32)]


def test_one_gpu_trains_all_cells_of_a_file(trainings, monkeypatch):
    work, ran = trainings
    design = replace(PLANNED, groups=((("rotary",), SIZES[-1:]),), updates=(1200,), apart=200)
    results, updates = work / "results" / "gpu.json", work / "results" / "updates.json"
    exchange.tune(work, updates, design)
    monkeypatch.setattr(exchange, "_name_device", lambda cpu: "CPU, x" if cpu else "GPU, x")
    run(work, "gpu.json", replace(design, seeds=(31,)))
    rows = json.loads(results.read_text())
    assert [row["device"] for row in rows] == ["GPU, x"]
    rows[0]["device"] = "GPU, another"
    results.write_text(json.dumps(rows))
    ran.clear()
    with pytest.raises(DataError, match="gpu.json: has cells of GPU, another; name another file"):
        run(work, "gpu.json", replace(design, seeds=(31, 32)))  # although of another seed
    assert not ran and json.loads(results.read_text()) == rows


def test_the_commands_choose_the_experiment(tmp_path, monkeypatch):
    called = []
    for step in ("tune", "run"):
        monkeypatch.setattr(exchange, step, lambda *words: called.append(words))
    exchange.main(["tune", "--work", str(tmp_path), "--results", "a.json"])
    exchange.main(["run", "--work", str(tmp_path), "--results", "b.json", "--cpu"])
    assert called == [(tmp_path, Path("a.json"), PLANNED), (tmp_path, Path("b.json"), EXPLORATORY)]


def test_late_checkpoints_that_are_missing_are_named(tmp_path):
    for update in (200, 400, 600, 800):
        (tmp_path / f"checkpoint_1_{update}.pt").touch()
    with pytest.raises(DataError, match="lacks checkpoints up to update 800; remove it"):
        exchange.average(tmp_path, 800, 200)
    (tmp_path / "checkpoint_2_1000.pt").touch()
    with pytest.raises(DataError, match="lacks checkpoints up to update 1400; remove it"):
        exchange.average(tmp_path, 1400, 200)


def test_parts_of_the_text_are_nested(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "HALF", 1)
    monkeypatch.setattr(exchange, "SIZES", (2, 3))
    corpus = tmp_path / "corpora" / exchange.CORPUS
    for folder, name in (("pieces", "train"), ("words", "train.heads")):
        (corpus / folder).mkdir(parents=True)
        for language in ("en", "de"):
            (corpus / folder / f"{name}.{language}").write_text("a\nb\nc\nd\n")
    ran = []

    def preprocess(words, check):
        ran.append(words)
        destination = next(word for word in words if word.startswith("--destdir="))
        Path(destination.removeprefix("--destdir=")).mkdir(parents=True)

    monkeypatch.setattr(exchange.subprocess, "run", preprocess)
    exchange.main(["prepare", f"--work={tmp_path}"])
    for size, text in ((1, "a\n"), (2, "a\nb\n"), (3, "a\nb\nc\n")):
        part = tmp_path / "corpora" / f"{exchange.CORPUS}.{size}"
        assert (part / "pieces" / "train.de").read_text() == text
        assert (part / "words" / "train.heads.en").read_text() == text
        assert (tmp_path / "data-bin" / f"{exchange.CORPUS}.{size}").is_dir()
    dictionary = f"--srcdict={tmp_path}/data-bin/{exchange.CORPUS}/dict.en.txt"
    assert all(dictionary in words and "--joined-dictionary" in words for words in ran)
    assert f"--testheads={corpus}/words/test" in ran[0]
    exchange.main(["prepare", f"--work={tmp_path}"])
    assert len(ran) == 3
