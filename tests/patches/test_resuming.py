"""A training that is resumed, without the training."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq_cli.train import should_stop_early
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401  (fairseq's functions are replaced)
from syncattn_fairseq.base.errors import DataError
from tests.resuming import Trainer, resume, save


def load_another_state() -> None:
    one, two = torch.zeros(1), torch.zeros(1)
    state = torch.optim.Adam([one, two]).state_dict()
    torch.optim.Adam([one]).load_state_dict(state)


def fail(error: Exception) -> Callable[..., None]:
    def load(*args: Any, **kwargs: Any) -> None:
        raise error

    return load


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (load_another_state, "by the training of another model"),
        (fail(AssertionError("Criterion does not match; please")), "with another criterion"),
        (fail(AssertionError("Optimizer does not match; please")), "with another optimizer"),
    ],
)
def test_another_training_is_not_resumed(tmp_path, monkeypatch, load, reason):
    path = save(tmp_path / "checkpoint_last.pt", 1)
    monkeypatch.setattr(Trainer, "load_checkpoint", lambda *args, **kwargs: load())
    for restored in ("checkpoint_last.pt", str(path)):
        with pytest.raises(DataError, match=f"^{path}: was saved {reason}; choose another --save-"):
            resume(tmp_path, restore_file=restored)
    monkeypatch.setattr(Trainer, "load_checkpoint", fail(ValueError("something else")))
    with pytest.raises(ValueError, match="something else"):
        resume(tmp_path)


@pytest.mark.parametrize("name", ["checkpoint_last.pt", "other.pt"])
def test_weights_of_another_model_are_explained(tmp_path, monkeypatch, name):
    path = save(tmp_path / name, 1)

    def load(*args: Any, **kwargs: Any) -> None:
        try:
            torch.nn.Linear(3, 4).load_state_dict(torch.nn.Linear(2, 4).state_dict())
        except RuntimeError:
            raise Exception(  # noqa: B904, TRY002  (as fairseq does)
                f"Cannot load model parameters from checkpoint {path}; please ensure that the "
                "architectures match."
            )

    monkeypatch.setattr(Trainer, "load_checkpoint", load)
    with pytest.raises(
        DataError, match=f"^{path}: is another model: weight has the shape "
    ) as error:
        resume(tmp_path, restore_file=name)
    last = name == "checkpoint_last.pt"
    assert str(error.value).endswith("; choose another --save-dir" if last else "here")


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
