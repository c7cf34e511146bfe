from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.logging import progress_bar
from fairseq.logging.meters import AverageMeter

import syncattn_fairseq.plugin  # noqa: F401

STATS = {"num_updates": 3, "uas": torch.tensor(0.5), "pair": torch.ones(2), "wps": 7.0}


@pytest.mark.parametrize("printed", ["log", "print"])
def test_wandb_and_azure_get_tensors_as_numbers(monkeypatch, printed):
    found: dict[str, Any] = {}
    below = SimpleNamespace(log=lambda *_, **__: None, print=lambda *_, **__: None)
    loss = AverageMeter()
    loss.update(2.0)
    stats = {**STATS, "loss": loss}

    monkeypatch.setattr(progress_bar, "wandb", SimpleNamespace(log=lambda x, step: found.update(x)))
    bar = progress_bar.WandBProgressBarWrapper.__new__(progress_bar.WandBProgressBarWrapper)
    bar.wrapped_bar = below
    getattr(bar, printed)(stats, tag="train", step=3)
    assert found == {"train/uas": 0.5, "train/wps": 7.0, "train/loss": 2.0}
    assert type(found["train/uas"]) is float

    rows: dict[str, Any] = {}
    monkeypatch.setattr(progress_bar, "Run", object())
    azure = progress_bar.AzureMLProgressBarWrapper.__new__(progress_bar.AzureMLProgressBarWrapper)
    azure.wrapped_bar = below
    azure.run = SimpleNamespace(log_row=lambda name, **row: rows.update({name: row}))
    getattr(azure, printed)(stats, tag="train", step=3)
    assert rows["train/uas"] == {"step": 3, "uas": 0.5} and "train/pair" not in rows
