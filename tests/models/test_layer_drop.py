import torch
from torch import nn

from syncattn_fairseq.models.stack import NumberedLayerDrop, bypass_encoder_layer


def test_numbers_stay_and_kept_layers_are_never_dropped():
    layers = [nn.Linear(2, 2) for _ in range(6)]
    dropping = NumberedLayerDrop(0.5, layers, bypass_encoder_layer, required=[2, 5])
    torch.manual_seed(0)
    dropped = [0] * 6
    for _ in range(200):
        present = list(dropping)
        assert len(present) == 6
        for i, layer in enumerate(present):
            assert layer is layers[i] or layer is bypass_encoder_layer
            dropped[i] += layer is not layers[i]
    assert dropped[1] == dropped[4] == 0
    assert all(60 < n < 140 for i, n in enumerate(dropped) if i not in (1, 4))


def test_evaluation_drops_nothing():
    layers = [nn.Linear(2, 2) for _ in range(3)]
    dropping = NumberedLayerDrop(1.0, layers, bypass_encoder_layer, required=[]).eval()
    assert list(dropping) == layers
    assert len(list(dropping.parameters())) == 6
