import math
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.launch import (
    SMALLEST_BATCH,
    Machines,
    divide_batch,
    make_training,
)
from syncattn_lab.recipes.stages import hydra_value
from syncattn_lab.recipes.systems import SHARED

SYSTEM = load_corpus(SHARED / "wmt14_en_de").system("syncattn")


def settings(tokens: int, steps: int) -> dict[str, dict[str, object]]:
    return {"dataset": {"max_tokens": tokens}, "optimization": {"update_freq": [steps]}}


@given(st.integers(512, 8192), st.integers(1, 16), st.integers(1, 128))
@example(1295, 13, 66)  # 255.08 tokens each are 256
def test_any_number_of_processes_takes_the_batch_of_one(most, steps, processes):
    together = most * steps
    if math.ceil(together / processes) < SMALLEST_BATCH:
        with pytest.raises(DataError, match=f"take at most {together // SMALLEST_BATCH}"):
            divide_batch(settings(most, steps), processes)
        return
    found = divide_batch(settings(most, steps), processes)
    each = found.get("dataset.max_tokens", most)
    [updates] = found["optimization.update_freq"]
    assert each <= most
    # Never less than the batch, and not more than what rounding up to whole tokens adds.
    assert together <= each * updates * processes < together + updates * processes


def test_batches_by_hand():
    assert divide_batch(settings(4096, 6), 1) == {"optimization.update_freq": [6]}
    assert divide_batch(settings(4096, 6), 64) == {
        "optimization.update_freq": [1],
        "dataset.max_tokens": 384,
        "dataset.max_tokens_valid": 4096,
        "task.max_source_positions": 384,
        "task.max_target_positions": 384,
        "dataset.skip_invalid_size_inputs_valid_test": True,
    }


def test_a_batch_of_sentences_is_divided_too():
    config = load_corpus(SHARED / "wmt14_en_de_words").system("rnn_global").load({})
    assert divide_batch(config, 1) == {"optimization.update_freq": [1]}
    found = divide_batch(config, 8)
    assert found["dataset.batch_size"] == 10 and found["dataset.batch_size_valid"] == 80
    assert found["dataset.max_tokens"] == 810
    six = {"dataset": {"max_tokens": 4000, "batch_size": 10}, "optimization": {"update_freq": [6]}}
    assert divide_batch(six, 4)["dataset.batch_size"] == 8  # 60 sentences, 4 x 2 batches


def words(machines: Machines, **overrides: Any) -> tuple[str, ...]:
    changes = {name.replace("__", "."): value for name, value in overrides.items()}
    [command] = make_training(SYSTEM, SYSTEM.load(changes), machines, changes).commands
    return command


def test_one_process_is_fairseqs_own_command():
    found = words(Machines(), common__seed=3)
    assert found[0] == "fairseq-hydra-train"
    assert found[found.index("--config-name") + 1] == "fairseq"
    assert {"+training@_global_=all", "+transformer@_global_=syncattn"} <= {*found}
    assert {"++optimization.update_freq=[6]", "++common.seed=3"} <= {*found}
    assert "++common.cpu=true" not in found


def test_a_preempted_training_loses_minutes():
    assert "++task.safety_save_updates=1000" in words(Machines())
    own = words(Machines(), task__safety_save_updates=50)
    assert [word for word in own if "save_updates" in word] == ["++task.safety_save_updates=50"]
    # Only our task can save without validating.
    assert not any("save" in word for word in words(Machines(), task___name="translation"))


def test_a_gpu_has_several_loaders():
    assert "++dataset.num_workers=4" in words(Machines())
    assert not any("num_workers" in word for word in words(Machines(cpu=True)))
    own = words(Machines(), dataset__num_workers=9)
    assert [word for word in own if "num_workers" in word] == ["++dataset.num_workers=9"]


def test_several_are_torchruns():
    assert "++dataset.max_tokens=1536" in words(Machines(16))  # 6 x 4096 of 16 processes
    # A longer sentence of the validation text is left out, too: it would stop the training.
    assert "++dataset.skip_invalid_size_inputs_valid_test=true" in words(Machines(16))
    found = words(Machines(2, cpu=True))
    assert found[:4] == ("torchrun", "--standalone", "--nproc-per-node=2", "-m")
    assert {"++common.cpu=true", "++common.fp16=false", "++optimization.update_freq=[3]"} <= {
        *found
    }


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        None,
        3,
        0.5,
        1e-09,
        "plain/path.x",
        "(0.9,0.98)",
        "it's",
        'a "b" $(c) {d}',
        "é ü",
    ]
    + ["a\\", "\\'", "", "3", "true", "a b,c=d", [1, "x y"], '{"beam": 1}'],
)
def test_hydra_reads_every_value_back(value):
    parsed = OverridesParser.create().parse_override(f"++a.b={hydra_value(value)}")
    assert parsed.value() == value and type(parsed.value()) is type(value)
