"""Heads in the place of other libraries' attentions; ordinary ones change nothing."""

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.modules import BatchView, DropInAttention
from syncattn_fairseq.modules.heads import Heads

D, H = 16, 4
PADDING = torch.arange(6) >= torch.tensor([[5], [3], [2]])


def put_in(parent: Any, name: str, view: BatchView, causal: bool = False) -> DropInAttention:
    heads = {"ordinary": Heads(H, D // H, view)}
    setattr(parent, name, DropInAttention(getattr(parent, name), heads, causal=causal))
    attention: DropInAttention = getattr(parent, name)
    return attention


def make_stack(depth: int = 1, **options: Any) -> nn.TransformerEncoder:
    torch.manual_seed(1)
    with warnings.catch_warnings():  # that it has no fast path
        warnings.simplefilter("ignore")
        layer = nn.TransformerEncoderLayer(D, H, 2 * D, 0.1, **options)
        stack = nn.TransformerEncoder(layer, depth).eval()
    for parameter in stack.parameters():
        nn.init.normal_(parameter, std=0.3)
    return stack


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
@pytest.mark.parametrize("depth, place", [(1, 0), (2, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@torch.no_grad()
def test_pytorchs_stack_computes_the_same(batch_first, norm_first, depth, place, known):
    """With its defaults, it nests tensors in evaluation, and may compute without its layers."""
    stack = make_stack(depth, batch_first=batch_first, norm_first=norm_first)
    ours, view = copy.deepcopy(stack), BatchView()
    attention = put_in(ours.layers[place], "self_attn", view).eval()
    calls: list[int] = []
    attention.out_proj.register_forward_hook(lambda *_: calls.append(1))
    for length in (5, 6):  # without and with a column that has only padding
        x, padding = torch.randn(3, length, D), PADDING[:, :length]
        if known:
            view.fill(torch.zeros(3, length), padding, {})
        turned = x if batch_first else x.transpose(0, 1)
        found, expected = (
            net(turned, src_key_padding_mask=padding) if batch_first else
            net(turned, src_key_padding_mask=padding).transpose(0, 1)
            for net in (ours, stack)
        )  # fmt: skip
        inside = ~padding
        torch.testing.assert_close(found[inside], expected[inside], atol=1e-5, rtol=1e-5)
    assert len(calls) == 2


@torch.no_grad()
def test_masks_may_differ_between_sentences_and_heads():
    layer = make_stack(batch_first=True).layers[0]
    x, mask = torch.randn(3, 5, D), torch.randn(3 * H, 5, 5)
    expected, _ = layer.self_attn(x, x, x, attn_mask=mask)
    found, _ = put_in(layer, "self_attn", BatchView()).eval()(x, x, x, attn_mask=mask)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_an_attention_without_biases_gets_none():
    stack = make_stack(batch_first=True, bias=False)
    ours = copy.deepcopy(stack)
    put_in(ours.layers[0], "self_attn", BatchView()).eval()
    x = torch.randn(3, 5, D)
    torch.testing.assert_close(ours(x), stack(x), atol=1e-5, rtol=1e-5)


def make_model(kind: str, implementation: str = "eager", **more: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    common = {"vocab_size": 60, "attn_implementation": implementation} | special | more
    if kind == "GPT2":
        sizes = {"n_embd": D, "n_layer": 2, "n_head": H}
    elif kind == "T5":
        sizes = {"d_model": D, "d_kv": D // H, "num_heads": H, "num_layers": 1, "d_ff": D}
    elif kind == "Bart":
        sizes = {"d_model": D, "encoder_layers": 1, "decoder_layers": 1}
        sizes |= {f"{side}_attention_heads": H for side in ("encoder", "decoder")}
    else:
        sizes = {"hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": H}
        sizes |= {"intermediate_size": D}
    config = getattr(transformers, f"{kind}Config")(**sizes, **common)
    model = getattr(transformers, f"{kind}Model")(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def find_place(model: Any, kind: str) -> tuple[Any, str]:
    if kind == "GPT2":
        return model.h[1], "attn"
    return model.encoder.layer[1].attention, "self"


def read(model: Any, ids: Tensor, seen: Tensor, kind: str) -> Tensor:
    more = {"use_cache": False} if kind == "GPT2" else {}
    states: Tensor = model(input_ids=ids, attention_mask=seen, **more).last_hidden_state
    return states


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["Bert", "Roberta", "GPT2"])
@torch.no_grad()
def test_bert_and_gpt2_compute_the_same(kind, implementation):
    model, view = make_model(kind, implementation), BatchView()
    ours = copy.deepcopy(model)
    place = find_place(ours, kind)
    put_in(*place, view, causal=kind == "GPT2").eval()
    view.watch(ours)
    ids, seen = torch.randint(5, 60, (3, 5)), (~PADDING[:, :5]).long()
    for mask in (seen, torch.ones_like(seen)):
        found, expected = (read(net, ids, mask, kind) for net in (ours, model))
        inside = mask.bool()
        torch.testing.assert_close(found[inside], expected[inside], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["Bert", "GPT2"])
def test_they_drop_as_much_in_training(kind):
    model = make_model(kind)
    parent, name = find_place(model, kind)
    replaced = getattr(parent, name)
    ours = put_in(parent, name, BatchView(), causal=kind == "GPT2")
    if kind == "GPT2":
        assert ours.dropout_module.p == replaced.attn_dropout.p == 0.1
        ours.output_dropout.p = 1 - 1e-9
        output, _ = ours.train()(torch.randn(2, 3, D))
        assert not output.any()
    else:
        assert ours.dropout_module.p == replaced.dropout.p == 0.1
        assert ours.output_dropout.p == 0, "the module after it drops"


def get_attention(kind: str) -> Any:
    if kind.startswith("scaled"):
        by_one = kind == "scaled by 1"
        option = "scale_attn_weights" if by_one else "scale_attn_by_inverse_layer_idx"
        attention = make_model("GPT2", **{option: not by_one}).h[1].attn
        if kind != "scaled":
            del attention.scaling  # which older releases do not have
        return attention
    if kind == "cross":
        return make_model("GPT2", add_cross_attention=True).h[1].crossattention
    if kind == "T5":
        return make_model("T5").encoder.block[0].layer[0].SelfAttention
    if kind == "Llama":
        return make_model("Llama").layers[0].self_attn
    if kind == "block":
        return make_model("Bert").encoder.layer[0].attention
    return nn.MultiheadAttention(D, H, kdim=8) if kind == "kdim" else nn.Linear(D, D)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("scaled", "GPT2Attention: .*the module scales its scores differently"),
        ("scaled by 1", "GPT2Attention: .*the module scales its scores differently"),
        ("scaled by layer", "GPT2Attention: .*the module scales its scores differently"),
        ("cross", "GPT2Attention: .*the module is a cross-attention"),
        ("T5", "T5Attention: .*T5 does not scale its scores"),
        ("Llama", "LlamaAttention: .*the names of its projections are unknown"),
        (
            "block",
            "BertAttention: .*the module is a whole block; replace the attention in it, .self",
        ),
        ("kdim", "MultiheadAttention: .*the module has kdim"),
        ("none", "Linear: .*the names of its projections are unknown"),
    ],
)
def test_other_attentions_are_refused_in_one_line(kind, reason):
    heads = {"ordinary": Heads(H, D // H, BatchView())}
    with pytest.raises(DataError, match=f"^{reason}[^\n]*$"):
        DropInAttention(get_attention(kind), heads)


@torch.no_grad()
def test_rotary_parts_are_refused_even_where_the_projections_are_known():
    attention = make_model("Bart").encoder.layers[0].self_attn
    attention.rotary_dim = 4
    with pytest.raises(
        DataError, match="^BartAttention: .*the module has rotary_dim, which the new heads"
    ):
        DropInAttention(attention, {"ordinary": Heads(H, D // H, BatchView())})


@torch.no_grad()
def test_the_place_of_a_cross_attention_is_refused_when_it_is_called():
    """Their forms are the same: only the call shows which it is."""
    x, memory = torch.randn(2, 3, D), torch.randn(2, 5, D)
    layer = nn.TransformerDecoderLayer(D, H, D, 0.0, batch_first=True)
    put_in(layer, "multihead_attn", BatchView())
    with pytest.raises(DataError, match="replaced a cross-attention"):
        layer(x, memory)
    model = make_model("Bart")
    put_in(model.decoder.layers[0], "encoder_attn", BatchView())
    with pytest.raises(DataError, match="replaced a cross-attention"):
        model(torch.ones(1, 3).long(), use_cache=False)
