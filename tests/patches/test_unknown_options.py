from __future__ import annotations

import pytest
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401  (registers our models)
from syncattn_fairseq.base.errors import DataError


@pytest.mark.parametrize("arch", ["transformer_dbsa_tiny", "rnn_global", "lstm"])
def test_an_option_that_no_model_has_ends_a_training(arch: str) -> None:
    cfg = OmegaConf.create({"model": {"_name": arch, "encoder_embed_dim": 8, "dropuot": 0.2}})
    message = r"^model\.dropuot: there is no such option; did you mean dropout\?$"
    with pytest.raises(DataError, match=message):
        Trainer(cfg, None, None, None)
    del cfg.model.dropuot
    with pytest.raises(AttributeError):  # of the model, which is None
        Trainer(cfg, None, None, None)
