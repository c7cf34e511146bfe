from types import SimpleNamespace
from typing import Any

import pytest
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq_cli import train
from omegaconf import OmegaConf

from syncattn_fairseq.patches import safety_saves


class Trainer:
    updates = 0

    def get_num_updates(self) -> int:
        return self.updates

    def cumulative_training_time(self) -> float:
        return 0.0


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What fairseq does after which update: ``validate``, or ``save`` as it saves itself."""
    found: list[tuple[str, int]] = []

    def validate(cfg: Any, trainer: Trainer, *rest: Any) -> list[float]:
        found.append(("validate", trainer.updates))
        return [1.0]  # never better

    def save(cfg: Any, trainer: Trainer, epoch_itr: Any, loss: float | None) -> None:
        found.append(("save" if loss is None else "save with loss", trainer.updates))

    monkeypatch.setattr(train, "validate", validate)
    monkeypatch.setattr(checkpoint_utils, "save_checkpoint", save)
    original = getattr(train.validate_and_save, "__wrapped__", train.validate_and_save)
    monkeypatch.setattr(train, "validate_and_save", original)
    monkeypatch.setattr(train.should_stop_early, "__dict__", {}, raising=False)
    monkeypatch.setattr(checkpoint_utils, "load_checkpoint", lambda cfg, trainer, **kwargs: cfg)
    safety_saves.mend()
    return found


def run(epochs: int, length: int, safety: int, **checkpoint: Any) -> int:
    """Let fairseq decide after each update of some epochs; return how many there are."""
    cfg = OmegaConf.structured(FairseqConfig)
    cfg.checkpoint.patience = 3
    for name, value in checkpoint.items():
        cfg.checkpoint[name] = value
    trainer, task = Trainer(), SimpleNamespace(cfg=SimpleNamespace(safety_save_updates=safety))
    assert checkpoint_utils.load_checkpoint(cfg.checkpoint, trainer) == cfg.checkpoint
    for epoch in range(1, epochs + 1):
        for update in range(1, length + 1):
            trainer.updates += 1
            _, stops = train.validate_and_save(
                cfg, trainer, task, SimpleNamespace(epoch=epoch), ["valid"], update == length
            )
            if stops:
                return trainer.updates
    return trainer.updates


def test_a_safety_save_neither_validates_nor_counts(events):
    assert run(9, length=10, safety=4) == 40, "the first validation, and three without a gain"
    validated = [at for event, at in events if event == "validate"]
    assert validated == [10, 20, 30, 40]
    assert [at for event, at in events if event == "save"] == [4, 8, 12, 16, 24, 28, 32, 36]
    assert [at for event, at in events if event == "save with loss"] == validated


def test_fairseqs_own_does_both(events):
    """Else nobody would need ours."""
    assert run(9, length=10, safety=0, save_interval_updates=4) == 12
    assert [at for event, at in events if event == "validate"] == [4, 8, 10, 12]


def test_the_last_save_keeps_its_loss(events):
    assert run(9, length=10, safety=4, save_interval_updates=4) == 12
    assert events[-1] == ("save with loss", 12)


def test_without_the_option_nothing_is_added(events):
    run(2, length=10, safety=0)
    assert events == [(event, at) for at in (10, 20) for event in ("validate", "save with loss")]


def test_two_trainings_of_one_process_save_once_each(events):
    for _ in range(2):
        run(1, length=6, safety=5)
    assert [at for event, at in events if event == "save"] == [5, 5]
