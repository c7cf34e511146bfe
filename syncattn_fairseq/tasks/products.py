"""Matrix products in lower precision, for training with ``--fast``."""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

#: Number of multiplications from which a product is faster in bfloat16, conversions included.
WORTHWHILE = 2**23


def multiplies_bf16() -> bool:
    """Return whether the processor has instructions for matrix products in bfloat16."""
    if platform.machine() in ("x86_64", "AMD64"):
        supported = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    else:
        supported = torch.ops.mkldnn._is_mkldnn_bf16_supported
    return bool(supported())


@contextmanager
def bf16_products(round_rows: Callable[[int], int] = int) -> Iterator[None]:
    """Return a context in which linear layers on a CPU multiply large matrices in bfloat16.

    Inputs and weights are rounded to 8 bits, sums are of float32. All else, such as attention,
    softmax, norms and losses, is computed in float32, as are the weights that are trained.

    PyTorch's library makes a kernel for each number of rows that it meets, 5 MB for each number in
    a small model, and keeps a thousand of them: the rows are filled up with zeros to one of few
    numbers.

    Args:
        round_rows: returns how many rows a matrix gets that has so many; by default, as many.
    """
    linear: Any = F.linear

    def multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        large = x.numel() * weight.size(0) >= WORTHWHILE
        if not large or x.dtype != torch.float32 or x.device.type != "cpu":
            plain: Tensor = linear(x, weight, bias)
            return plain
        return _RoundedProduct.apply(x, weight, bias, round_rows)

    F.linear = multiply  # type: ignore[assignment]
    try:
        yield
    finally:
        F.linear = linear


class _RoundedProduct(Function):
    """A linear layer in bfloat16, forward and backward, whose input is padded with zero rows."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        round_rows: Callable[[int], int],
    ) -> Tensor:
        """Multiply in bfloat16, with the input padded to a rounded number of rows.

        Args:
            ctx: PyTorch's context for the backward pass.
            x: the input, ``(..., D)``.
            weight, bias: ``(N, D)`` and ``(N)``, or None for no bias.
            round_rows: rounds a number of rows up.
        """
        ctx.rows = round_rows(x.numel() // x.size(-1))
        rounded, weight = _fill_up(x, ctx.rows), weight.to(torch.bfloat16)
        ctx.save_for_backward(rounded, weight)
        # Not F.linear, which is this.
        product = torch._C._nn.linear(rounded, weight, None if bias is None else bias.to(weight))
        return _take(product, x.shape[:-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias, _ = ctx.needs_input_grad
        rounded = _fill_up(gradient, ctx.rows)
        return (
            _take(rounded @ weight, gradient.shape[:-1]) if of_x else None,
            (rounded.T @ x).float() if of_weight else None,
            gradient.reshape(-1, gradient.size(-1)).sum(0) if of_bias else None,
            None,
        )


def _fill_up(x: Tensor, rows: int) -> Tensor:
    """Convert ``(..., n)`` to a bfloat16 matrix ``(rows, n)``, padded with rows of zeros."""
    filled = x.new_empty(rows, x.size(-1), dtype=torch.bfloat16)
    used = x.numel() // x.size(-1)
    filled[:used].view(x.shape).copy_(x)
    filled[used:].zero_()
    return filled


def _take(product: Tensor, shape: torch.Size) -> Tensor:
    """Return the first rows of a matrix product, in float32 and in shape ``(*shape, n)``."""
    taken = product.new_empty(*shape, product.size(-1), dtype=torch.float32)
    taken.view(-1, product.size(-1)).copy_(product[: taken.numel() // product.size(-1)])
    return taken


@contextmanager
def tf32_products() -> Iterator[None]:
    """Return a context in which a GPU multiplies float32 matrices in TF32 (10-bit mantissas)."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
