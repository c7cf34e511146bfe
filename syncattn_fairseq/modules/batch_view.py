"""The current batch's tokens, padding and parse fields, for attention modules."""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..base.errors import DataError


class BatchView:
    """The current batch, shared by all attention modules of an encoder or decoder.

    fairseq's layers pass on states and masks only. So all modules of an encoder or a decoder share
    one view, which is filled at the beginning of each forward pass. It stays filled afterwards: a
    layer with activation checkpointing runs again in the backward pass and must see the same batch.

    Attributes:
        tokens: ``(B, T)``, the source's in an encoder, the target's in a decoder.
        padding_mask: ``(B, T)``, True = padding.
        observed: the names of the tensors of heads that a loss or a printer reads
            (:attr:`.Heads.exposes`).
    """

    tokens: Tensor
    padding_mask: Tensor
    observed: Collection[str] = ()

    def __init__(self) -> None:
        #: The number of batches stored so far.
        self.fills = 0
        self._fields: dict[str, Tensor] = {}
        self._shared: dict[tuple[type, Hashable], Tensor] = {}

    def fill(
        self, tokens: Tensor, padding_mask: Tensor, fields: Mapping[str, Tensor | None]
    ) -> None:
        """Store a new batch in place of the last one.

        Args:
            tokens: ``(B, T)``.
            padding_mask: ``(B, T)``, True = padding.
            fields: further tensors of ``net_input``, by name; None counts as absent.
        """
        self.fills += 1
        self.tokens = tokens
        self.padding_mask = padding_mask
        self._fields = {name: field for name, field in fields.items() if field is not None}
        self._shared.clear()

    def watch(
        self, module: nn.Module, read: Callable[..., tuple[Tensor, Tensor]] | None = None
    ) -> None:
        """Store a new batch whenever a module, such as an encoder, is called.

        ``read`` returns tokens and padding, given the arguments of the call; by default those that
        stacks of the transformers library get by name, ``input_ids`` and ``attention_mask``.
        """

        def fill(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self.fill(*(read or _read_ids)(*args, **kwargs), {})

        module.register_forward_pre_hook(fill, with_kwargs=True)

    def get(self, field: str) -> Tensor | None:
        """Return a tensor of the batch's ``net_input`` by name, or None if the batch lacks it."""
        return self._fields.get(field)

    def require(self, field: str, reader: str) -> Tensor:
        """Return a tensor of ``net_input`` by name, or raise `DataError` if the batch lacks it.

        ``reader`` names who reads it, such as "parent-scaled heads", for the message.
        """
        return require_field(self._fields.get(field), field, reader)

    def share(self, kind: type, name: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """Return a tensor computed once per batch for all syntactic parts of one class.

        See :meth:`.Part.share`.
        """
        if (kind, name) not in self._shared:
            with torch.no_grad():
                self._shared[kind, name] = make()
        return self._shared[kind, name]


def number_tokens(padding_mask: Tensor) -> Tensor:
    """Number the tokens of each sentence from 0, whether padding is on the left or the right.

    Args:
        padding_mask: ``(B, T)``, True = padding.

    Returns:
        ``(B, T)``, whole numbers; padding before a sentence also has 0.
    """
    return ((~padding_mask).cumsum(1) - 1).clamp_min(0)


def _read_ids(
    input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any
) -> tuple[Tensor, Tensor]:
    seen = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    return input_ids, seen == 0


def require_field(tensor: Tensor | None, field: str, reader: str) -> Tensor:
    """Return a tensor of ``net_input``, or raise `DataError` if it is None (absent).

    ``field`` is its name. See :meth:`BatchView.require`.
    """
    if tensor is None:
        raise DataError(
            f"the batch lacks net_input.{field}, which the model needs for its {reader}; train "
            "and decode with --task translation_with_syntax"
        )
    return tensor
