from tests.importing import run_program

PROGRAM = """
import sys
import torch
from syncattn_fairseq.patches.compiler_imports import mend

mend()
attention = torch.nn.MultiheadAttention(4, 2)


def attend(words):
    return attention(words, words, words, key_padding_mask=torch.zeros(1, 3, dtype=torch.bool))[0]


def update():
    optimizer.zero_grad()
    words = torch.randn(3, 1, 4, requires_grad=True)
    attend(words).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())


class Optimizer(torch.optim.Optimizer):
    def step(self):
        pass


optimizer = Optimizer(attention.parameters(), {})
update()
print("imported", *(name for name in ("torch._dynamo", "sympy") if name in sys.modules))
import torch._dynamo
update()
print(getattr(torch.optim.Optimizer.zero_grad.__wrapped__, "__dynamo_disable").__module__)
try:
    attend(torch.randn(2, 1, 4))  # another length than its mask
except AssertionError as error:
    print(error)
"""


def test_a_training_imports_the_compiler_only_if_the_program_has_it():
    imported, seen_as, refused = run_program(PROGRAM).stdout.splitlines()
    assert imported == "imported"
    assert seen_as.startswith("torch._dynamo")
    assert refused.startswith("Expected key_padded_mask.shape[1] to be 2")
