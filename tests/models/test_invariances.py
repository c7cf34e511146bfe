"""Every kind of heads with every kind of positions passes the checks that we offer to users."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from syncattn_fairseq import testing
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.functional import rotary_angles, rotate
from syncattn_fairseq.functional.dbsa import biaffine_query
from syncattn_fairseq.functional.lisa import rectify
from syncattn_fairseq.modules.heads import ForgetGateHeads, WindowHeads
from syncattn_fairseq.modules.positions import (
    POSITIONS,
    AlibiPositions,
    RotaryPositions,
    offsets,
)

KINDS: dict[str, dict[str, Any]] = {
    "lpsi": {"arch": "transformer_lpsi_tiny", "distance_look_back": 2},
    "pascal": {"arch": "transformer_pascal_tiny"},
    "dbsa": {"arch": "transformer_dbsa_tiny", "dependency_key_bias": True},
    "window": {"local_layers": "all", "local_decoder_layers": "same", "local_window": 1},
    "distance": {"distance_bias_layers": "all", "distance_bias_decoder_layers": "1"},
}
OTHERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "lisa": {"arch": "transformer_lisa_tiny"},
    "labels": {"arch": "transformer_sh_tiny"},
    "constant gate": {"constant_gate_layers": "all"},
    "shuffled gate": {"shuffled_gate_layers": "all"},
    "forget gate": {"forget_gate_layers": "all"},
    "supervised gate": {"supervised_gate_layers": "all"},
    "tree window": {"cross_attention_tree_window": 2},
    "tree distance": {
        "distance_bias_layers": "all",
        "distance_bias_distance": "tree",
        "distance_bias_form": "slopes",
    },
    "dasa": {"dasa_layers": "all", "dasa_strength": 2.0},
    "dasa, released": {"dasa_layers": "all", "dasa_form": "released"},
    "dasa, log": {"dasa_layers": "all", "dasa_form": "log", "dasa_strength": 0.1},
    "dasa, linear": {"dasa_layers": "all", "dasa_distance": "linear"},
    "in one side only": {"distance_layers": "none", "distance_decoder_layers": "2"},
}


# Rotary positions are those of layer 1 with interleaved ones.
@pytest.mark.parametrize("positions", [name for name in POSITIONS if name != "rotary"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_with_any_positions(kind, positions):
    testing.check_model(positions=positions, **KINDS[kind])


@pytest.mark.parametrize("kind", OTHERS)
def test_another_kind(kind):
    """Rotary positions in layer 1, and in layer 2, as with absolute ones, none in the attention."""
    testing.check_model(positions="interleaved", **OTHERS[kind])


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_order_of_words_counts_only_with_positions(positions):
    model = testing.build_model(positions=positions)
    tokens = torch.tensor([[4, 5, 6, 7, 2], [5, 7, 4, 6, 2]])
    lengths = torch.tensor([5, 5])
    one, other = model.encoder(tokens, lengths)["encoder_out"][0].unbind(1)
    same = torch.allclose(one[0], other[2])  # the states of token 4
    assert same == (positions == "none")


def test_a_bias_by_column_is_noticed(monkeypatch):
    def from_column_0(self: Any, query: Tensor, key: Tensor, scope: Any) -> Tensor:
        # Not linear: a softmax ignores a constant.
        return 0.1 * torch.arange(key.size(2)).double().square().expand(query.size(2), -1)

    monkeypatch.setattr(WindowHeads, "bias", from_column_0)
    with pytest.raises(
        AssertionError, match="different scores alone and in a batch padded on the left"
    ):
        testing.check_batches(testing.build_model(local_layers="1"))


def test_the_bias_of_another_row_is_noticed(monkeypatch):
    def first_rows(self: Any, rows: int, columns: int, device: torch.device) -> Tensor:
        biases = -offsets(columns, columns, device)[:rows].abs().double()
        return biases.expand(self.heads, -1, -1)

    monkeypatch.setattr(AlibiPositions, "bias", first_rows)
    with pytest.raises(AssertionError, match="step 2 of incremental decoding has other scores"):
        testing.check_steps(testing.build_model(positions="alibi"))


def test_queries_turned_by_another_position_are_noticed(monkeypatch):
    right = RotaryPositions.rotate
    monkeypatch.setattr(RotaryPositions, "rotate", lambda self, x, first: right(self, x, 0))
    with pytest.raises(AssertionError, match="step 2 of incremental decoding"):
        testing.check_steps(testing.build_model(positions="rotary"))


def test_the_state_of_another_hypothesis_is_noticed(monkeypatch):
    right = ForgetGateHeads.bias

    def forgetful(self: Any, query: Tensor, key: Tensor, scope: Any) -> Tensor:
        if scope.state:
            scope.state["total"] = scope.state["total"].flip(0)
        return right(self, query, key, scope)

    monkeypatch.setattr(ForgetGateHeads, "bias", forgetful)
    with pytest.raises(AssertionError, match="incremental decoding has other scores"):
        testing.check_steps(testing.build_model(forget_gate_layers="1"))


def test_an_unused_parameter_is_noticed():
    model = testing.build_model()
    model.unused = torch.nn.Parameter(torch.ones(1))
    with pytest.raises(AssertionError, match="unused has no gradient"):
        testing.check_gradients(model)


def test_a_gradient_that_is_not_finite_is_noticed(monkeypatch):
    def root(self: Any, query: Tensor, key: Tensor, scope: Any) -> Tensor:
        return (query[..., :1] * 0).abs().sqrt()

    monkeypatch.setattr(WindowHeads, "bias", root)
    with pytest.raises(AssertionError, match="the gradient of .* is not finite"):
        testing.check_gradients(testing.build_model(local_layers="1"))


def test_an_overflow_in_half_precision_is_noticed(monkeypatch):
    def large(self: Any, query: Tensor, key: Tensor, scope: Any) -> Tensor:
        return torch.full_like(query[..., :1], 1e3) * 1e3

    monkeypatch.setattr(WindowHeads, "bias", large)
    with pytest.raises(AssertionError, match="not finite in torch.float16"):
        testing.check_half_precision(testing.build_model(local_layers="1"))


def test_half_precision_is_not_left_in_the_model():
    model = testing.build_model(positions="alibi", encoder_attention_heads=8)
    constants = {name: value.clone() for name, value in model.named_buffers()}
    model.encoder.layers[0].self_attn.positions.slopes.add_(2.0**-20)
    testing.check_half_precision(model)
    after = model.encoder.layers[0].self_attn.positions.slopes
    assert after.dtype == torch.float64
    slopes = constants["encoder.layers.0.self_attn.positions.slopes"]
    torch.testing.assert_close(after, slopes + 2.0**-20, rtol=0, atol=0)


@pytest.mark.parametrize(
    "options",
    [
        {"arch": "transformer_pascal_tiny", "pascal_heads": 2},
        {"arch": "transformer_lisa_tiny", "dependency_heads": 2},
    ],
    ids=["pascal", "lisa"],
)
def test_heads_with_scores_of_their_own_turn_queries_and_keys(monkeypatch, options):
    model = testing.build_model(positions="rotary", encoder_layers=1, **options)
    batch = testing.make_batch(model, [2])["net_input"]
    del batch["prev_output_tokens"]
    [turned] = model.encoder(**batch)["encoder_out"]
    monkeypatch.setattr(RotaryPositions, "rotate", lambda self, states, first: states)
    [unturned] = model.encoder(**batch)["encoder_out"]
    assert not torch.allclose(turned, unturned)


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize("positions", ["absolute", "alibi", "rotary"])
@pytest.mark.parametrize("kind", ["dbsa", "lisa"])
@torch.no_grad()
def test_dependencies_are_those_of_the_layers_own_attention(kind, positions, side):
    options = {"positions": positions, "dependency_heads": 2, **(KINDS | OTHERS)[kind]}
    model = testing.build_model(**options)
    batch = testing.make_batch(model, [2])["net_input"]
    layer, seen = {"src": model.encoder, "tgt": model.decoder}[side].layers[0].self_attn, []
    layer.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(kwargs["query"]), with_kwargs=True
    )
    _, extra = model(**batch)
    if (kind, side) == ("lisa", "tgt"):
        assert "tgt_dependency" not in extra
        return
    heads, x = layer.heads["dependency"], seen[0][:, 0]
    queries, keys = F.linear(x, *layer.q_proj.plain), layer.k_proj(x)
    for h, attention in enumerate(extra[f"{side}_dependency"][0][0]):
        query, key = (states[:, 32 * h : 32 * h + 32] for states in (queries, keys))
        if heads.parser == "lisa":
            query, key = rectify(query), rectify(key)
        query = biaffine_query(
            query, heads.weight[h], None if heads.key_bias is None else heads.key_bias[h]
        )
        columns = torch.arange(len(x)).double()
        if positions == "rotary":
            angles = rotary_angles(columns, 32)
            query, key = rotate(query, angles), rotate(key, angles)
        scores = query @ key.T / 32**0.5
        if positions == "alibi":
            scores = scores - 2.0 ** (-4 * (h + 1)) * (columns - columns[:, None]).abs()
        if side == "tgt":
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        torch.testing.assert_close(attention, scores.softmax(-1), atol=1e-6, rtol=1e-5)


def test_some_layers_have_positions_that_others_lack():
    model = testing.build_model(positions="interleaved", encoder_layers=3)
    layers = [*model.encoder.layers, *model.decoder.layers]
    positions = [getattr(layer.self_attn, "positions", None) for layer in layers]
    pair = [RotaryPositions, type(None)]
    assert [type(each) for each in positions] == [*pair, RotaryPositions, *pair]


def test_positions_are_checked():
    with pytest.raises(DataError, match="--positions sinus: choose one of absolute, none, alibi"):
        testing.build_model(positions="sinus")
    for kind in ("rotary", "interleaved"):
        with pytest.raises(
            DataError, match=f"--positions {kind}: the encoder's heads have 3 dimens"
        ):
            testing.build_model(positions=kind, encoder_embed_dim=6)
    with pytest.raises(DataError, match="--alibi-scale 0: must be above 0"):
        testing.build_model(positions="alibi", alibi_scale=0)
    with pytest.raises(
        DataError,
        match="--distance-bias-decoder-layers same: the decoder reads no dependency tree",
    ):
        testing.build_model(**OTHERS["tree distance"], distance_bias_decoder_layers="same")


@pytest.mark.parametrize("kind", ["plain", "lpsi", "pascal", "dbsa", "window", "forget gate"])
@torch.no_grad()
def test_dropout_can_be_retained_in_decoding(kind):
    options = (KINDS | OTHERS)[kind]
    model = testing.build_model(attention_dropout=0.5, dropout=0.0, **options)
    model.make_generation_fast_(retain_dropout=True, retain_dropout_modules=None)
    batch = testing.make_batch(model, [2])["net_input"]
    del batch["prev_output_tokens"]
    [one], [other] = (model.encoder(**batch)["encoder_out"] for _ in range(2))
    assert not torch.allclose(one, other)
