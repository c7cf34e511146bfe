from argparse import Namespace

import torch
from fairseq import checkpoint_utils

import syncattn_fairseq.plugin  # noqa: F401  (stores them so)


def test_options_are_stored_as_plain_values(tmp_path):
    model = Namespace(arch="transformer", dropout=0.1, layers=[1, 2])
    path = tmp_path / "checkpoint1.pt"
    checkpoint_utils.torch_persistent_save({"cfg": {"model": model}}, str(path))
    assert torch.load(path)["cfg"]["model"] == vars(model)
    assert b"Namespace" not in path.read_bytes()
