from __future__ import annotations

import argparse
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # the classes that checkpoints may hold


def test_checkpoints_load_with_torchs_safety_on(tmp_path: Path) -> None:
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


def test_the_safety_stays_on(tmp_path: Path) -> None:
    torch.save({"path": Path("x")}, tmp_path / "other.pt")
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(tmp_path / "other.pt", weights_only=True)


def test_repeated_ngrams_are_blocked_without_a_gpu() -> None:
    tokens = torch.tensor([[2, 5, 6, 7, 5, 6, 1, 1, 1], [2, 5, 6, 7, 6, 5, 1, 1, 1]])
    block = NGramRepeatBlock(3, use_extension=False)
    scores = block(tokens, torch.zeros(2, 10), bsz=1, beam_size=2, step=5)
    assert (scores == -torch.inf).nonzero().tolist() == [[0, 7]]


def test_a_fairseq_that_cannot_be_imported_is_refused_in_one_line(tmp_path: Path) -> None:
    """The official release fails like this on Python 3.11 and later."""
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").write_text(
        "raise ValueError('mutable default <class> for field common is not allowed')"
    )
    root = Path(syncattn_fairseq.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", "import syncattn_fairseq.plugin"],
        env={"PYTHONPATH": f"{tmp_path}:{root}", "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: the installed fairseq does not work on Python")
    assert "mutable default" in last and "install fairseq-fixed==0.12.3.1" in last


def test_attention_is_kept_off_cudnn() -> None:
    assert not torch.backends.cuda.cudnn_sdp_enabled()
