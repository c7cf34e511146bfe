"""What Marian's models have: zeros at the start, a bias at the output, swish, other positions."""

import pytest
import torch
from torch.nn import functional as F

from syncattn_fairseq import testing
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.models.ends import ZeroStart
from tests.models import build
from tests.models.build import EOS, PAD, SIZE

MARIAN = {
    "positions": "marian",
    "output_bias": True,
    "zero_start": True,
    "activation_fn": "swish",
    "share_all_embeddings": True,
}
INPUT = build.net_input(build.sentences([5, 3, 7]), build.sentences([4, 6, 2], seed=1))


def scores(model):
    with torch.no_grad():
        return model(**INPUT)[0]


@pytest.mark.parametrize("arch", ["syntax_transformer", "transformer_dbsa"])
def test_steps_are_the_whole_and_padding_changes_nothing(arch):
    testing.check_steps(build.model(arch, **{**SIZE, **MARIAN}).double())


def test_each_of_them_changes_the_scores():
    model = build.model("syntax_transformer", **{**SIZE, **MARIAN})
    assert model.decoder.output_projection.bias.abs().max() > 0, "disturbed"
    for left_out in MARIAN.keys() - {"share_all_embeddings"}:
        kept = {name: value for name, value in MARIAN.items() if name != left_out}
        other = build.model("syntax_transformer", **{**SIZE, **kept})
        other.load_state_dict(
            {key: value for key, value in model.state_dict().items() if key in other.state_dict()}
        )
        assert (scores(model) - scores(other)).abs().max() > 1e-3, left_out


@pytest.mark.parametrize("padding", [0.0, 0.5])
def test_the_start_is_the_padding_and_the_table_stays_one(padding):
    model = build.model("syntax_transformer", **{**SIZE, **MARIAN})
    embedding = model.decoder.embed_tokens
    assert isinstance(embedding, ZeroStart)
    assert embedding.weight is model.encoder.embed_tokens.weight
    assert embedding.weight is model.decoder.output_projection.weight
    tokens = torch.tensor([[EOS, 5, 6]])
    expected = F.embedding(tokens, embedding.weight)
    assert expected[0, 0].abs().min() > 0
    with torch.no_grad():
        embedding.weight[PAD] = padding
    expected[0, 0] = padding
    assert embedding(tokens).tolist() == expected.tolist()


def test_the_output_is_its_weights_and_its_bias():
    model = build.model("syntax_transformer", **{**SIZE, **MARIAN})
    features = torch.randn(1, 2, SIZE["encoder_embed_dim"])
    layer = model.decoder.output_projection
    expected = features @ layer.weight.T + layer.bias
    torch.testing.assert_close(model.decoder.output_layer(features), expected)


def test_swish_is_x_times_its_sigmoid():
    model = build.model("syntax_transformer", **{**SIZE, "activation_fn": "swish"})
    x = torch.linspace(-3, 3, 7)
    for layer in (*model.encoder.layers, *model.decoder.layers):
        torch.testing.assert_close(layer.activation_fn(x), x / (1 + (-x).exp()))


def test_a_checkpoint_without_a_bias_starts_with_zeros():
    plain = build.model("syntax_transformer", **SIZE)
    model = build.model("syntax_transformer", seed=1, **SIZE, output_bias=True)
    model.load_state_dict(plain.state_dict(), strict=True)
    torch.testing.assert_close(scores(model), scores(plain))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"positions": "marian", "encoder_learned_pos": True}, "leave --encoder-learned-pos out"),
        ({"positions": "marian", "decoder_learned_pos": True}, "leave --decoder-learned-pos out"),
        (
            {"positions": "marian", "no_token_positional_embeddings": True},
            "leave --no-token-positional-embeddings out",
        ),
        ({"output_bias": True, "adaptive_softmax_cutoff": "9"}, "leave --adaptive-softmax-cutoff"),
        ({"zero_start": True, "adaptive_input": True}, "leave --adaptive-input out"),
    ],
)
def test_what_contradicts_them_is_refused(options, reason):
    with pytest.raises(DataError, match=reason):
        build.model("syntax_transformer", **{**SIZE, **options})
