"""A substitute for CUDA graphs without a GPU: operations recorded on a tape and played again.

Like a graph, a tape does the same operations on the same memory, whatever Python does meanwhile: it
keeps numbers that were Python's when it was recorded, draws anew what is random, and does not look
at what Python has replaced. It is stricter where a graph would only be wrong:

* memory that it reads, but did not allocate, is not kept by it; if it was freed, playing fails;
* what it has computed is no number any more when it, or another tape, is played, since graphs
  share their memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from syncattn_fairseq.tasks.waits import Watch, list_tensors

T = TypeVar("T")


class FreedMemory(Exception):
    """A tape reads freed memory."""


class Tapes:
    """Records tapes, as :class:`.CudaGraphs` records graphs."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []
        #: How many times a tape was played.
        self.played = 0

    def watch(self, refuse: bool = False) -> Watch:
        """Watch the CPU in place of a GPU."""
        return WatchOnCpu("cpu", refuse)

    def watching(self, note: Callable[[str], None]) -> contextlib.AbstractContextManager[None]:
        """Do nothing: there are no streams."""
        return contextlib.nullcontext()

    def record(self, function: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """Record a tape, and erase the contents of all memory allocated while recording."""
        state, tape = torch.get_rng_state(), Tape()
        with tape:
            results = function()
        torch.set_rng_state(state)  # a graph draws nothing before it is replayed
        self.tapes.append(tape)
        tape.erase()

        def replay() -> None:
            self.played += 1
            for other in self.tapes:
                other.erase()
            tape.play()

        return replay, results

    def measure_memory(self) -> int:
        """Return the bytes of the tapes' tensors."""
        return sum(tape.measure_memory() for tape in self.tapes)


class WatchOnCpu(Watch):
    """Watches a pass on a CPU, and keeps track of tensors that a program for GPUs has on the host.

    These are shapes and constants, and what is computed from them alone.
    """

    def __init__(self, device: str, refuse: bool) -> None:
        super().__init__(device, refuse)
        self._on_host: dict[int, Tensor] = {}

    def is_on_device(self, tensor: Tensor) -> bool:
        """Tell whether the tensor would be on a GPU."""
        return tensor.untyped_storage()._cdata not in self._on_host

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of the watched program, and note results that live on the host."""
        results = super().call(func, args, kwargs)
        if func in (torch.tensor, torch._shape_as_tensor):
            self._keep_on_host(results)
        return results

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Look at an operation, and do it."""
        given = list_tensors(args)
        results = super().__torch_dispatch__(func, types, args, kwargs)
        if given and not any(map(self.is_on_device, given)):
            self._keep_on_host(results)
        return results

    def _keep_on_host(self, results: Any) -> None:
        self._on_host |= {x.untyped_storage()._cdata: x for x in list_tensors(results)}


@dataclass
class Place:
    """Where a tensor is in memory that a tape did not allocate, and does not keep."""

    storage: StorageWeakRef
    dtype: torch.dtype
    size: torch.Size
    stride: tuple[int, ...]
    offset: int

    def find(self) -> Tensor:
        """Return the tensor; `FreedMemory` if it is no more."""
        storage = torch.UntypedStorage._new_with_weak_ptr(self.storage.cdata)
        if storage is None:
            raise FreedMemory(f"a tensor of {tuple(self.size)}")
        return torch.empty(0, dtype=self.dtype).set_(storage, self.offset, self.size, self.stride)


class Tape(TorchDispatchMode):
    """Records operations inside the context."""

    def __init__(self) -> None:
        super().__init__()
        #: Each with its arguments, and what it made: its place among the results, and a tensor.
        self._operations: list[tuple[Any, Any, Any, list[tuple[int, Tensor]]]] = []
        #: What was allocated meanwhile, by its storage.
        self._own: dict[int, Tensor] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Do an operation, and record operations that allocate or change memory."""
        kwargs = kwargs or {}
        given = {t.untyped_storage()._cdata for t in [*list_tensors(args), *list_tensors(kwargs)]}
        recorded = self._refer(args), self._refer(kwargs)
        results = func(*args, **kwargs)
        made = []
        for number, tensor in enumerate(list_tensors(results)):
            storage = tensor.untyped_storage()._cdata
            if storage not in given:
                self._own[storage] = tensor.detach()
                made.append((number, self._own[storage]))
        if made or func._schema.is_mutable:
            self._operations.append((func, *recorded, made))
        return results

    def _refer(self, values: Any) -> Any:
        """Replace tensors from outside the tape by their places."""
        if isinstance(values, Tensor):
            if values.untyped_storage()._cdata in self._own:
                return values.detach()
            storage = StorageWeakRef(values.untyped_storage())
            shape = values.size(), values.stride(), values.storage_offset()
            return Place(storage, values.dtype, *shape)
        if isinstance(values, dict):
            return {key: self._refer(value) for key, value in values.items()}
        if isinstance(values, list | tuple):
            return type(values)(self._refer(value) for value in values)
        return values

    @torch.no_grad()
    def play(self) -> None:
        """Do all operations again, on the same memory."""
        for func, args, kwargs, made in self._operations:
            results = list_tensors(func(*_find(args), **_find(kwargs)))
            for number, tensor in made:
                tensor.copy_(results[number])

    @torch.no_grad()
    def erase(self) -> None:
        """Erase all computed numbers."""
        for tensor in self._own.values():
            tensor.fill_(float("nan") if tensor.is_floating_point() else 0)

    def measure_memory(self) -> int:
        """Return the allocated bytes."""
        return sum(tensor.untyped_storage().nbytes() for tensor in self._own.values())


def _find(values: Any) -> Any:
    """Replace places by the tensors that are there."""
    if isinstance(values, Place):
        return values.find()
    if isinstance(values, dict):
        return {key: _find(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(_find(value) for value in values)
    return values


@contextlib.contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Let fairseq's layers and our losses take their code paths for a GPU."""
    from unittest import mock

    from syncattn_fairseq.criterions import label_smoothed_cross_entropy_with_syntax as losses
    from syncattn_fairseq.patches import padding_waits

    with (
        mock.patch.object(padding_waits, "AT_HAND", set()),
        mock.patch.object(losses, "has_plain_scores", lambda model, scores: False),
    ):
        yield
