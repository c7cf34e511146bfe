"""The trainer of fairseq that resumes a training, without the training."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401  (fairseq's functions are replaced)


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


class Trainer:
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


def resume(folder: Path, trainer: Trainer | None = None, **options: Any) -> float:
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
        no_save=False,
        patience=-1,
    )
    vars(cfg).update(options)
    trainer = trainer or Trainer()
    checkpoint_utils.load_checkpoint(cfg, trainer)
    return float(trainer.state["model"]["weight"][0])
