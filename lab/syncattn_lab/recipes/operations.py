"""How many operations a model does: on a GPU, their number decides the time of small batches."""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from syncattn_fairseq.testing import differentiate, make_batch


class _Operations(TorchDispatchMode):
    """Counts tensor operations, except views and allocations of memory: on a GPU, the kernels."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Count an operation, and run the operation."""
        free = func.is_view or func._schema.name.startswith(("aten::empty", "aten::new_empty"))
        self.count += not free
        return func(*args, **(kwargs or {}))


def count_operations(model: Any) -> int:
    """Return how many operations forward and backward of a small batch are."""
    batch = make_batch(model, [0, 1, 2])
    with _Operations() as operations:
        differentiate(model, batch)
    return operations.count
