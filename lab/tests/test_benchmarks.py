"""What the benchmarks compute, in small cases."""

import importlib.util
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import (
    common,
    launches,
    rivals,
    scaling,
    start,
    train_step,
)
from benchmarks.gpu import parse_text
from syncattn_fairseq.patches import returned_memory
from tests.test_packaging import SCRIPTS


@pytest.mark.parametrize(
    ("of_gpu", "said"),
    [
        ("2 0\n", "0 heads differ from the GPU's"),
        ("0 1\n", "FAILED: 2 heads differ from the GPU's"),
        ("2 0\n0\n", "FAILED: 3 heads, but 5 from the GPU"),
        (None, "FAILED: no heads from the GPU to compare with"),
    ],
)
def test_heads_of_two_devices_are_compared(tmp_path, monkeypatch, of_gpu, said):
    written = iter([of_gpu, "2 0\n"])

    def parse(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        heads = next(written)
        if heads is not None:
            Path(command[command.index("--output") + 1]).write_text(heads)
        return subprocess.CompletedProcess(command, heads is None, "", "no memory")

    monkeypatch.setattr(subprocess, "run", parse)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    rows = list(parse_text(Namespace(cpu=False, stanza_dir="models"), tmp_path))
    assert len(rows) == 2 and rows[1][-1] == said


def test_the_commands_that_are_timed():
    assert {name: f"{module}:main" for name, module in start.COMMANDS.items()} == SCRIPTS


def test_kernels_are_counted_and_compared_with_the_limit():
    with launches.counting() as counted:
        x = torch.empty(2, 3, device="meta", requires_grad=True)
        query = x.view(1, 1, 2, 3)
        attended = torch.nn.functional.scaled_dot_product_attention(query, query, query)
        torch.nn.functional.dropout(attended.exp(), 0.5).sum().backward()
        assert bool(x.any())  # what a device would have to answer
    names = {"_scaled_dot_product_efficient_attention", "exp", "native_dropout", "sum"}
    assert names < set(counted.operations) and "view" not in counted.operations
    assert counted.waits == 1
    few, many = launches.Launches(), launches.Launches()
    few.operations["mm"], many.operations["mm"] = 100, 121
    rows, within = launches.compare_transformers(lambda system: few)
    assert within and rows[1][:3] == ["Transformer", "100", "1.000"]
    baseline = launches.TRANSFORMERS["Transformer"]
    rows, within = launches.compare_transformers(lambda s: few if s == baseline else many)
    assert not within and rows[2][2] == "1.210"


def test_a_transformer_with_syntax_launches_little_more_than_fairseqs():
    plain, ours = (
        launches.count_update(launches.System(f"{arch}_tiny", 1), vocabulary=100, tokens=200)
        for arch in ("transformer", "syntax_transformer")
    )
    assert plain.total <= ours.total < 1.05 * plain.total
    assert ours.waits == plain.waits > 0


def test_the_optimizer_launches_less_than_fairseqs(monkeypatch):
    fairseqs, ours = (launches.System(f"transformer{kind}_tiny", 1) for kind in ("", "_dbsa"))
    monkeypatch.setattr(launches, "TRANSFORMERS", {"fairseq's": fairseqs, "ours": ours})
    rows, _ = launches.compare_updates(
        lambda system, precision: launches.count_update(system, 100, 200, precision)
    )
    ratios = [float(cell.partition("(")[2][:-1]) for cell in rows[2][1:]]
    assert ratios[0] < 0.5 and ratios[1] < 0.5 and ratios[2] < 1


@pytest.mark.parametrize("precision", common.PRECISIONS)
def test_an_update_in_half_precision_leaves_the_parameters_finite(precision):
    """Adam's eps is 0 in float16: the optimizer needs float32 copies."""
    args = Namespace(device="cpu", precision=precision)
    task = common.make_task(60)
    batches = [common.make_batch(task, 60, torch.device("cpu"), 6)]
    update = train_step.make_update("transformer_dbsa_tiny", {}, args, task, batches)
    losses = [float(loss) for loss in (update() for _ in range(6)) if loss is not None]
    assert len(losses) >= 3 and losses[-1] < losses[0], "nan is not less than anything"


def test_rivals_train_as_fairseq_does(monkeypatch):
    monkeypatch.setattr(rivals, "SIZES", {"tiny": (1, 16, 16, 60, 6)})
    monkeypatch.setattr(rivals, "MAX_TOKENS", 60)
    monkeypatch.setattr(returned_memory, "set_allocator", lambda: True)
    losses = {}
    for name in ("fairseq", "plugin", "plugin, --fast"):
        update = rivals.ARMS[name]("tiny")
        losses[name] = [update() for _ in range(4)]
    assert losses["fairseq"] == losses["plugin"] != losses["plugin, --fast"]
    assert all(loss is not None and loss.isfinite() for loss in losses["plugin, --fast"])


def test_costs_are_those_of_each_line_beside_the_plain_tool(monkeypatch, capsys):
    sizes = ["--lines", "20", "40", "--only", "clean", "score links"]
    monkeypatch.setattr("sys.argv", ["scaling.py", *sizes])
    measure, written = scaling.measure, []

    def measure_and_look(words: list[str], folder: Path) -> tuple[float, float]:
        used = measure(words, folder)
        written.append((folder / "clean.en").exists())
        return used

    monkeypatch.setattr(scaling, "measure", measure_and_look)
    scaling.main()
    assert written and all(written)
    _, table = capsys.readouterr().out.split("\n\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert rows[0][:4] == ["command", "lines", "µs a line", "plain"]
    assert [row[:2] for row in rows[2:]] == [
        [name, lines] for lines in ("20", "40") for name in ("clean", "score links")
    ]
    for row in rows[2:]:
        assert all(map(bool, row[3:5])) == bool(row[6]) == (row[0] == "clean")
        assert bool(row[7]) == (row[1] == "40")
