"""Find operations in a training pass that a CUDA graph cannot capture.

A graph holds what the device does. What the host reads from it, or draws, or copies to it between
two operations, happens once, when the graph is recorded, and never again: such a pass cannot be
replayed. It also keeps the device waiting where no graph is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

#: Operations that make the host wait for a result or its shape, with their names in programs.
WAITS = {
    "_linalg_check_errors": "a check of torch.linalg",
    "_local_scalar_dense": ".item(), or a condition on a tensor's value",
    "_unique": "unique",
    "_unique2": "unique",
    "bincount": "bincount",
    "equal": "torch.equal",
    "is_nonzero": "a condition on a tensor's value",
    "masked_select": "masked_select",
    "nonzero": "nonzero",
    "unique_consecutive": "unique_consecutive",
    "unique_dim": "unique",
}
#: Operations that depend on lengths which the host knows.
_PACKED = ("_pack_padded_sequence", "_pad_packed_sequence")
_INDEXED = ("index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_")
_MASKS = (torch.bool, torch.uint8)
#: Files that start passes; if one of them is the nearest caller, no other code is at fault.
_STARTED_FROM = ("/syncattn_fairseq/tasks/graphs.py", "/syncattn_fairseq/testing.py")


#: Fields of a batch that graphs do not have, since their shape is not the plan's.
HOST_FIELDS = ("id",)


class CannotRecord(Exception):
    """Error for an operation that a CUDA graph cannot capture; its message names the line."""


class Watch(TorchDispatchMode):
    """Context that finds operations of a training pass which a CUDA graph cannot capture.

    Args:
        device: the type of the device whose graphs are meant: ``cuda``, or ``meta`` to look for
            faults without numbers.
        refuse: raise :class:`CannotRecord` before the first operation that cannot be captured; by
            default, it is noted and done.

    Attributes:
        places: where such operations were, and what they were.
        read: all tensors that the pass read and did not make itself, by their storage: while they
            are here, their memory stays theirs.
    """

    def __init__(self, device: str, refuse: bool = False) -> None:
        super().__init__()
        self.device = device
        self.refuse = refuse
        self.places: list[str] = []
        self.read: dict[int, Tensor] = {}
        self._made: set[int] = set()
        self._calls: list[_Calls] = []

    def __enter__(self) -> Watch:
        self._calls.append(_Calls(self))
        self._calls[-1].__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._calls.pop().__exit__(*error)  # which holds this, and what this has read

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, to keep PyTorch from importing its compiler, which takes seconds."""
        return False

    def is_on_device(self, tensor: Tensor) -> bool:
        """Return whether a tensor is on the watched device, so that the host waits to read it."""
        return tensor.device.type == self.device

    def note(self, what: str) -> None:
        """Add to :attr:`places` an operation that no CUDA graph can capture, with its line of code.

        Raises:
            CannotRecord: this is to be refused.
        """
        self.places.append(f"{called_from()}: {what}")
        if self.refuse:
            raise CannotRecord(self.places[-1])

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of PyTorch, and note the call if it copies numbers from the host."""
        if func in _CONSTANTS:
            given = [*args, *kwargs.values()]
            device = kwargs.get("device") or getattr(given[0], "device", "cpu")
            copied = func is Tensor.new_tensor or not isinstance(given[0], Tensor)
            if copied and torch.device(device).type == self.device != "cpu":
                self.note("a tensor made from numbers on the host")
        return func(*args, **kwargs)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Execute an operation of PyTorch; note it if no CUDA graph can capture it."""
        kwargs = kwargs or {}
        given = [*list_tensors(args), *list_tensors(kwargs)]
        for tensor in given:
            key = _storage_of(tensor)
            if key not in self._made and self.is_on_device(tensor):
                self.read.setdefault(key, tensor)
        if obstacle := self._find_obstacle(func, args, kwargs, given):
            self.note(obstacle)
        results = func(*args, **kwargs)
        self._made |= {_storage_of(tensor) for tensor in list_tensors(results)} - self.read.keys()
        return results

    def _find_obstacle(self, func: Any, args: Any, kwargs: Any, given: list[Tensor]) -> str:
        """Return why no CUDA graph can capture an operation; an empty text if one can."""
        name = func._schema.name.removeprefix("aten::")
        if name in _PACKED:
            return "a packed sequence, whose lengths must be on the host"
        if torch.Tag.nondeterministic_seeded in func.tags:
            if kwargs.get("generator") is not None:
                return "random numbers of a generator other than PyTorch's default"
            devices = {tensor.device.type for tensor in given}
            devices |= {torch.device(kwargs.get("device") or "cpu").type} if not given else set()
            if self.device not in devices:
                return "random numbers drawn on the host"
        if name in ("_to_copy", "copy_") and self._leaves(name, args, kwargs):
            return "a copy between GPU and host"
        if not any(map(self.is_on_device, given)):
            return ""
        if name in WAITS:
            return f"the host waits for the GPU ({WAITS[name]})"
        if name == "repeat_interleave" and kwargs.get("output_size") is None:
            return "the host waits for the GPU (repeat_interleave without output_size)"
        if name in _INDEXED and any(i is not None and i.dtype in _MASKS for i in args[1]):
            return "the host waits for the GPU (an index of truth values)"
        return ""

    def _leaves(self, name: str, args: Any, kwargs: Any) -> bool:
        """Return whether an operation copies between the device and another type of device."""
        goal = args[0].device if name == "copy_" else kwargs.get("device") or args[0].device
        types = {torch.device(goal).type, args[1 if name == "copy_" else 0].device.type}
        return len(types) == 2 and self.device in types


class _Calls(TorchFunctionMode):
    """Context that passes calls of PyTorch's functions to a :class:`Watch`.

    Not all of them are visible as operations.
    """

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Pass the call of a function to the watch."""
        return self.watch.call(func, args, kwargs or {})


class WatchedBatch(dict[str, Any]):
    """A batch that reports each read of a field on the host, which CUDA graphs cannot capture.

    Args:
        batch: the batch.
        note: takes what was read.
    """

    def __init__(self, batch: dict[str, Any], note: Callable[[str], None]) -> None:
        super().__init__(batch)
        self._note = note

    def __getitem__(self, key: str) -> Any:
        """Return a field, and report the read if the field is on the host."""
        value = super().__getitem__(key)
        if key in HOST_FIELDS or not isinstance(value, Tensor | dict):
            self._note(f"sample[{key!r}], which is not on the GPU")
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field like ``batch[key]``, or the default if the batch lacks it."""
        return self[key] if key in self.keys() else default


#: Functions that copy numbers from the host.
_CONSTANTS = (torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor)


def list_tensors(values: Any) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, list | tuple):
        return []
    return [tensor for value in values for tensor in list_tensors(value)]


def _storage_of(tensor: Tensor) -> int:
    """Return an identifier of a tensor's memory, or of a tensor without own memory."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def called_from() -> str:
    """Return the nearest calling line outside PyTorch and this file, as ``FILE:LINE``."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        path = frame.f_code.co_filename
        if path.endswith(_STARTED_FROM):
            return "the backward pass"
        watches = isinstance(frame.f_locals.get("self"), Watch)
        if "/torch/" not in path and path != __file__ and not watches:
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return "the backward pass"
