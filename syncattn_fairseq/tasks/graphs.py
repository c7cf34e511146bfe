"""Training passes as CUDA graphs: captured once for each shape, then replayed.

A GPU works a fifth of the time that Python takes to launch the kernels of an update of usual size.
Forward and backward pass of each shape of a batch (:mod:`..data.shapes`) are recorded with buffers
for the batch, for the gradients and for what is logged; a later batch of that shape is copied into
the buffers, and one call launches everything. Clipping, the optimizer, the learning rate and all
that fairseq does between updates stay as they are.

1. The first batch of a shape trains as usual, and is watched (:mod:`.waits`): what waits for the
   GPU cannot be recorded. If anything does, the training goes on without graphs, for good, and a
   line says what and where. (PyTorch would not recover from a recording that fails.)
2. The second batch of a shape is recorded. Everything that the recording reads is kept, such as
   fairseq's mask of the future, which a longer batch replaces.
3. This and every further batch is replayed. Random numbers are drawn anew.
"""

from __future__ import annotations

import logging
import random
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from fairseq.distributed import (
    DistributedTimeoutWrapper,
    LegacyDistributedDataParallel,
    ModuleProxyWrapper,
)
from fairseq.models import BaseFairseqModel, FairseqEncoder
from fairseq.modules import LayerDropModuleList
from fairseq.optim import AMPOptimizer, FairseqOptimizer, FP16Optimizer
from fairseq.optim.fp16_optimizer import MemoryEfficientFP16Optimizer
from torch import Tensor, nn

from ..criterions.label_smoothed_cross_entropy_with_syntax import (
    LabelSmoothedCrossEntropyWithSyntax,
)
from ..data.shapes import MOST_SHAPES
from .waits import HOST_FIELDS, Watch, WatchedBatch

logger = logging.getLogger(__name__)

T = TypeVar("T")
#: What fairseq's ``train_step`` returns: a batch's loss, its sample size and numbers to log.
Trained = tuple[Tensor, int, dict[str, Any]]
#: A tensor's place in a batch, such as ``("net_input", "src_tokens")``.
Path = tuple[str, ...]

#: fairseq's wrappers that reduce gradients after the backward pass, or not at all.
_WRAPPERS = (ModuleProxyWrapper, LegacyDistributedDataParallel, DistributedTimeoutWrapper)
#: fairseq's optimizers whose backward pass only scales the loss.
_OPTIMIZERS = (FairseqOptimizer, FP16Optimizer, MemoryEfficientFP16Optimizer, AMPOptimizer)


class Recorder(Protocol):
    """Protocol of recorders, which capture a device's operations as a graph and replay them."""

    def watch(self, refuse: bool = False) -> Watch:
        """Return a :class:`.Watch`, which finds operations that a graph cannot capture."""

    def watching(self, note: Callable[[str], None]) -> AbstractContextManager[None]:
        """Return a context that notes each operation of a pass that waits for the device.

        The passes run as in a capture.
        """

    def record(self, function: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """Capture a function without running its kernels; return a replay function and its results.

        The results have numbers after each replay, until another one.
        """

    def measure_memory(self) -> int:
        """Return the bytes of device memory reserved for all captured graphs."""


class CudaGraphs:
    """Recorder of CUDA graphs that share their memory, so that only one runs at a time."""

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()

    def watch(self, refuse: bool = False) -> Watch:
        """Return a :class:`.Watch`, which finds operations that a CUDA graph cannot capture."""
        return Watch("cuda", refuse)

    @contextmanager
    def watching(self, note: Callable[[str], None]) -> Iterator[None]:
        """Run a block on the graphs' CUDA stream, and note every operation that waits for the GPU.

        The GPU's libraries then have their workspaces on this stream.
        """
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        mode = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as seen, torch.cuda.stream(self.stream):
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield
            finally:
                torch.cuda.set_sync_debug_mode(mode)
        current.wait_stream(self.stream)
        for warning in seen:
            if "synchronizing CUDA operation" in str(warning.message):
                note(f"the host waits for the device ({warning.filename}:{warning.lineno})")

    def record(self, function: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """Capture a function as a CUDA graph; return a replay function and the function's results.

        Other threads, which load data, may go on meanwhile.
        """
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"
        ):
            results = function()
        return graph.replay, results

    def measure_memory(self) -> int:
        """Return the bytes of device memory shared by the graphs."""
        segments = torch.cuda.memory_snapshot()
        own = [s for s in segments if tuple(s.get("segment_pool_id", ())) == tuple(self.pool)]
        return sum(segment["total_size"] for segment in own)


def find_recorder(device: torch.device) -> Recorder | None:
    """Return a :class:`.CudaGraphs` for a GPU, or None for another device."""
    return CudaGraphs() if device.type == "cuda" else None


class Packed(NamedTuple):
    """Small tensors, joined to one for each data type, so that copying all takes few kernels."""

    shapes: dict[str, torch.Size]
    names: list[list[str]]
    tensors: list[Tensor]

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Packed:
        """Join named tensors to one tensor for each data type."""
        by_type: dict[torch.dtype, list[str]] = {}
        for name, tensor in tensors.items():
            by_type.setdefault(tensor.dtype, []).append(name)
        names = [*by_type.values()]
        packed = [torch.cat([tensors[name].reshape(-1) for name in group]) for group in names]
        return cls({name: tensor.shape for name, tensor in tensors.items()}, names, packed)

    def unpack(self) -> dict[str, Tensor]:
        """Return copies of the packed tensors by name, in their order and original shapes."""
        found: dict[str, Tensor] = {}
        for group, tensor in zip(self.names, self.tensors, strict=True):
            parts = tensor.clone().split([self.shapes[name].numel() for name in group])
            found.update(zip(group, parts, strict=True))
        return {name: found[name].view(shape) for name, shape in self.shapes.items()}


@dataclass
class Graph:
    """A forward and backward pass captured as a CUDA graph for one batch shape.

    Attributes:
        replay: runs the pass on the batch in ``buffers``.
        buffers: the tensors from which the pass reads the batch.
        log: the numbers that the pass logs.
        trained: the numbers of the parameters for which the pass has gradients.
        read: all other tensors that the pass reads, kept for as long as the graph is.
        applied: the losses that the pass computes, in the form of the criterion's ``applied``.
    """

    replay: Callable[[], None]
    buffers: dict[Path, Tensor]
    log: Packed
    trained: list[int]
    read: list[Tensor]
    applied: dict[str, int]


class GraphedTraining:
    """Runs training passes, and replays a CUDA graph for each batch shape seen before.

    Args:
        model, criterion, optimizer: fairseq's, as its trainer passes them to the task.
        recorder: of the model's device.

    Attributes:
        obstacle: why there are no graphs (any more); empty if there are.
        seconds: how long all recordings took.
    """

    def __init__(self, model: Any, criterion: Any, optimizer: Any, recorder: Recorder) -> None:
        self.model, self.criterion, self.optimizer = model, criterion, optimizer
        self.recorder = recorder
        owners = [*model.parameters(), *criterion.parameters()]
        self.parameters = [parameter for parameter in owners if parameter.requires_grad]
        self.obstacle = ""
        self.seconds = 0.0
        self._told = 0
        self._graphs: dict[Any, Graph] = {}
        self._met: set[Any] = set()
        #: The graphs' own gradients, and the sums of earlier batches of an update.
        self._gradients: list[Tensor] = []
        self._sums: dict[int, Tensor] = {}
        self._addresses: list[int] = []
        self._scale: Tensor | None = None
        if obstacle := find_obstacle(model, criterion, optimizer):
            self.give_up(obstacle)

    @property
    def count(self) -> int:
        """The number of CUDA graphs."""
        return len(self._graphs)

    def belongs_to(self, model: Any, criterion: Any, optimizer: Any) -> bool:
        """Return whether the graphs were captured with this model, criterion and optimizer.

        fairseq may replace these objects in training.
        """
        own = self.model, self.criterion, self.optimizer
        return all(a is b for a, b in zip(own, (model, criterion, optimizer), strict=True))

    def give_up(self, obstacle: str) -> None:
        """Delete all graphs, train without graphs from now on, and log the reason."""
        self.obstacle = obstacle
        self.forget()
        logger.warning("--fast: the training goes on without CUDA graphs: %s", obstacle)

    def forget(self) -> None:
        """Delete all graphs, since batches of their shapes will not come again."""
        self._graphs.clear()
        self._met.clear()
        self._told = 0

    def measure_memory(self) -> int:
        """Return the bytes of memory of graphs, gradients and batch buffers."""
        own = [*self._gradients, *self._sums.values()]
        own += [buffer for graph in self._graphs.values() for buffer in graph.buffers.values()]
        return self.recorder.measure_memory() + sum(x.untyped_storage().nbytes() for x in own)

    def report(self) -> None:
        """Log the number, capture time and memory of CUDA graphs if there are new ones."""
        if self._told < self.count:
            self._told = self.count
            message = "--fast: %d CUDA graphs, recorded in %.1f s, with %.0f MiB of memory"
            logger.info(message, self._told, self.seconds, self.measure_memory() / 2**20)

    def step(self, sample: dict[str, Any], update: int) -> Trained | None:
        """Run forward and backward pass of a batch, or return None if graphs are not in use.

        In the latter case, nothing has been computed.

        Args:
            sample: the batch, on the device.
            update: the number of updates so far.
        """
        if self.obstacle:
            return None
        tensors = _find_tensors(sample)
        shape = tuple((path, tensor.shape, tensor.dtype) for path, tensor in tensors.items())
        addresses = [parameter.data_ptr() for parameter in self.parameters]
        if addresses != self._addresses:
            self._addresses = addresses
            self._graphs.clear()
        if shape not in self._graphs and self.count >= MOST_SHAPES:
            return None
        self.model.train()
        self.model.set_num_updates(update)
        if shape not in self._graphs and shape in self._met:
            self._record(shape, tensors)
        if self.obstacle:
            return None
        if shape in self._graphs:
            log = self._replay(self._graphs[shape], tensors)
        else:
            self._met.add(shape)
            log = self._train_watched(sample)
        counts = self.criterion.count(sample)
        return log["total_loss"], counts["sample_size"], {**log, **counts}

    def _train_watched(self, sample: dict[str, Any]) -> dict[str, Tensor]:
        """Train on a batch as usual, and give up graphs if the passes cannot be recorded."""
        read = sample["net_input"]["prev_output_tokens"]
        grow_masks(self.model, read.size(1), self.parameters[0])
        drawn = _read_generators()
        with self.recorder.watch() as watch, self.recorder.watching(watch.note):
            objective, log = self._compute(WatchedBatch(sample, watch.note))
            self.optimizer.backward(objective)
        for name, value in sample["net_input"].items():
            if not torch.is_tensor(value):
                watch.places.append(f"net_input.{name} is not on the GPU")
        if _read_generators() != drawn:
            watch.places.append("the batch uses random numbers of Python or numpy")
        if watch.places:
            self.give_up(watch.places[0])
        return log

    def _compute(self, batch: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the objective and the numbers to log, as in fairseq's task."""
        with torch.autocast("cuda", enabled=isinstance(self.optimizer, AMPOptimizer)):
            objective, log = self.criterion.compute(self.model, batch)
        return objective, log

    def _record(self, shape: Any, tensors: dict[Path, Tensor]) -> None:
        """Record the passes of a batch shape; give up graphs if recording fails."""
        begun = time.monotonic()
        if not self._gradients:
            self._gradients = [torch.zeros_like(parameter) for parameter in self.parameters]
        buffers = {path: tensor.clone() for path, tensor in tensors.items()}
        scale = self._scale_loss()
        earlier = self._take_gradients()
        watch = self.recorder.watch(refuse=True)
        try:
            with watch:
                replay, (log, trained) = self.recorder.record(
                    lambda: self._pass(_build_batch(buffers), scale)
                )
        except Exception as error:
            self.give_up(" ".join(str(error).split()) or type(error).__name__)
        else:
            read, applied = [*watch.read.values()], dict(self.criterion.applied)
            self._graphs[shape] = Graph(replay, buffers, log, trained, read, applied)
        for parameter, gradient in zip(self.parameters, earlier, strict=True):
            parameter.grad = gradient
        self.seconds += time.monotonic() - begun

    def _pass(self, batch: dict[str, Any], scale: Tensor | None) -> tuple[Packed, list[int]]:
        """Run forward and backward pass, and copy gradients to where each replay leaves them."""
        objective, log = self._compute(batch)
        (objective if scale is None else objective * scale.to(objective.dtype)).backward()
        trained = [n for n, p in enumerate(self.parameters) if p.grad is not None]
        found = [self.parameters[number].grad for number in trained]
        torch._foreach_copy_([self._gradients[number] for number in trained], found)
        for parameter in self.parameters:
            parameter.grad = None  # the memory is the next graph's, too
        return Packed.of(log), trained

    def _scale_loss(self) -> Tensor | None:
        """Copy the loss scale to the tensor read by graphs, and return it; None without one."""
        scaler = getattr(self.optimizer, "scaler", None)
        if scaler is None:
            return None
        if self._scale is None:
            self._scale = torch.ones((), device=self.parameters[0].device)
        return self._scale.copy_(scaler.scale(torch.ones_like(self._scale)))

    def _take_gradients(self) -> list[Tensor | None]:
        """Remove from the parameters, and return, the gradients of the update's earlier batches.

        Those in the graphs' own memory move to another one, since the next replay overwrites them.
        """
        earlier = [parameter.grad for parameter in self.parameters]
        moved = [n for n, own in enumerate(self._gradients) if earlier[n] is own]
        if moved:
            for number in moved:
                if number not in self._sums:
                    self._sums[number] = torch.empty_like(self._gradients[number])
                earlier[number] = self._sums[number]
            sums = [self._sums[number] for number in moved]
            torch._foreach_copy_(sums, [self._gradients[number] for number in moved])
        for parameter in self.parameters:
            parameter.grad = None
        return earlier

    def _replay(self, graph: Graph, tensors: dict[Path, Tensor]) -> dict[str, Tensor]:
        """Replay a graph with a batch; give parameters their gradients, and return the log."""
        earlier = self._take_gradients()
        for path, tensor in tensors.items():
            graph.buffers[path].copy_(tensor)
        self._scale_loss()
        graph.replay()
        added: list[tuple[Tensor, Tensor]] = []
        for number in graph.trained:
            before, own = earlier[number], self._gradients[number]
            if before is None:
                earlier[number] = own
            else:
                added.append((before, own))
        if added:
            sums, new = zip(*added, strict=True)
            torch._foreach_add_([*sums], [*new])
        for parameter, gradient in zip(self.parameters, earlier, strict=True):
            parameter.grad = gradient
        if isinstance(self.optimizer, FP16Optimizer):
            self.optimizer._needs_sync = True  # it would not copy new gradients otherwise
        self.criterion.applied = dict(graph.applied)
        return graph.log.unpack()


def grow_masks(model: nn.Module, length: int, like: Tensor) -> None:
    """Build the causal masks of fairseq's decoders before a capture.

    fairseq copies them from the host, which a CUDA graph cannot capture.

    Args:
        model: the model.
        length: of the longest target.
        like: a parameter, whose type and device the masks get.
    """
    for module in model.modules():
        grow: Any = getattr(module, "buffered_future_mask", None)
        if grow is not None:
            grow(like.new_empty(length, 1, 1))


def find_obstacle(model: Any, criterion: Any, optimizer: Any) -> str:
    """Return why model, criterion or optimizer rules out CUDA graphs, or an empty string."""
    while isinstance(model, _WRAPPERS):
        model = model.module
    if not isinstance(model, BaseFairseqModel):
        return (
            f"gradients are reduced by {type(model).__name__}, which graphs do not support; use "
            "--ddp-backend legacy_ddp"
        )
    if obstacle := find_model_obstacle(model):
        return obstacle
    ours = LabelSmoothedCrossEntropyWithSyntax
    if getattr(type(criterion), "forward", None) is not ours.forward:
        return (
            f"{type(criterion).__name__} is not the criterion "
            "label_smoothed_cross_entropy_with_syntax"
        )
    if type(optimizer).backward not in [kind.backward for kind in _OPTIMIZERS]:
        return f"{type(optimizer).__name__} has its own backward pass"
    return ""


def find_model_obstacle(model: nn.Module) -> str:
    """Return why a model's training passes cannot be CUDA graphs; empty if no reason is known."""
    if getattr(model, "takes_lengths_on_cpu", False):
        return "the model packs sequences by lengths, which must be known on the host"
    passing_on = [kind.set_num_updates for kind in (BaseFairseqModel, FairseqEncoder)]
    for module in model.modules():
        if isinstance(module, LayerDropModuleList) and module.p > 0:
            return "LayerDrop chooses layers at random on the host"
        if hasattr(module, "precheckpoint_forward"):
            return "--checkpoint-activations changes the state of the random numbers"
        if getattr(type(module), "set_num_updates", passing_on[0]) not in passing_on:
            return f"{type(module).__name__} depends on the number of updates"
    return ""


def _find_tensors(batch: Mapping[str, Any], path: Path = ()) -> dict[Path, Tensor]:
    """Return the tensors of a nested batch by their places, in sorted order."""
    found: dict[Path, Tensor] = {}
    for key in sorted(batch):
        value = batch[key]
        if isinstance(value, dict):
            found |= _find_tensors(value, (*path, key))
        elif isinstance(value, Tensor) and key not in HOST_FIELDS:
            found[*path, key] = value
    return found


def _build_batch(tensors: Mapping[Path, Tensor]) -> dict[str, Any]:
    """Build a nested batch from tensors by their places."""
    batch: dict[str, Any] = {}
    for (*folders, key), tensor in tensors.items():
        place = batch
        for folder in folders:
            place = place.setdefault(folder, {})
        place[key] = tensor
    return batch


def _read_generators() -> tuple[Any, ...]:
    """Return the states of the random number generators of Python and numpy."""
    name, keys, *rest = np.random.get_state(legacy=True)
    return random.getstate(), name, np.asarray(keys).tobytes(), rest
