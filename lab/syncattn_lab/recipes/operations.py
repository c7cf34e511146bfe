"""Count the operations of a model: on a GPU, their number decides the time of small batches."""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from syncattn_fairseq.testing import differentiate, make_batch


class _Operations(TorchDispatchMode):
    """Counts the tensor operations that are kernels on a GPU: all but views and allocations."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Run an operation, and count it unless it is a view or an allocation."""
        free = func.is_view or func._schema.name.startswith(("aten::empty", "aten::new_empty"))
        self.count += not free
        return func(*args, **(kwargs or {}))


def count_operations(model: Any) -> int:
    """Return the number of operations in a forward and backward pass over a small batch."""
    batch = make_batch(model, [0, 1, 2])
    with _Operations() as operations:
        differentiate(model, batch)
    return operations.count
