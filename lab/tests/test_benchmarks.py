"""What the benchmarks behind docs/findings.md compute, in small cases."""

import importlib.util
import json
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options

from benchmarks import (
    common,
    graphs,
    launches,
    likelihood,
    locality,
    rivals,
    scaling,
    start,
    train_step,
    trials,
)
from benchmarks.gpu import parse_text
from benchmarks.loops import main as compare_loops
from benchmarks.loops import percent_repeated
from benchmarks.where_heads_look import attend, look
from lab.tests.evaluation.test_results import cell
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.modules.heads.heads import split_heads
from syncattn_fairseq.patches import returned_memory
from tests.checkpoints import make_checkpoint
from tests.importing import ROOT
from tests.models import build
from tests.test_packaging import SCRIPTS

KINDS = ("dbsa", "lisa", "lpsi", "pascal", "local_attn")
SYSTEMS: list[tuple[str, dict[str, Any]]] = [
    *(("syntax_transformer", {}), *((f"transformer_{kind}", {}) for kind in KINDS)),
    ("syntax_transformer", {"positions": "rotary", "forget_gate_layers": "1"}),
    ("transformer_dbsa", {"positions": "rotary", "dependency_heads": 2}),
    ("syntax_transformer", {"positions": "bias", "local_decoder_layers": "1"}),
]


@pytest.mark.parametrize(("arch", "options"), SYSTEMS)
@torch.no_grad()
def test_the_attention_is_what_the_layer_attends_with(arch, options):
    model = build.model(f"{arch}_tiny", **options)
    inputs = build.net_input(build.sentences([5, 3]), build.sentences([4, 4]))
    tokens, earlier = inputs["src_tokens"], inputs.pop("prev_output_tokens")
    out = model.encoder(**inputs, return_all_hiddens=True)
    states = model.decoder(earlier, encoder_out=out)[1]["inner_states"]
    sides = {"encoder": (tokens, out["encoder_states"]), "decoder": (earlier, states)}
    for side, (read, found) in sides.items():
        module, causal = getattr(model, side), side == "decoder"
        padding = read.eq(module.padding_idx)
        hidden = torch.full((read.size(1),) * 2, -torch.inf).triu(1) if causal else None
        for layer, x in zip(module.layers, found, strict=False):
            attention = layer.self_attn
            values = split_heads(attention.v_proj(x), attention.head_dim)
            every = [w for _, w in attend(layer, x, padding, module.view, causal)]
            context = (torch.cat(every, dim=1) @ values).permute(2, 0, 1, 3).flatten(2)
            expected, _ = attention(x, x, x, padding, attn_mask=hidden, need_weights=False)
            torch.testing.assert_close(attention.out_proj(context), expected, rtol=1e-3, atol=1e-3)


def test_what_the_places_get():
    lengths, nan = (6, 4), float("nan")
    columns = max(lengths) + 2  # one for the end of sentence, one for padding
    words = torch.zeros(2, columns, dtype=torch.bool)
    for row, length in enumerate(lengths):
        words[row, :length] = True
    parents = torch.tensor(
        [[2, 0, 0, 5, 2.5, 2, nan, nan], [nan, 3, 0, 1, nan, nan, nan, nan]], dtype=torch.float64
    )
    attention = torch.rand(2, 3, columns, columns)
    visible = torch.tensor(lengths).unsqueeze(1) + 1
    sums, counts = look(attention, parents, words, visible)
    expected, seen = torch.zeros(3, 5), [0] * 5
    for row, length in enumerate(lengths):
        for t in range(length):
            places = [[1 / (length + 1)] * 3, attention[row, :, t, t]]
            near = [c for c in (t - 1, t + 1) if c >= 0]
            places.append(attention[row, :, t, near].sum(-1))
            parent = parents[row, t]
            if not parent.isnan():
                found = round(float(parent))
                mirror = 2 * t - found
                if abs(found - t) >= 2 and 0 <= mirror < length:
                    places += [attention[row, :, t, found], attention[row, :, t, mirror]]
            for number, place in enumerate(places):
                expected[:, number] += torch.as_tensor(place)
                seen[number] += 1
    assert counts.tolist() == seen == [10, 10, 10, 2, 2]
    torch.testing.assert_close(sums, expected)


def test_repeated_trigrams():
    assert percent_repeated(["a b c a b c", "a b c", "a"]) == 20  # one of five


def test_missing_translations_are_one_line(tmp_path, monkeypatch):
    results = ROOT / "docs/results/multi30k_tiny_en_de_3625.json"
    monkeypatch.setattr("sys.argv", ["loops.py", str(results), str(tmp_path), "lpsi"])
    with pytest.raises(SystemExit, match=r"lpsi.1.translations.txt: no such file; WORK is"):
        compare_loops()


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


def test_the_likelihood_of_kept_checkpoints(small_corpus, tmp_path, monkeypatch, capsys):
    corpus = "multi30k_tiny_en_de_3625"
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin" / corpus).symlink_to(small_corpus.data)
    output = tmp_path / "results" / "nll.json"
    for number, system in enumerate(("distance_linear", "distance_tree")):
        for seed in range(6, 11):
            place = tmp_path / "checkpoints" / corpus / system / str(seed)
            place.mkdir(parents=True)
            (place / "checkpoint_best.pt").symlink_to(tmp_path / f"{(seed + number) % 2}.pt")
    for number in range(2):
        make_checkpoint(small_corpus, tmp_path / f"{number}.pt", "syntax_transformer", number)
    monkeypatch.setattr("sys.argv", ["", corpus, f"--work={tmp_path}", f"--output={output}"])
    likelihood.main()
    printed = capsys.readouterr().out
    rows = json.loads(output.read_text())
    means = [np.mean([row["test"] for row in part]) for part in (rows[:5], rows[5:])]
    difference = f"{means[1] - means[0]:+.3f}".replace("-", "−")
    assert "distance_tree − distance_linear" in printed and f" {difference} [" in printed
    assert [(row["system"], row["seed"]) for row in rows[::5]] == [
        *(("distance_linear", 6), ("distance_tree", 6))
    ]
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "0.pt")])
    for split in ("valid", "test"):
        task.load_dataset(split)
        losses = []
        for sample in (task.dataset(split).collater([one]) for one in task.dataset(split)):
            logs = model.eval()(**sample["net_input"])[0].log_softmax(-1)
            losses += (-logs.gather(-1, sample["target"].unsqueeze(-1))).flatten().tolist()
        assert rows[0][split] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert rows[0]["valid"] != rows[1]["valid"]
    monkeypatch.setattr(likelihood, "measure", lambda *_: pytest.fail("it is known"))
    likelihood.main()


def test_how_local_trees_are(tmp_path, monkeypatch, capsys):
    (tmp_path / "heads").write_text("2 3 0\n3 1 0\n0\n-1 -1\n\n")
    sentences = locality.read_heads(tmp_path / "heads")
    assert [heads.tolist() for heads in sentences] == [[2, 3, 0], [3, 1, 0]]
    text, tree = [1, 2, 1, 1, 2, 1], [1, 2, 1, 1, 1, 2]
    expected = float(np.corrcoef(text, tree)[0, 1]), (1 + 1 + 2 + 1) / 4
    assert locality.measure(sentences, locality.TREES["parse"]) == pytest.approx(expected)
    assert locality.measure(sentences, locality.TREES["mirrored"]) == pytest.approx(expected)
    monkeypatch.setattr("sys.argv", ["", str(tmp_path / "heads")])
    locality.main()
    printed = capsys.readouterr().out
    assert "2 sentences, 6 pairs of words" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["mirrored", f"{expected[0]:.2f}", "1.25"] in rows


def test_the_table_of_trials(tmp_path, monkeypatch, capsys):
    def save(corpus: str, subwords: float, nats: dict[str, float], seed: int = 11) -> str:
        cells = [
            {**cell(name, seed, 20.0), "subwords_per_word": subwords}
            | {"valid": {"loss": 4.0, "nll_loss": value / np.log(2)}}
            for name, value in nats.items()
        ]
        path = tmp_path / f"{corpus}.json"
        path.write_text(json.dumps({"corpus": corpus, "cells": cells}))
        return str(path)

    large = save("large", 1.5, {"a": 3.0, "a:x.y=1:x.z=2": 2.8, "b": 2.4})
    small = save("small", 2.0, {"a": 2.0, "b": 2.0})
    monkeypatch.setattr("sys.argv", ["", large, small])
    trials.main()
    assert capsys.readouterr().out.splitlines() == [
        "| corpus | settings | a | b |",
        "|---|---|---|---|",
        "| large | as in its config | 4.500 | **3.600** |",
        "| large | x.y=1, x.z=2 | 4.200 | – |",
        "| small | as in its config | **4.000** | 4.000 |",
    ]
    other = Path(save("other", 1.5, {"a": 3.0}, seed=12)).read_text()
    cells = json.loads(Path(large).read_text())["cells"] + json.loads(other)["cells"]
    Path(large).write_text(json.dumps({"corpus": "large", "cells": cells}))
    with pytest.raises(DataError, match="large.json: a has several seeds; a trial has one"):
        trials.make_table([Path(large)])


def test_costs_are_those_of_each_line_beside_the_plain_tool(monkeypatch, capsys):
    sizes = ["--lines", "20", "40", "--only", "clean", "align"]
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
        [name, lines] for lines in ("20", "40") for name in ("clean", "align")
    ]
    for row in rows[2:]:
        assert all(map(bool, row[3:5])) == bool(row[6]) == (row[0] == "clean")
        assert bool(row[7]) == (row[1] == "40")
