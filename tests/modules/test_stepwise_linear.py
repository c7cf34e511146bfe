import torch
from torch import Tensor
from torch.nn import functional as F

from syncattn_fairseq.modules import StepwiseLinear


def test_all_steps_teach_it_what_they_would_teach_a_linear_layer():
    torch.manual_seed(0)
    weight, bias, first = (torch.randn(*shape).double() for shape in [(4, 4), (4,), (3, 4)])
    inputs = [x.requires_grad_() for x in (weight, bias, first)]

    def run(stepwise: bool, weight: Tensor, bias: Tensor, state: Tensor) -> Tensor:
        layer = StepwiseLinear(weight, bias) if stepwise else lambda x: F.linear(x, weight, bias)
        states = []
        for _ in range(5):
            state = torch.tanh(layer(state))
            states.append(state)
        return torch.stack(states).square().sum() + weight.sum()

    expected = torch.autograd.grad(run(False, *inputs), inputs)
    for attempt in range(2):
        loss = run(True, *inputs)
        for again in (True, False):  # losses may be differentiated one by one
            gradients = torch.autograd.grad(loss, inputs, retain_graph=again)
            torch.testing.assert_close(gradients, expected, msg=f"{attempt}, {again}")
    [alone] = torch.autograd.grad(run(True, weight.detach(), bias.detach(), first), [first])
    torch.testing.assert_close(alone, expected[2])
