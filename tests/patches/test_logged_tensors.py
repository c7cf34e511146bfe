from types import SimpleNamespace
from typing import Any

import torch
from fairseq.logging import progress_bar
from fairseq.logging.meters import AverageMeter

import syncattn_fairseq.plugin  # noqa: F401


def test_wandb_gets_tensors_as_numbers(monkeypatch):
    found: dict[str, Any] = {}
    loss = AverageMeter()
    loss.update(2.0)
    stats = {"uas": torch.tensor(0.5), "pair": torch.ones(2), "wps": 7.0, "loss": loss}
    monkeypatch.setattr(progress_bar, "wandb", SimpleNamespace(log=lambda x, step: found.update(x)))
    bar = progress_bar.WandBProgressBarWrapper.__new__(progress_bar.WandBProgressBarWrapper)
    bar.wrapped_bar = SimpleNamespace(log=lambda *_, **__: None)
    bar.log(stats, tag="train", step=3)
    assert found == {"train/uas": 0.5, "train/wps": 7.0, "train/loss": 2.0}
    assert type(found["train/uas"]) is float
