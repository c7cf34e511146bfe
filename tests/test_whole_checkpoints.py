from __future__ import annotations

import logging
import os
import shutil
import signal
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq_cli.train import should_stop_early
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401  (fairseq's functions are replaced)
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.checkpoints import average_checkpoints
from syncattn_fairseq.whole_checkpoints import newest_intact


def save(path: Path, updates: int, **rest: Any) -> Path:
    state = {
        "cfg": OmegaConf.create({"model": {"layers": 1}}),
        "model": {"weight": torch.full((1000,), float(updates))},
        "optimizer_history": [
            {"num_updates": updates, "lr_scheduler_state": {}, "optimizer_name": "Adam"}
        ],
        "last_optimizer_state": {"state": {}},
        "extra_state": {"train_iterator": {"epoch": 1}},
        **rest,
    }
    torch.save(state, path)
    return path


def truncate(data: bytearray) -> bytes:
    return bytes(data[: len(data) // 2])


def flip_a_weight(data: bytearray) -> bytes:
    at = data.index(torch.full((10,), 9.0).numpy().tobytes())
    data[at] ^= 1
    return bytes(data)


DAMAGE = {
    "truncated": truncate,
    "empty": lambda data: b"",
    "garbage": lambda data: bytes(range(256)) * 9,
    "text": lambda data: b"not a checkpoint\n",
    "flipped": flip_a_weight,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_error_of_loading_names_the_file(tmp_path: Path, damage: str) -> None:
    path = save(tmp_path / "model.pt", 9)
    assert checkpoint_utils.load_checkpoint_to_cpu(str(path))["model"]["weight"][0] == 9
    path.write_bytes(DAMAGE[damage](bytearray(path.read_bytes())))
    with pytest.raises(DataError, match=r"model\.pt: ") as error:
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match=r"model\.pt: "):  # as fairseq-generate does
        checkpoint_utils.load_model_ensemble([str(path)])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.tensor([1, float("nan")]), "weight holds NaN; use another"),
        (torch.tensor([1, float("nan")], dtype=torch.float16), "weight holds NaN; use another"),
        ([1.0], "weight is list, not numbers$"),
    ],
)
def test_weights_are_numbers(tmp_path: Path, weight: Any, message: str) -> None:
    path = save(tmp_path / "model.pt", 1, model={"weight": weight})
    with pytest.raises(DataError, match=f"^{path}: {message}"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    with pytest.raises(DataError, match=f"^{path}: {message}"):
        average_checkpoints([path], tmp_path / "mean.pt")
    assert [*tmp_path.iterdir()] == [path]


class Malice:
    def __reduce__(self) -> Any:
        return os.mkdir, ("pwned",)


def test_no_code_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = save(tmp_path / "model.pt", 1, extra=Malice())
    with pytest.raises(DataError, match=r"model\.pt: "):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert not Path("pwned").exists()


class Trainer:
    """What fairseq asks of its trainer when it resumes."""

    checkpoint_suffix = ""
    data_parallel_rank = 0
    task = Namespace()
    cfg = Namespace(optimization=Namespace(max_update=100))

    def get_num_updates(self) -> int:
        updates: int = self.state["optimizer_history"][-1]["num_updates"] if self.state else 0
        return updates

    def load_checkpoint(self, filename: str, *args: Any, **kwargs: Any) -> Any:
        self.state = checkpoint_utils.load_checkpoint_to_cpu(filename)
        return self.state["extra_state"]

    def get_train_iterator(self, epoch: int, **kwargs: Any) -> Namespace:
        return Namespace(epoch=epoch, load_state_dict=lambda state: None)

    def lr_step(self, epoch: int) -> None:
        pass


def resume(folder: Path, **options: Any) -> float:
    """Return the weight that training would go on from."""
    cfg = Namespace(
        save_dir=str(folder),
        restore_file="checkpoint_last.pt",
        reset_optimizer=False,
        reset_lr_scheduler=False,
        reset_meters=False,
        reset_dataloader=False,
        optimizer_overrides="{}",
        finetune_from_model=None,
        patience=-1,
    )
    vars(cfg).update(options)
    trainer = Trainer()
    checkpoint_utils.load_checkpoint(cfg, trainer)
    return float(trainer.state["model"]["weight"][0])


def test_training_goes_on_from_the_newest_intact(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for updates in (2, 10, 9):
        save(tmp_path / f"checkpoint_1_{updates}.pt", updates)
    save(tmp_path / "checkpoint7.pt", 11)  # the newest, by what it says of itself
    save(tmp_path / "checkpoint_best.pt", 12, last_optimizer_state=None)  # to decode with
    save(tmp_path / "mean.pt", 13)  # not of this training
    save(tmp_path / "checkpoint_last.pt", 14)
    assert resume(tmp_path) == 14
    assert not caplog.records

    last, newest = tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint7.pt"
    last.write_bytes(last.read_bytes()[:500])
    with caplog.at_level(logging.WARNING):
        assert resume(tmp_path) == 11
    assert "checkpoint_last.pt: " in caplog.text and "continues from" in caplog.text
    assert caplog.text.count("\n") == 1

    data = bytearray(newest.read_bytes())
    at = data.index(torch.full((10,), 11.0).numpy().tobytes())
    data[at] ^= 1  # only its weights are damaged, not what it says of itself
    newest.write_bytes(data)
    assert [path.name for path in newest_intact(tmp_path)][:2] == [
        newest.name,
        "checkpoint_1_10.pt",
    ]
    assert resume(tmp_path) == 10

    with pytest.raises(DataError, match=r"checkpoint_last\.pt: "):  # a checkpoint that is named
        resume(tmp_path, restore_file=str(last))
    with pytest.raises(DataError, match=r"checkpoint_last\.pt: "):  # and one to decode with
        checkpoint_utils.load_checkpoint_to_cpu(str(last))


def test_nothing_intact_names_the_last(tmp_path: Path) -> None:
    (tmp_path / "checkpoint_last.pt").write_bytes(b"")
    (tmp_path / "checkpoint1.pt").write_bytes(b"")
    with pytest.raises(DataError, match=r"checkpoint_last\.pt: "):
        resume(tmp_path)


def test_a_complete_training_does_not_go_on(tmp_path: Path) -> None:
    save(tmp_path / "checkpoint_last.pt", 99)
    assert resume(tmp_path) == 99
    save(tmp_path / "checkpoint_last.pt", 100)
    with pytest.raises(SystemExit) as end:
        resume(tmp_path)
    assert end.value.code == 0


def test_patience_goes_on_counting(tmp_path: Path) -> None:
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


def test_another_models_training_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "checkpoint_last.pt", 1)

    def load(*args: Any, **kwargs: Any) -> None:
        one, two = torch.zeros(1), torch.zeros(1)
        state = torch.optim.Adam([one, two]).state_dict()
        torch.optim.Adam([one]).load_state_dict(state)

    monkeypatch.setattr(Trainer, "load_checkpoint", load)
    with pytest.raises(DataError, match=r"checkpoint_last\.pt: was saved by .* another --save-dir"):
        resume(tmp_path)

    def fail(*args: Any, **kwargs: Any) -> None:
        raise ValueError("something else")

    monkeypatch.setattr(Trainer, "load_checkpoint", fail)
    with pytest.raises(ValueError, match="something else"):
        resume(tmp_path)


def test_what_killed_trainings_left_is_removed(tmp_path: Path) -> None:
    save(tmp_path / "checkpoint_last.pt", 1)
    child = os.fork()
    if child == 0:
        with replacing(tmp_path / "checkpoint_1_2.pt"):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (tmp_path / ".checkpoint_notes.tmp").touch()
    assert len(list(tmp_path.iterdir())) == 3
    resume(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".checkpoint_notes.tmp", "checkpoint_last.pt"]


def test_a_copy_that_is_killed_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, last = save(tmp_path / "checkpoint_1_2.pt", 2), save(tmp_path / "checkpoint_last.pt", 1)

    def copy_half(source: str, target: str) -> None:
        Path(target).write_bytes(Path(source).read_bytes()[:999])
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(shutil, "copyfile", copy_half)
        PathManager.copy(str(new), str(last), overwrite=True)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert resume(tmp_path) == 1
    assert PathManager.copy(str(new), str(last), overwrite=True)
    assert resume(tmp_path) == 2
    assert sorted(tmp_path.iterdir()) == [new, last]


def test_a_checkpoint_is_written_whole_and_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        checkpoint_utils.torch_persistent_save({"weight": torch.ones(9)}, str(tmp_path / name))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises((DataError, OSError), match="/dev/full"):
        checkpoint_utils.torch_persistent_save({"weight": torch.ones(99999)}, "/dev/full")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AssertionError("Criterion does not match; please reset"), "saved with another criterion"),
        (AssertionError("Optimizer does not match; please reset"), "saved with another optimizer"),
    ],
)
def test_another_training_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    path = save(tmp_path / "checkpoint_last.pt", 1)

    def load(*args: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(Trainer, "load_checkpoint", load)
    for restored in ("checkpoint_last.pt", str(path)):
        with pytest.raises(DataError, match=f"^{path}: was {message}; choose another --save-dir"):
            resume(tmp_path, restore_file=restored)


@pytest.mark.parametrize("name", ["checkpoint_last.pt", "other.pt"])
def test_weights_of_another_model_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
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
    with pytest.raises(DataError, match=f"^{path}: is another model: weight is ") as error:
        resume(tmp_path, restore_file=name)
    last = name == "checkpoint_last.pt"
    assert str(error.value).endswith("; choose another --save-dir" if last else "here")


def test_options_are_stored_as_plain_values(tmp_path: Path) -> None:
    model = Namespace(arch="transformer", dropout=0.1, layers=[1, 2])
    path = tmp_path / "checkpoint1.pt"
    checkpoint_utils.torch_persistent_save({"cfg": {"model": model}}, str(path))
    assert torch.load(path)["cfg"]["model"] == vars(model)
    assert b"Namespace" not in path.read_bytes()
