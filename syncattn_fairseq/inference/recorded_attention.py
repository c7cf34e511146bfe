"""Record where every head of a model attends, of any kind, while the model runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from ..base.errors import DataError
from ..modules.syntax_attention import HeadGroups
from .attention_heads import PARTS

#: The kind of heads that attend as fairseq's own do.
ORDINARY = "ordinary"


@dataclass(frozen=True)
class LayerAttention:
    """The attention weights of a layer's heads, and the type of each head, such as ``dependency``.

    Attributes:
        kinds: the kind of each of the H heads, such as ``ordinary`` or ``dependency``.
        attention: ``(B, H, rows, columns)``, rows that sum to 1, or less if the kind of heads does
            not normalise.
    """

    kinds: tuple[str, ...]
    attention: Tensor


@torch.no_grad()
def record_attention(model: Any, net_input: Mapping[str, Any]) -> dict[str, list[LayerAttention]]:
    """Run a model with teacher forcing, and return the attention weights of all its heads.

    Args:
        model: a Transformer of fairseq or of this package, or one of its recurrent models, in
            evaluation mode.
        net_input: what its forward pass takes, ``prev_output_tokens`` ``(B, T)`` among it.

    Returns:
        The layers of each of `PARTS`, from the bottom. Rows and columns are the tokens that
        encoder, ``(B, S)``, and decoder read, with padding.

    Raises:
        DataError: the model has attention of another form.
    """
    found: defaultdict[str, list[LayerAttention]] = defaultdict(list)
    sides = [getattr(model, side) for side in ("encoder", "decoder")]
    with ExitStack() as stack:
        recorders: dict[int, _Recorder] = {}
        for side in sides:
            for attention in _list_attentions(side):
                recorders[id(attention)] = stack.enter_context(_Recorder(attention))
        second = getattr(sides[1], "second_attention", None)
        contexts: list[Tensor] = []
        if second is not None:  # its weights come first in what it returns
            hook = second.register_forward_hook(lambda *call: contexts.append(call[-1][0]))
            stack.callback(hook.remove)
        _, extra = model(features_only=True, **net_input)
    for name, side in zip(PARTS, sides, strict=False):
        for layer in getattr(side, "layers", ()):
            sources: list[LayerAttention] = []
            own = recorders.get(id(getattr(layer, "self_attn", None)))
            if own is not None:
                seen = own.take()
                if getattr(layer, "cross_self_attention", False):  # the source comes first
                    target = seen.attention.size(-2)
                    sources.append(_cut(seen, slice(None, -target)))
                    seen = _cut(seen, slice(-target, None))
                found[name].append(seen)
            other = recorders.get(id(getattr(layer, "encoder_attn", None)))
            if other is not None:
                sources.append(other.take())
            if sources:
                found["cross"].append(_join(sources))
    if not hasattr(sides[1], "layers"):
        every = [extra["attn"][0], *contexts]
        kinds = [_name_source_attention(sides[1].attention)]
        kinds += [_name_source_attention(second)] if contexts else []
        found["cross"].append(LayerAttention(tuple(kinds), torch.stack(every, 1)))
    return {part: found[part] for part in PARTS}


def _list_attentions(side: Any) -> list[Any]:
    """List the attention modules of the layers of an encoder or decoder."""
    modules = []
    for layer in getattr(side, "layers", ()):
        modules += [getattr(layer, name, None) for name in ("self_attn", "encoder_attn")]
    return [module for module in modules if module is not None]


def _cut(layer: LayerAttention, columns: slice) -> LayerAttention:
    return LayerAttention(layer.kinds, layer.attention[..., columns])


def _join(layers: list[LayerAttention]) -> LayerAttention:
    """Return the heads of several attention modules of a layer as those of one."""
    kinds = [kind for layer in layers for kind in layer.kinds]
    return LayerAttention(tuple(kinds), torch.cat([layer.attention for layer in layers], 1))


def _name_source_attention(attention: Any) -> str:
    """Return the name of a recurrent decoder's attention, as ``--source-attention`` has it."""
    name = type(attention).__name__.removesuffix("Attention")
    return {"SyntaxDirected": "syntax-directed"}.get(name, name.lower())


class _Recorder:
    """Context manager that records the attention weights of a module's last call.

    Heads of our own kinds are asked for their probabilities. Where fairseq's attention does the
    work, it attends again, in the way that returns them.
    """

    def __init__(self, attention: Any) -> None:
        self.attention = attention
        self._groups: list[Tensor | None] = []
        self._found: Tensor | None = None

    def __enter__(self) -> Self:
        self._hook = self.attention.register_forward_hook(self._note, with_kwargs=True)
        for group in self._list_groups():
            group.attend = partial(self._note_group, group.attend)
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()
        for group in self._list_groups():
            del group.attend  # the method of its class comes back

    def take(self) -> LayerAttention:
        """Return the attention weights recorded in the module's last call.

        Raises:
            DataError: the module was not called, or did not say where its heads attend.
        """
        if self._found is None:
            name = type(self.attention).__name__
            raise DataError(f"{name}: the attention of these heads cannot be recorded")
        return LayerAttention(self._list_kinds(), self._found)

    def _list_groups(self) -> list[Any]:
        if not isinstance(self.attention, HeadGroups):
            return []
        return [group for group, _ in self.attention.groups]

    def _list_kinds(self) -> tuple[str, ...]:
        if not isinstance(self.attention, HeadGroups):
            return (ORDINARY,) * self.attention.num_heads
        named = zip(self.attention.kinds, self._list_groups(), strict=True)
        kinds = [name for name, group in named for _ in range(group.count)]
        return tuple(kinds)

    def _note_group(
        self, attend: Any, query: Tensor, key: Tensor, value: Tensor, scope: Any
    ) -> Tensor:
        scope.returns_attention = True
        context: Tensor = attend(query, key, value, scope)
        self._groups.append(scope.attention)
        return context

    def _note(self, module: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        if self._groups:
            noted = [attention for attention in self._groups if attention is not None]
            self._found = torch.cat(noted, 1) if len(noted) == len(self._groups) else None
            self._groups = []
            return
        options = {"need_weights": True, "need_head_weights": True, "static_kv": True}
        _, weights = module.forward(*args, **(kwargs | options))
        self._found = None if weights is None else weights.transpose(0, 1)
