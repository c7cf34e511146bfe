from typing import Any

import pytest
from fairseq.distributed import utils
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401  (fairseq's functions are replaced)
from syncattn_fairseq.base.errors import DataError

RANK = {"distributed_init_method": "tcp://x:1", "distributed_no_spawn": True}


def configuration(**distributed: Any) -> Any:
    given = {"distributed_world_size": 2, "distributed_init_method": None, **distributed}
    given = {"distributed_no_spawn": False, **given}
    return OmegaConf.create(
        {
            "common": {"fp16": True, "cpu": True, "tpu": False},
            "distributed_training": given,
            "model": {"_name": "none"},
        }
    )


@pytest.mark.parametrize("given", [{}, {"distributed_init_method": "tcp://x:1"}])
def test_processes_without_gpus_are_refused(monkeypatch, given):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(DataError, match="^2 processes: .* --distributed-no-spawn"):
        utils.call_main(configuration(**given), print)


def test_torchrun_without_gpus_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(DataError, match="^1 processes: "):
        utils.call_main(configuration(distributed_world_size=1), print)


def test_a_process_with_its_rank_may_start(monkeypatch):
    started: list[Any] = []
    monkeypatch.setattr(utils, "distributed_main", lambda *args: started.append(args))
    utils.call_main(configuration(**RANK, device_id=0), print)
    assert len(started) == 1


def test_half_precision_needs_a_gpu():
    with pytest.raises(DataError, match="^--fp16 trains on a GPU only"):
        Trainer(configuration(), None, None, None)
