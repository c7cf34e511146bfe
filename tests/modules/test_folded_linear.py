import copy
import math

import pytest
import torch
from torch import nn

from syncattn_fairseq.models.layers import FairseqSyntaxAttention
from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules.heads import DependencyHeads, Heads

HEADS, WIDTH, TOKENS = 4, 3, 5


def make(biaffine_heads: int, key_bias: bool) -> FairseqSyntaxAttention:
    torch.manual_seed(0)
    view = BatchView()
    heads: dict[str, Heads] = {
        "dependency": DependencyHeads(biaffine_heads, WIDTH, view, key_bias=key_bias)
    }
    if biaffine_heads < HEADS:
        heads["ordinary"] = Heads(HEADS - biaffine_heads, WIDTH, view)
    attention = FairseqSyntaxAttention(
        HEADS * WIDTH, HEADS, self_attention=True, heads=heads
    ).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    return attention


def test_folding_for_inference_changes_nothing():
    query = make(2, key_bias=True).q_proj
    x = torch.randn(3, 12).double()
    before = query(x)
    query.make_generation_fast_()
    torch.testing.assert_close(query(x), before)
    assert query.weight is query.weight, "folded once, not at every call"


@pytest.mark.parametrize("folded", [False, True])
def test_it_follows_the_module_to_another_type(folded):
    attention = make(2, key_bias=True)
    x = torch.randn(3, 12).double()
    before = attention.q_proj(x)
    if folded:
        attention.q_proj.make_generation_fast_()
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.2)):
        after = attention.to(dtype).q_proj(x.to(dtype))
        assert after.dtype == dtype
        torch.testing.assert_close(after.double(), before, atol=tolerance, rtol=tolerance)


def test_a_checkpoint_holds_the_plain_parameters_under_plain_names():
    attention = make(1, key_bias=False)
    attention.q_proj.make_generation_fast_()
    state = attention.state_dict()
    own = {"heads.dependency.weight"}
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    assert set(state) == own | {f"{n}.{kind}" for n in names for kind in ("weight", "bias")}
    weight, bias = attention.q_proj.plain
    assert state["q_proj.weight"].equal(weight) and state["q_proj.bias"].equal(bias)


def test_a_copy_folds_its_own_heads():
    attention = make(1, key_bias=False)
    copied = copy.deepcopy(attention)
    with torch.no_grad():
        copied.heads["dependency"].weight.mul_(2.0)
    assert not torch.allclose(copied.q_proj.weight[:WIDTH], attention.q_proj.weight[:WIDTH])


def test_initialisation_is_xavier_uniform_with_gain_of_one_over_root_two():
    heads = DependencyHeads(2, 256, BatchView(), key_bias=True)
    limit = math.sqrt(6 / (256 + 256)) / math.sqrt(2)
    assert heads.weight is not None and heads.key_bias is not None
    largest = heads.weight.abs().max().item()
    assert 0.99 * limit < largest <= limit
    assert heads.key_bias.abs().max() == 0
