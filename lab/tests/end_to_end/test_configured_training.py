"""A config trains the same model by hydra, on the command line, and in two processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from syncattn_lab.recipes import launch
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.systems import SHARED, read_overrides
from tests.end_to_end import commands
from tests.end_to_end.test_training import losses
from tests.importing import ROOT

SYSTEM = ("multi30k_en_de", "syncattn")


def overrides(data: Path, folder: Path, precision: str) -> list[str]:
    """What makes a run of two updates on a CPU of it."""
    return [
        f"common.user_dir={commands.PLUGIN}",
        *("common.fp16=false", "common.cpu=true", precision),
        *("common.log_format=json", "common.log_interval=1"),
        f"task.data={data}",
        *("model.encoder_layers=2", "model.decoder_layers=2", "model.dropout=0.1"),
        *("model.encoder_embed_dim=32", "model.encoder_ffn_embed_dim=32"),
        *("optimization.max_update=2", "dataset.max_tokens=600", "dataset.disable_validation=true"),
        f"checkpoint.save_dir={folder}",
    ]


@pytest.fixture(scope="module")
def on_the_command_line(data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The losses of two updates with a config's options."""
    changed = overrides(data, tmp_path_factory.mktemp("cli"), "common.bf16=false")
    script = ROOT / "scripts" / "config_options.py"
    printed = subprocess.run(
        [sys.executable, script, *SYSTEM, *changed], capture_output=True, text=True, check=True
    )
    return losses(commands.run("fairseq-train", *printed.stdout.splitlines()))


def hydra_steps(output: str) -> list[dict[str, str]]:
    """Read what was logged of two updates."""
    steps = [
        json.loads(line.split("[train_inner][INFO] - ")[1])
        for line in output.splitlines()
        if "[train_inner]" in line
    ]
    assert len(steps) == 2
    return steps


@pytest.mark.parametrize("precision", ["common.bf16=false", "common.bf16=true"])
def test_hydra_trains_the_same_model(data, tmp_path, on_the_command_line, precision):
    output = commands.run(
        "fairseq-hydra-train",
        *load_corpus(SHARED / SYSTEM[0]).system(SYSTEM[1]).hydra_words(),
        *(f"++{change}" for change in overrides(data, tmp_path, precision)),
        cwd=tmp_path,  # hydra leaves its log where it is started
    )
    tolerance = 2e-3 if precision.endswith("false") else 0.05
    for step, (loss, total) in zip(hydra_steps(output), on_the_command_line, strict=True):
        assert float(step["loss"]) == pytest.approx(loss, abs=tolerance)
        assert float(step["total_loss"]) == pytest.approx(total, abs=tolerance)
    assert commands.lines(commands.generate(data, tmp_path / "checkpoint_last.pt"), "H")


def test_torchrun_trains_with_two_processes(data, tmp_path, on_the_command_line, monkeypatch):
    monkeypatch.setattr(commands, "programs", commands.BIN)
    changed = overrides(data, tmp_path, "common.bf16=false")
    machines = launch.Machines(2, cpu=True)
    system = load_corpus(SHARED / SYSTEM[0]).system(SYSTEM[1])
    changes = {**read_overrides(changed), "common.user_dir": str(commands.PLUGIN)}
    step = launch.make_training(system, system.load(changes), machines, changes)
    [command] = step.commands
    output = commands.run(*command, cwd=tmp_path)
    assert "distributed init (rank 1): env://" in output
    # Each has half of the batch, and so the two together other batches than one alone.
    for step, (loss, _) in zip(hydra_steps(output), on_the_command_line, strict=True):
        assert float(step["loss"]) == pytest.approx(loss, rel=0.05)
    assert (tmp_path / "checkpoint_last.pt").exists()
