import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.optim import AMPOptimizer
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401


@pytest.mark.filterwarnings("ignore:.*GradScaler")
def test_gradients_are_unscaled_once():
    cfg = OmegaConf.structured(FairseqConfig)
    OmegaConf.set_struct(cfg, False)
    cfg.optimizer = {"_name": "sgd", "momentum": 0.0, "weight_decay": 0.0, "lr": [1.0]}
    weight = torch.nn.Parameter(torch.tensor([3.0, -1.0]))
    optimizer = AMPOptimizer.build_optimizer(cfg, [weight])
    optimizer._grad_scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    optimizer.backward((weight * torch.tensor([0.5, 0.25])).sum())
    optimizer.clip_grad_norm(0.0)
    optimizer.step()
    assert weight.tolist() == [2.5, -1.25]
