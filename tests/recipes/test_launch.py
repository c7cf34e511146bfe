from __future__ import annotations

import math
import shlex
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.recipes.launch import SMALLEST_BATCH, Machines, batch, training

CONFIG = Path(__file__).parents[2] / "configs" / "wmt14_en_de" / "syncattn.yaml"
PLUGIN = Path("plugin")


def settings(tokens: int, steps: int) -> dict[str, dict[str, object]]:
    return {"dataset": {"max_tokens": tokens}, "optimization": {"update_freq": [steps]}}


@given(st.integers(512, 8192), st.integers(1, 16), st.integers(1, 128))
@example(1295, 13, 66)  # 255.08 tokens each are 256
def test_any_number_of_processes_takes_the_batch_of_one(
    most: int, steps: int, processes: int
) -> None:
    together = most * steps
    if math.ceil(together / processes) < SMALLEST_BATCH:
        with pytest.raises(DataError, match=f"take at most {together // SMALLEST_BATCH}"):
            batch(settings(most, steps), processes)
        return
    found = batch(settings(most, steps), processes)
    each = found.get("dataset.max_tokens", most)
    updates = int(found["optimization.update_freq"].strip("[]"))
    assert each <= most
    # Never less than the batch, and not more than what rounding up to whole tokens adds.
    assert together <= each * updates * processes < together + updates * processes


def test_one_process_takes_the_config_as_it_is() -> None:
    assert batch(settings(4096, 6), 1) == {"optimization.update_freq": "[6]"}


def test_validation_and_the_length_of_pairs_do_not_depend_on_the_batch() -> None:
    assert batch(settings(4096, 6), 64) == {
        "optimization.update_freq": "[1]",
        "dataset.max_tokens": 384,
        "dataset.max_tokens_valid": 4096,
        "task.max_source_positions": 384,
        "task.max_target_positions": 384,
    }


def test_one_process_is_fairseqs_own_command() -> None:
    words = shlex.split(training(CONFIG, PLUGIN, Machines(), ["common.seed=3"]))
    assert words[0] == "fairseq-hydra-train"
    assert words[words.index("--config-name") + 1] == "syncattn"
    assert {"++common.user_dir=plugin", "++optimization.update_freq=[6]", "++common.seed=3"} <= {
        *words
    }
    assert "++common.cpu=true" not in words


def test_several_are_torchruns() -> None:
    words = shlex.split(training(CONFIG, PLUGIN, Machines(2, cpu=True), []))
    assert words[:4] == ["torchrun", "--nproc-per-node=2", "-m", "syncattn_fairseq.recipes.worker"]
    assert {"++common.cpu=true", "++common.fp16=false", "++optimization.update_freq=[3]"} <= {
        *words
    }


def test_a_job_of_slurm_starts_torchrun_on_each_machine() -> None:
    machines = Machines(8, nodes=2, slurm=["partition=gpu", "exclusive"])
    words = shlex.split(training(CONFIG, PLUGIN, machines, []))
    assert words[0] == "sbatch"
    assert {"--wait", "--requeue", "--nodes=2", "--gpus-per-node=8"} <= {*words}
    assert {"--partition=gpu", "--exclusive"} <= {*words}
    job = words[words.index("--wrap") + 1]
    assert job.startswith("srun torchrun --nnodes=2 --nproc-per-node=8 ")
    assert ":$((29500 + SLURM_JOB_ID % 1000)) " in job  # jobs may share a machine
    assert "dataset.max_tokens=1536" in job  # 6 x 4096 of 16 processes
