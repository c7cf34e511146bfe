"""What the benchmarks compute, in small cases."""

import importlib.util
import json
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import options

from benchmarks import (
    common,
    graphs,
    launches,
    rivals,
    round_trips,
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


#: A sentence with words that share a span, one that Moses's rules do not bring back, and one
#: without a tree.
TREEBANK = """\
# text = Er geht zum Haus.
1\tEr\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\tgeht\t_\t_\t_\t_\t0\troot\t_\t_
3-4\tzum\t_\t_\t_\t_\t_\t_\t_\t_
3\tzu\t_\t_\t_\t_\t5\tcase\t_\t_
4\tdem\t_\t_\t_\t_\t5\tdet\t_\t_
5\tHaus\t_\t_\t_\t_\t2\tobl\t_\tSpaceAfter=No
6\t.\t_\t_\t_\t_\t2\tpunct\t_\t_

# text = 3 ,5
1\t3\t_\t_\t_\t_\t0\troot\t_\t_
2\t,5\t_\t_\t_\t_\t1\tdep\t_\t_

# text = Nein
1\tNein\t_\t_\t_\t_\t_\t_\t_\t_

"""


def test_raw_sentences_are_measured_on_their_way_and_back(tmp_path, monkeypatch):
    monkeypatch.setattr(round_trips, "_PIECES", 265)
    (tmp_path / "de.conllu").write_text(TREEBANK)
    language, count, *exact, raw, trees, drawn, _, crossing, without = round_trips.measure(
        tmp_path / "de.conllu"
    )
    assert (language, count, exact, raw) == ("de", "2", ["1", "1"], "2")
    assert trees == drawn == "2 of 2"
    assert crossing == "0.00 %"
    assert without == "12.50 %"  # "dem" of "zum"
    assert round_trips.crosses((1, 3), [(0, 2), (2, 4)])
    assert not round_trips.crosses((1, 3), [(0, 3), (0, 3), (3, 5)])


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
    assert ours.waits == plain.waits == 0, "for no answer, such as whether there is padding"


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


def test_rivals_have_hundreds_of_shapes():
    batches = rivals.make_batches("quickstart", common.make_task(60))
    shapes = {(*b["net_input"]["src_tokens"].shape, b["target"].size(1)) for b in batches}
    assert len(batches) > 300 and len(shapes) > 200
    for batch in batches[:20]:
        sides = batch["net_input"]["src_tokens"], batch["target"]
        assert max(side.numel() for side in sides) <= rivals.MAX_TOKENS
        assert batch["ntokens"] == int(batch["target"].ne(1).sum())


def test_trainings_with_graphs_are_compared_and_measured(monkeypatch, capsys, tmp_path):
    """With tapes, which are played as graphs are replayed."""
    monkeypatch.setattr(graphs, "SETTINGS", graphs.SETTINGS[:1])
    monkeypatch.setattr("sys.argv", ["", "losses", "speed", "--cpu"])
    assert graphs.main() == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [row[-1][:10] for row in rows[:3]] == ["equal bits"] * 3
    assert "seeds within" in rows[3][-1]
    assert [row[1] for row in rows[4:]] == ["fairseq", "Transformer", "Transformer, graphs"]
    assert int(rows[-1][-2]) > 0 and rows[-1][-1].startswith("recorded in ")

    asked: list[Any] = []

    def train(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        words = command[3:]
        parser = options.get_training_parser()
        asked.append(options.parse_args_and_arch(parser, [str(w) for w in words]))
        steps = [{"loss": 5 - n, "num_updates": n, "wall": 10 + n} for n in (1, 3)]
        lines = [f"x | INFO | train_inner | {json.dumps(step)}" for step in steps]
        return subprocess.CompletedProcess(command, 0, "\n".join(lines), "")

    monkeypatch.setattr(subprocess, "run", train)
    monkeypatch.setattr("sys.argv", ["", "training", "--cpu", f"--data={tmp_path}"])
    assert graphs.main() == 0
    assert [args.fast for args in asked if hasattr(args, "fast")] == [True]
    assert [args.max_update for args in asked] == [4, 3]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].split(" | ")[2] == "1 s"  # a second for one more update
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: Namespace(returncode=1, stdout="", stderr="no\nGPU")
    )
    with pytest.raises(RuntimeError, match="^GPU$"):
        graphs.main()


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([2.0, 1.5], "equal bits, last loss 1.50000"),
        ([2.0, 1.75], "FAILED: at most 2.5e-01 apart, first in update 2"),
        ([float("nan"), 1.5], "FAILED: at most nan apart, first in update 1"),
    ],
)
def test_losses_with_graphs_have_the_same_bits_or_fail(losses, said):
    assert graphs.compare_bits([2.0, 1.5], losses) == said
    assert graphs.compare_bits([float("nan")], [float("nan")]).startswith("equal bits")
    assert graphs.compare_seeds([1.0, 1.2], [1.0, 1.3]).startswith("1.1500, without 1.1000")
    assert graphs.compare_seeds([1.0, 1.2], [1.4, 1.3]).startswith("FAILED: ")


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
