"""A GPU that is none: tensors whose numbers are on the CPU, but which say that they are elsewhere.

What a GPU would refuse is refused: an operation on tensors of two devices. What it would wait for
is noted: a number, or a shape, that the host asks for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

NAME = "gpu"
#: Operations whose result, or its shape, the host must wait for.
WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "unique_dim", "is_nonzero"}

#: Operations of packed sequences, which want the sentences' lengths on the host.
PACKED = {"_pack_padded_sequence", "_pack_padded_sequence_backward", "_pad_packed_sequence", "gru"}


def register() -> None:
    """Register the device with PyTorch: once in a process, before its first backward pass."""
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(NAME)


class OnGpu(Tensor):
    """A tensor of the emulated device.

    Attributes:
        numbers: the tensor on the CPU that it stands for.
    """

    gpu: ClassVar[EmulatedGpu]
    is_cuda = True  # type: ignore[assignment]
    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> OnGpu:
        if numbers.is_conj():  # nothing looks at that bit below the mode
            numbers = torch.conj_physical(numbers.conj())
        made: OnGpu = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=torch.device(NAME, 0),
        )
        made.numbers = numbers
        return made

    def tolist(self) -> Any:
        self.gpu.note("tolist")
        return self.numbers.tolist()

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Refuse: only :class:`EmulatedGpu` computes with them."""
        raise RuntimeError(f"{func} on the emulated device, but outside EmulatedGpu")


class EmulatedGpu(TorchDispatchMode):
    """Computes with :class:`OnGpu` tensors.

    Attributes:
        waits: where the host waited for the device: operation, file and line.
        kernels: names of the operations that PyTorch has only for GPUs, and which were used.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        self.kernels: set[str] = set()

    def __enter__(self) -> EmulatedGpu:
        OnGpu.gpu = self
        super().__enter__()
        return self

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Say no: PyTorch would import its compiler, for seconds, to keep it out of here."""
        return False

    def note(self, operation: str) -> None:
        self.waits.append(f"{operation} {called_from()}")

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Compute on the CPU; refuse what a GPU would refuse."""
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        inside: list[OnGpu] = []
        elsewhere: list[Tensor] = []

        def numbers_of(x: Tensor) -> Tensor:
            if isinstance(x, OnGpu):
                inside.append(x)
                return x.numbers
            elsewhere.append(x)
            return x

        numbers = map_tensors(numbers_of, args)
        options = {key: map_tensors(numbers_of, value) for key, value in kwargs.items()}
        device = kwargs.get("device")
        moved = device is not None and name in ("_to_copy", "to", "copy_")
        if inside and elsewhere and name not in ("copy_", "_to_copy", *PACKED):
            # Only numbers may stay on the host; an index may not even be that on the other side.
            strays = [x for x in elsewhere if x.dim() > 0 or name.startswith("index")]
            if strays:
                raise RuntimeError(
                    f"{name}: tensors on the emulated device and on the CPU {called_from()}"
                )
        by_mask = name in ("index", "index_put", "index_put_") and any(
            i is not None and i.dtype == torch.bool for i in args[1]
        )
        leaves = moved and torch.device(device).type == "cpu"
        if inside and (name in WAITS or by_mask or leaves):
            self.note(name)
        goes_there = bool(inside) or (device is not None and torch.device(device).type == NAME)
        if device is not None:
            goes_there = torch.device(device).type == NAME
            options["device"] = torch.device("cpu")
        if name in GPU_ONLY:
            self.kernels.add(name)
        results = GPU_ONLY.get(name, func)(*numbers, **options)
        if not goes_there or name == "copy_" and not isinstance(args[0], OnGpu):
            return args[0] if name.endswith("_") and isinstance(args[0], OnGpu) else results
        changed = {id(x.numbers): x for x in inside}  # operations in place return their argument

        def wrap(x: Tensor) -> Tensor:
            return changed[id(x)] if id(x) in changed else OnGpu(x)

        if name == "_pack_padded_sequence":
            return wrap(results[0]), results[1]
        return map_tensors(wrap, results)


def fused_gru_cell(
    inputs: Tensor, recurrent: Tensor, state: Tensor, *biases: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute what the kernel of :class:`torch.nn.GRUCell` computes, and what it keeps."""
    if biases and biases[0] is not None and biases[1] is not None:
        inputs, recurrent = inputs + biases[0], recurrent + biases[1]
    (i_r, i_z, i_n), (h_r, h_z, h_n) = inputs.chunk(3, -1), recurrent.chunk(3, -1)
    r, z = (i_r + h_r).sigmoid(), (i_z + h_z).sigmoid()
    n = (i_n + r * h_n).tanh()
    return (1 - z) * n + z * state, torch.cat([r, z, n, state, h_n], -1)


def fused_gru_cell_backward(gradient: Tensor, kept: Tensor, has_bias: bool) -> tuple[Tensor, ...]:
    """Compute the gradients of inputs, recurrent, state and biases."""
    r, z, n, state, h_n = kept.chunk(5, -1)
    of_n = gradient * (1 - z) * (1 - n * n)
    of_r, of_z = of_n * h_n * r * (1 - r), gradient * (state - n) * z * (1 - z)
    of_inputs, of_recurrent = (
        torch.cat([of_r, of_z, of_n], -1),
        torch.cat([of_r, of_z, of_n * r], -1),
    )
    return of_inputs, of_recurrent, gradient * z, of_inputs.sum(0), of_recurrent.sum(0)


#: Operations that PyTorch has only for GPUs.
GPU_ONLY = {
    "_thnn_fused_gru_cell": fused_gru_cell,
    "_thnn_fused_gru_cell_backward": fused_gru_cell_backward,
}


def map_tensors(change: Callable[[Tensor], Tensor], x: Any) -> Any:
    """Change the tensors of arguments or results: three times as fast as PyTorch's tree_map."""
    if isinstance(x, Tensor):
        return change(x)
    return type(x)(map_tensors(change, y) for y in x) if type(x) in (list, tuple) else x


def called_from() -> str:
    """Name the nearest line of this package or of fairseq."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        path = frame.f_code.co_filename
        if "/torch/" not in path and path != __file__:
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return "somewhere"


def move(x: Any) -> Any:
    """Move a tensor, or those in lists and dictionaries, or a module in place."""
    if isinstance(x, torch.nn.Module):
        # Parameters stay the same objects, so that shared ones stay shared.
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            return x.to(torch.device(NAME, 0))
        finally:
            torch.__future__.set_swap_module_params_on_conversion(False)
    return tree_map(lambda y: y.to(torch.device(NAME, 0)) if isinstance(y, Tensor) else y, x)
