from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from syncattn_fairseq.export.fold import fold
from tests.models import build

SIZE = {
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_embed_dim": 16,
    "encoder_ffn_embed_dim": 16,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
}


def folded(arch: str, model: Any, **options: Any) -> Any:
    from fairseq.models import ARCH_CONFIG_REGISTRY

    args = Namespace(arch=arch, **SIZE, **options)
    ARCH_CONFIG_REGISTRY[arch](args)
    words = model.encoder.dictionary
    return fold(model, args, SimpleNamespace(source_dictionary=words, target_dictionary=words))


@pytest.mark.parametrize("options", [{}, {"dependency_heads": 3, "dependency_key_bias": True}])
def test_there_and_back_is_the_same_checkpoint(options):
    plain = build.model("transformer", **SIZE).state_dict()
    model = build.model("transformer_dbsa", seed=1, **SIZE, **options)
    model.load_state_dict({key: value.clone() for key, value in plain.items()}, strict=True)
    back = folded("transformer_dbsa", model, **options).state_dict()
    assert back.keys() == plain.keys()
    for key, value in plain.items():
        torch.testing.assert_close(back[key], value, atol=1e-6, rtol=0, msg=key)


def test_half_precision_is_folded_in_full():
    model = build.model("transformer_dbsa", **SIZE, dependency_key_bias=True)
    half = build.model("transformer_dbsa", **SIZE, dependency_key_bias=True)
    half.load_state_dict(model.state_dict())
    weight = folded("transformer_dbsa", half.half()).encoder.layers[0].self_attn.q_proj.weight
    assert weight.dtype == torch.float32


@pytest.mark.parametrize("positions", ["none", "rotary"])
def test_a_plain_model_gets_no_embeddings_that_the_model_lacks(positions):
    """Even if the options, as given, do not say so: the model draws this conclusion itself."""
    model = build.model("syntax_transformer", **SIZE, positions=positions)
    plain = folded("syntax_transformer", model, positions=positions)
    assert plain.encoder.embed_positions is plain.decoder.embed_positions is None
