"""A gated recurrent unit whose weight products are computed elsewhere, many at a time."""

import torch
from torch import Tensor


def gru_step(inputs: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """Return the next state of a :class:`torch.nn.GRUCell`.

    .. math::
        r = σ(i_r + h_r)
        z = σ(i_z + h_z)
        n = tanh(i_n + r h_n)
        s' = (1 − z) n + z s

    On a GPU, it is the one kernel that the cell itself launches.

    Args:
        inputs: `[i_r; i_z; i_n] = W_i x + b_i`, ``(B, 3 d)``.
        recurrent: `[h_r; h_z; h_n] = W_h s + b_h`, ``(B, 3 d)``.
        state: s, ``(B, d)``.

    Returns:
        ``(B, d)``.
    """
    if inputs.is_cuda:
        return torch.ops.aten._thnn_fused_gru_cell(inputs, recurrent, state)[0]
    width = state.size(-1)
    input_gates, input_proposal = inputs.split([2 * width, width], dim=-1)
    recurrent_gates, recurrent_proposal = recurrent.split([2 * width, width], dim=-1)
    reset, update = torch.sigmoid(input_gates + recurrent_gates).chunk(2, dim=-1)
    proposed = torch.tanh(torch.addcmul(input_proposal, reset, recurrent_proposal))
    return torch.lerp(proposed, state, update)
