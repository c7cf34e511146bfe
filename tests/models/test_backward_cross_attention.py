import pytest
import torch
from fairseq.modules import MultiheadAttention

from syncattn_fairseq.models.backward_cross_attention import BackwardCrossAttention
from syncattn_fairseq.modules import BatchView

D, H, T, S = 8, 2, 4, 5


def show_padding(attention: BackwardCrossAttention, mask: torch.Tensor) -> None:
    attention.view.fill(torch.zeros_like(mask), mask, {})


def make() -> tuple[BackwardCrossAttention, MultiheadAttention]:
    torch.manual_seed(0)
    ours = BackwardCrossAttention(D, H, view=BatchView(), encoder_decoder_attention=True)
    ours = ours.double().eval()
    show_padding(ours, torch.zeros(2, T, dtype=torch.bool))
    theirs = MultiheadAttention(D, H, encoder_decoder_attention=True).double().eval()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def test_output_and_forward_attention_are_fairseqs():
    ours, theirs = make()
    x, source = torch.randn(T, 2, D).double(), torch.randn(S, 2, D).double()
    padding = torch.tensor([[False] * 5, [True, True, False, False, False]])
    arguments = {"key_padding_mask": padding, "static_kv": True, "need_head_weights": True}
    output, both = ours(x, source, source, **arguments)
    expected, weights = theirs(x, source, source, **arguments)
    torch.testing.assert_close(output, expected)
    assert both is not None and both.shape == (H, 2, T, 2 * S)
    # fairseq, and so we, take the softmax in float32
    torch.testing.assert_close(both[..., :S], weights, atol=1e-6, rtol=1e-5, check_dtype=False)


def test_backward_attention_is_the_softmax_over_target_positions():
    ours, theirs = make()
    x, source = torch.randn(T, 2, D).double(), torch.randn(S, 2, D).double()
    show_padding(ours, torch.tensor([[False] * 4, [False, False, False, True]]))
    _, both = ours(x, source, source, static_kv=True, need_head_weights=True)
    assert both is not None
    backward = both[..., S:]
    logits, _ = theirs(x, source, source, static_kv=True, before_softmax=True)
    logits = logits.view(2, H, T, S)
    for b in range(2):
        length = 4 if b == 0 else 3
        expected = logits[b, :, :length].softmax(dim=1)
        torch.testing.assert_close(
            backward[:, b, :length], expected, atol=1e-6, rtol=1e-5, check_dtype=False
        )
        assert backward[:, b, length:].abs().sum() == 0


@pytest.mark.parametrize("need", [False, True])
def test_steps_of_incremental_decoding_return_the_forward_attention_only(need):
    ours, theirs = make()
    x, source = torch.randn(1, 2, D).double(), torch.randn(S, 2, D).double()
    results = [
        module(
            x,
            source,
            source,
            static_kv=True,
            incremental_state={},
            need_weights=need,
            need_head_weights=need,
        )
        for module in (ours, theirs)
    ]
    torch.testing.assert_close(results[0], results[1])
