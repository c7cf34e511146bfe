import argparse
from collections import OrderedDict

import numpy as np
import torch
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401  (the classes that checkpoints may hold)


def test_checkpoints_load_with_torchs_safety_on(tmp_path):
    content = {
        "args": argparse.Namespace(arch="transformer_dbsa"),
        "cfg": OmegaConf.create({"model": {"layers": [1, 2], "dropout": 0.1, "name": None}}),
        "model": OrderedDict(weight=torch.ones(2)),
        "bleu": np.arange(4),
    }
    torch.save(content, tmp_path / "checkpoint.pt")
    loaded = torch.load(tmp_path / "checkpoint.pt")
    assert loaded["cfg"] == content["cfg"]
    assert loaded["args"].arch == "transformer_dbsa"
