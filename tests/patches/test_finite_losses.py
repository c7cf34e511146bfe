from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq import trainer as fairseq_trainer
from fairseq.logging import metrics

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.patches.finite_losses import mend

NAN, INF = float("nan"), float("inf")


class Task:
    def train_step(self, log: dict[str, Any], update: int) -> tuple[Any, int, dict[str, Any]]:
        return 0, 1, log


class Trainer:
    def __init__(self, sentence_avg: bool = False) -> None:
        self.task = Task()
        self.cfg = Namespace(optimization=Namespace(sentence_avg=sentence_avg))

    def get_num_updates(self) -> int:
        return 7

    def save_checkpoint(self, filename: str) -> None:
        self.saved = filename

    def train_step(self, samples: list[dict[str, Any]], fails: str = "") -> int:
        for sample in samples:
            assert self.task.train_step(sample, update=7)[1] == 1
        try:
            if fails:
                raise FloatingPointError(fails)
        except FloatingPointError:
            with fairseq_trainer.NanDetector(self):
                pass
        return 3


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    found: list[Any] = []
    monkeypatch.setattr(fairseq_trainer, "Trainer", Trainer)
    monkeypatch.setattr(Trainer, "train_step", Trainer.train_step)
    monkeypatch.setattr(Trainer, "save_checkpoint", Trainer.save_checkpoint)
    monkeypatch.setattr(fairseq_trainer, "NanDetector", None)
    monkeypatch.setattr(checkpoint_utils, "save_checkpoint", lambda *args: found.append(args[-1]))
    mend()
    with metrics.aggregate("train"):
        yield found
    metrics.reset()


@pytest.mark.usefixtures("saved")
def test_the_line_names_the_losses_and_the_update():
    trainer = Trainer()
    good = {"loss": torch.tensor(2.0), "ntokens": 3, "position_sums": torch.zeros(7)}
    bad = [
        {"loss": torch.tensor(NAN), "sync_loss": 1.0},
        {"loss": INF, "src_dep_loss": INF, "position_sums": torch.tensor([1.0, NAN])},
    ]
    named = r"^update 8: NaN or infinite: loss, src_dep_loss, position_sums; "
    with pytest.raises(DataError, match=named) as error:
        trainer.train_step([good, *bad], "gradients are Nan/Inf")
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match="update 8: every loss is finite, but grad norms differ; "):
        trainer.train_step([good], "grad norms\n differ")
    assert trainer.train_step([good]) == 3, "a step that works is left alone"
    assert not vars(trainer.task)


@pytest.mark.parametrize(
    ("metric", "value", "trained", "sentence_avg", "refused"),
    [
        ("loss", 1023.0, 2.0, False, ""),
        ("loss", 1024.0, 2.0, False, "valid loss is 1024.0"),
        ("loss", NAN, 2.0, False, "valid loss is nan"),
        ("nll_loss", 5000.0, 2.0, False, "valid nll_loss is 5000.0"),
        ("total_loss", 5000.0, 2.0, False, ""),
        ("ppl", INF, 2.0, False, "valid ppl is inf"),
        # A loss per sentence may be large.
        ("loss", 5000.0, 2.0, True, ""),
        ("loss", INF, 2.0, True, "valid loss is inf"),
        ("nll_loss", 5000.0, 2.0, True, "valid nll_loss is 5000.0"),
        # Without validation the training loss counts.
        ("loss", None, 2.0, False, ""),
        ("loss", None, INF, False, "train loss is inf"),
        ("loss", None, 5000.0, True, ""),
    ],
)
def test_no_checkpoint_of_an_infinite_loss(saved, metric, value, trained, sentence_avg, refused):
    cfg, trainer = Namespace(best_checkpoint_metric=metric), Trainer(sentence_avg)
    metrics.log_scalar("loss", trained)
    if not refused:
        checkpoint_utils.save_checkpoint(cfg, trainer, None, value)
        assert saved == [value]
    else:
        with pytest.raises(DataError, match=f"{refused} after update 7: "):
            checkpoint_utils.save_checkpoint(cfg, trainer, None, value)
        assert not saved


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize(("error", "saves"), [(DataError, False), (ValueError, True)])
def test_an_error_in_the_input_leaves_no_crash_behind(error, saves):
    trainer = Trainer()
    try:
        raise error("the batches have no parses")
    except error:
        trainer.save_checkpoint("crash.pt")  # as fairseq does
    assert hasattr(trainer, "saved") == saves
    trainer.save_checkpoint("checkpoint_last.pt")
    assert trainer.saved == "checkpoint_last.pt"
