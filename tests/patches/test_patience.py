import pytest
import torch
from fairseq import checkpoint_utils
from fairseq_cli.train import should_stop_early
from omegaconf import OmegaConf

from tests.patches.resuming import resume, save


def test_a_complete_training_does_not_go_on(tmp_path):
    save(tmp_path / "checkpoint_last.pt", 99)
    assert resume(tmp_path) == 99
    save(tmp_path / "checkpoint_last.pt", 100)
    with pytest.raises(SystemExit) as end:
        resume(tmp_path)
    assert end.value.code == 0


def test_patience_goes_on_counting(tmp_path):
    last, cfg = tmp_path / "checkpoint_last.pt", OmegaConf.create({"checkpoint": {"patience": 2}})
    cfg.checkpoint.maximize_best_checkpoint_metric = False

    def stops(loss: float) -> bool:
        stop: bool = should_stop_early(cfg, loss)
        state = torch.load(save(last, 1))
        checkpoint_utils.torch_persistent_save(state, str(last))
        return stop

    def forget() -> None:  # as a new process
        vars(should_stop_early).clear()

    forget()
    assert not stops(5.0) and not stops(5.5)
    forget()
    resume(tmp_path, patience=2)
    assert should_stop_early.best == 5.0 and stops(5.2)
    forget()
    with pytest.raises(SystemExit) as end:  # it had stopped
        resume(tmp_path, patience=2)
    assert end.value.code == 0
    forget()
    resume(tmp_path, patience=3)  # the user has more
    assert stops(5.1)
    for reset in ("reset_optimizer", "reset_meters"):
        should_stop_early.best, should_stop_early.num_runs = 5.0, 9  # of another training here
        resume(tmp_path, patience=2, **{reset: True})
        assert not hasattr(should_stop_early, "best")
    forget()
