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
    """Raised when a replayed tape reads memory that was freed since it was recorded."""


class Tapes:
    """A substitute for :class:`.CudaGraphs` that records operations on a CPU and replays them."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []
        #: How many times a tape was played.
        self.played = 0

    def watch(self, refuse: bool = False) -> Watch:
        """Return a `Watch` that finds what no CUDA graph can capture, as if on a GPU."""
        return WatchOnCpu("cpu", refuse)

    def watching(self, note: Callable[[str], None]) -> contextlib.AbstractContextManager[None]:
        """Return a context that does nothing, since a CPU has no streams."""
        return contextlib.nullcontext()

    def record(self, function: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """Run a function and record its operations; return a function to replay them, and results.

        The contents of all memory allocated while recording are erased.
        """
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
        """Return the size in bytes of the memory that the tapes keep."""
        return sum(tape.measure_memory() for tape in self.tapes)


class WatchOnCpu(Watch):
    """A `Watch` on a CPU that knows which tensors would be on the host if there were a GPU.

    These are shapes and constants, and what is computed from them alone.
    """

    def __init__(self, device: str, refuse: bool) -> None:
        super().__init__(device, refuse)
        self._on_host: dict[int, Tensor] = {}

    def is_on_device(self, tensor: Tensor) -> bool:
        """Tell whether a tensor would be on the GPU."""
        return tensor.untyped_storage()._cdata not in self._on_host

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of the watched program; remember results that would be on the host."""
        results = super().call(func, args, kwargs)
        if func in (torch.tensor, torch._shape_as_tensor):
            self._keep_on_host(results)
        return results

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Check an operation, run it, and record results that would be on the host."""
        given = list_tensors(args)
        results = super().__torch_dispatch__(func, types, args, kwargs)
        if given and not any(map(self.is_on_device, given)):
            self._keep_on_host(results)
        return results

    def _keep_on_host(self, results: Any) -> None:
        self._on_host |= {x.untyped_storage()._cdata: x for x in list_tensors(results)}


@dataclass
class Place:
    """The place of a tensor that a tape reads, in memory that others allocated and may free."""

    storage: StorageWeakRef
    dtype: torch.dtype
    size: torch.Size
    stride: tuple[int, ...]
    offset: int

    def find(self) -> Tensor:
        """Return the tensor at this position; raise `FreedMemory` if its memory was freed."""
        storage = torch.UntypedStorage._new_with_weak_ptr(self.storage.cdata)
        if storage is None:
            raise FreedMemory(f"a tensor of {tuple(self.size)}")
        return torch.empty(0, dtype=self.dtype).set_(storage, self.offset, self.size, self.stride)


class Tape(TorchDispatchMode):
    """A recording of the operations that run inside its context, which can be played again."""

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
        """Run an operation, and record it if it allocates or changes memory."""
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
        """Run all recorded operations again, on the same memory."""
        for func, args, kwargs, made in self._operations:
            results = list_tensors(func(*_find(args), **_find(kwargs)))
            for number, tensor in made:
                tensor.copy_(results[number])

    @torch.no_grad()
    def erase(self) -> None:
        """Overwrite everything that the tape computed, with NaN or 0."""
        for tensor in self._own.values():
            tensor.fill_(float("nan") if tensor.is_floating_point() else 0)

    def measure_memory(self) -> int:
        """Return the size in bytes of the memory that the tape allocated."""
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
    """Make fairseq's layers and our losses run, inside the context, their code for a GPU."""
    from unittest import mock

    from syncattn_fairseq.criterions import label_smoothed_cross_entropy_with_syntax as losses
    from syncattn_fairseq.patches import padding_waits

    with (
        mock.patch.object(padding_waits, "AT_HAND", set()),
        mock.patch.object(losses, "has_plain_scores", lambda model, scores: False),
    ):
        yield
