"""Attention composed of heads of several kinds."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..base.errors import DataError
from .folded_linear import FoldedLinear
from .heads.heads import Heads, Scope, split_heads
from .positions.positions import Order, Positions
from .replaced_attention import read_form


class HeadGroups(nn.Module):
    """Base class of attention layers composed of groups of heads of several kinds.

    A subclass sets ``num_heads``, ``head_dim``, the projections and the dropout, and then calls
    :meth:`compose`.

    Attributes:
        exposed: what heads exposed of the last batch, by name, ``(B, h, ...)``: what the batch's
            view says is observed (:attr:`.BatchView.observed`).
    """

    num_heads: int
    head_dim: int
    q_proj: Any
    k_proj: Any
    v_proj: Any
    out_proj: Any
    dropout_module: Any
    heads: nn.ModuleDict
    positions: Any
    exposed: dict[str, Tensor]

    def compose(self, heads: dict[str, Heads], positions: Positions | None) -> None:
        """Set the groups of heads that make up the layer, and how the layer encodes positions.

        The arguments are those of :class:`SyntaxAttention`.
        """
        self.heads = nn.ModuleDict()
        self.kinds = tuple(heads)
        #: The attributes of the groups that are not in ``heads`` (:attr:`.Heads.stored_as`).
        self.stored = {name: group.stored_as for name, group in heads.items() if group.stored_as}
        for name, group in heads.items():
            place: nn.Module = self if name in self.stored else self.heads
            place.add_module(self.stored.get(name, name), group)
        self.positions = positions
        self.exposed = {}
        assert sum(group.count for group in heads.values()) == self.num_heads
        if any(type(group).rewrite_query is not Heads.rewrite_query for group in heads.values()):
            self.q_proj = FoldedLinear(self.q_proj, self._rewrite_queries)

    @property
    def groups(self) -> Iterator[tuple[Any, slice]]:
        """The groups of heads in order, each with the slice of the layer's heads that it holds."""
        first = 0
        for name in self.kinds:
            stored = self.stored.get(name)
            group: Any = getattr(self, stored) if stored else self.heads[name]
            yield group, slice(first, first + group.count)
            first += group.count

    def _rewrite_queries(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Fold the heads' operations on queries into the projection, ``(H d, D)`` and ``(H d)``."""
        inputs = weight.unflatten(0, (-1, self.head_dim)).transpose(1, 2)  # (H, D, d)
        constants = bias.view(-1, 1, self.head_dim)
        weights, biases = [], []
        for group, heads in self.groups:
            offset = group.rewrite_query(torch.zeros_like(constants[heads]))
            weights.append(group.rewrite_query(inputs[heads]) - offset)
            biases.append(group.rewrite_query(constants[heads]))
        folded = torch.cat(weights).transpose(1, 2).flatten(0, 1)
        return folded.to(weight.dtype), torch.cat(biases).flatten().to(bias.dtype)

    def _projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Return weight and bias of queries, before they are rewritten, of keys and of values."""
        folds = isinstance(self.q_proj, FoldedLinear)
        query = self.q_proj.plain if folds else (self.q_proj.weight, self.q_proj.bias)
        keys, values = self.k_proj, self.v_proj
        return query, (keys.weight, keys.bias), (values.weight, values.bias)

    def _order(self, rows: int, columns: int, device: torch.device) -> Callable[[slice], Order]:
        """Return a function from a slice of heads to the position information of these heads."""
        if self.positions is None:
            return lambda heads: Order()
        bias = self.positions.bias(rows, columns, device)
        return lambda heads: Order(self.positions, None if bias is None else bias[heads])

    def attend(
        self,
        x: Tensor,
        padding_mask: Tensor | None,
        attn_mask: Tensor | None,
        state: dict[str, Tensor] | None = None,
        causal: bool | None = None,
    ) -> Tensor:
        """Compute self-attention with every group of heads, and project the joined outputs.

        Args:
            x: ``(T, B, D)``, or ``(1, B, D)`` in incremental decoding.
            padding_mask: ``(B, T)``, True = padding.
            attn_mask: ``(T, T)``, or with dimensions for sentences and heads before, added to the
                scores; None if nothing is hidden.
            state: in incremental decoding, what earlier steps left for this one, with the sentence
                as first dimension, so that it can be reordered with the beam; it is updated.
            causal: whether the mask hides what is to the right; by default, if there is a mask.

        Returns:
            Like x.
        """
        if causal is None:
            causal = attn_mask is not None
        if state is None:
            projected = self._project(x)
        else:
            projected = self._project_step(x, state)
            padding_mask = None  # the last token's; decoded tokens have none
        first_query, first_key, _ = projected[0]
        mask = additive_mask(padding_mask, attn_mask, first_query.dtype)
        orders = self._order(first_query.size(2), first_key.size(2), x.device)
        context, _ = self._attend_by_group(projected, x, mask, padding_mask, causal, state, orders)
        return context

    def _attend_by_group(
        self,
        projected: list[tuple[Tensor, Tensor, Tensor]],
        x: Tensor,
        mask: Tensor | None,
        padding_mask: Tensor | None,
        causal: bool,
        state: dict[str, Tensor] | None,
        orders: Callable[[slice], Order],
        returns_attention: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend with each group of heads; return the outputs, and probabilities if asked for.

        Args:
            projected: queries, keys and values of each group.
            x: the layer's input, ``(rows, B, D)``.
            mask, padding_mask, causal, returns_attention: as in :class:`.Scope`.
            state: what earlier steps left, of all groups; None if this is no step.
            orders: position information by heads.
        """
        contexts: list[Tensor] = []
        attentions: list[Tensor] = []
        exposed: defaultdict[str, list[Tensor]] = defaultdict(list)
        by_group = zip(self.kinds, self.groups, projected, strict=True)
        for name, (group, heads), (query, key, value) in by_group:
            scope = Scope(
                _select(mask, heads),
                padding_mask,
                causal,
                self.dropout_module,
                state=None if state is None else _take_own(state, name),
                order=orders(heads),
                x=x,
                observed=group.observed,
                returns_attention=returns_attention,
            )
            contexts.append(group.attend(group.rewrite_query(query), key, value, scope))
            if returns_attention:
                attentions.append(_require_attention(scope, group))
            if scope.exposed is not None:
                exposed[group.exposes].append(scope.exposed)
            if state is not None and scope.state is not None:
                state.update({f"{name}.{field}": kept for field, kept in scope.state.items()})
        self.exposed = {name: _join(heads) for name, heads in exposed.items()}
        context = self.out_proj(_join(contexts).permute(2, 0, 1, 3).flatten(2).contiguous())
        return context, _join(attentions) if returns_attention else None

    def _project(self, x: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return each group's queries, keys and values of whole sentences, ``(T, B, D)``."""
        # One product and one split: fewer kernels, in the gradient too.
        weights, biases = zip(*self._projections(), strict=True)
        joined = F.linear(x.contiguous(), torch.cat(weights), torch.cat(biases))
        counts = [group.count for group, _ in self.groups]
        parts = split_heads(joined, self.head_dim).split(3 * counts, dim=1)
        n = len(counts)
        return list(zip(parts[:n], parts[n : 2 * n], parts[2 * n :], strict=True))

    def _project_step(
        self, x: Tensor, state: dict[str, Tensor]
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return each group's newest query, of x, ``(1, B, D)``, and all keys and values so far.

        Keys and values of earlier steps are in the state, to which the newest ones are added.
        """
        query, key, value = (
            split_heads(F.linear(x, *projection), self.head_dim)
            for projection in self._projections()
        )
        if "prev_key" in state:
            key = torch.cat([state["prev_key"], key], dim=2)
            value = torch.cat([state["prev_value"], value], dim=2)
        state.update({"prev_key": key, "prev_value": value})
        counts = [group.count for group, _ in self.groups]
        return list(zip(*(part.split(counts, dim=1) for part in (query, key, value)), strict=True))


def _select(mask: Tensor | None, heads: slice) -> Tensor | None:
    """Return the part of a mask for a group of heads; a mask may be shared by all heads."""
    differs = mask is not None and mask.dim() == 4 and mask.size(1) > 1
    return mask[:, heads] if mask is not None and differs else mask


def _require_attention(scope: Scope, group: Heads) -> Tensor:
    """Return the attention probabilities stored by heads in their scope."""
    if scope.attention is None:
        raise DataError(
            f"{group.title} heads: a loss or a caller needs their attention probabilities, which "
            "attend() did not keep; let attend() call scope.average or scope.attend, or set "
            "scope.attention"
        )
    return scope.attention


def _take_own(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the fields of a group of heads in the incremental state, without the name prefix."""
    prefix = f"{name}."
    own = [field for field in state if field.startswith(prefix)]
    return {field.removeprefix(prefix): state[field] for field in own}


def _join(heads: list[Tensor]) -> Tensor:
    """Concatenate the tensors ``(B, h, ...)`` of several groups along the attention heads, h."""
    return heads[0] if len(heads) == 1 else torch.cat(heads, dim=1)


class SyntaxAttention(HeadGroups):
    """Multi-head self-attention with heads of several kinds, for programs without fairseq.

    Its parameters have the names of fairseq's.

    Args:
        embed_dim: D.
        heads: the groups by name, in the order of the heads; together, all heads of the layer.
        positions: the position information of the heads; None if it is in the token embeddings,
            or nowhere.
        dropout: of attention probabilities.

    Raises:
        ValueError: the heads do not fill the layer's width.
    """

    def __init__(
        self,
        embed_dim: int,
        heads: dict[str, Heads],
        positions: Positions | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads = sum(group.count for group in heads.values())
        width = sum(group.count * group.head_dim for group in heads.values())
        if width != embed_dim or len({group.head_dim for group in heads.values()}) > 1:
            sizes = " + ".join(f"{group.count} × {group.head_dim}" for group in heads.values())
            raise ValueError(
                f"heads of width {sizes or 0} do not add up to {embed_dim}: all heads must have "
                "the same width, and together the width of the layer"
            )
        self.head_dim = embed_dim // self.num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(embed_dim, embed_dim) for _ in range(4)
        )
        self.dropout_module = nn.Dropout(dropout)
        self.compose(heads, positions)
        #: How many batches the heads' view had stored when this was last called.
        self.fills = 0
        for group, _ in self.groups:
            group.view.observed = {*group.view.observed, *filter(None, [group.exposes])}

    @property
    def parse(self) -> Tensor:
        """The dependency attention of the last batch, ``(B, T, T)``, averaged over heads.

        Rows are dependents, columns are parents.
        """
        return self.exposed["dependency"].mean(1)

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        causal: bool = False,
        state: dict[str, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Compute self-attention for states ``(B, T, D)``.

        Args:
            x: ``(B, T, D)``; in step-by-step decoding only the newest token, ``(B, 1, D)``.
            padding_mask: ``(B, T)``, True = padding.
            causal: whether tokens see nothing to their right.
            state: for step-by-step decoding, a dictionary, empty at first; it is updated.
            mask: added to the scores, broadcasts to ``(B, H, T, T)``; ``causal`` then only says
                whether it hides what is to the right.

        Returns:
            Like x.

        Raises:
            DataError: the view of the heads still has the last batch, or another one.
        """
        self._check_view(x, state is not None)
        if mask is None and causal and state is None:
            mask = x.new_full((x.size(1), x.size(1)), -torch.inf).triu(1)
        return self.attend(x.transpose(0, 1), padding_mask, mask, state, causal).transpose(0, 1)

    def _check_view(self, x: Tensor, step: bool) -> None:
        """Raise `DataError` if the view was not filled since the last call, or does not fit."""
        view = next(self.groups)[0].view
        again = torch._C._current_graph_task_id() >= 0  # activation checkpointing, going backwards
        stale = view.fills == self.fills and not again and not step
        if view.fills and not step and (stale or view.tokens.shape != x.shape[:2]):
            raise DataError(
                "the heads' view describes another batch than the layer's input: call "
                "BatchView.fill before each forward pass, or BatchView.watch once"
            )
        self.fills = view.fills


class _Overridden:
    """Stand-in for a tensor, which keeps PyTorch from computing attention by itself.

    A tensor with functions of its own, as this seems to be, keeps it from doing so.
    """

    @classmethod
    def __torch_function__(cls, *_: Any) -> Any:
        return NotImplemented


class DropInAttention(SyntaxAttention):
    """Replacement of a self-attention in PyTorch's layers or the transformers library.

    In the transformers library, these are the attentions of BART, Marian, M2M100, OPT and Whisper
    (``self_attn``), of BERT and RoBERTa (``attention.self``), of GPT-2 (``attn``), and others of
    the same forms. It decodes step by step from the cache, one token at a time, if all that its
    heads keep are keys and values.

    Args:
        replaced: the attention whose place it takes, and whose projections it copies.
        heads, positions: as for :class:`SyntaxAttention`.
        causal: whether it is a decoder's.

    Raises:
        DataError: the replaced attention is of a form that these heads do not have, as in T5.
    """

    #: False makes PyTorch's layers leave their fast path, which would not call this module.
    batch_first = False
    #: PyTorch's stacks read these attributes of their first layer, and leave their fast path, too.
    in_proj_weight = in_proj_bias = _Overridden()

    def __init__(
        self,
        replaced: Any,
        heads: dict[str, Heads],
        positions: Positions | None = None,
        causal: bool = False,
    ) -> None:
        form = read_form(replaced)
        super().__init__(form.width, heads, positions, form.dropout)
        self.causal = causal
        self.layer_idx = getattr(replaced, "layer_idx", None)
        #: Whether sentences are the second dimension of the input and of the output.
        self.time_first = isinstance(replaced, nn.MultiheadAttention) and not replaced.batch_first
        if not form.projects_output:
            self.out_proj = nn.Identity()
        self.output_dropout = nn.Dropout(form.output_dropout)
        self.load_state_dict(form.state, strict=False)

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        *others: Tensor,
        attention_mask: Tensor | None = None,
        attn_mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        past_key_values: Any = None,
        key_value_states: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, None]:
        """Compute attention with the replaced module's interface; return None for probabilities.

        Args:
            hidden_states: ``(B, T, D)``; ``(T, B, D)`` in a layer of PyTorch's that is not
                ``batch_first``; nested, if an ordinary layer before it has made it so.
            attention_mask: the transformers library's, ``(B, 1, T, T)``, added or True = visible.
            attn_mask, key_padding_mask: PyTorch's, ``(T, T)`` or ``(B H, T, T)``, and ``(B, T)``,
                added or True = hidden.
            past_key_values: the transformers library's cache.
            others, key_value_states, encoder_hidden_states: what a cross-attention would attend to,
                which this is not.

        Raises:
            DataError: there is a cache, and more than one token, or heads keep more than it holds;
                or it is in the place of a cross-attention.
        """
        elsewhere = (*others, key_value_states, encoder_hidden_states)
        if any(states is not None and states is not hidden_states for states in elsewhere):
            raise DataError(
                "DropInAttention: this module replaced a cross-attention, but only "
                "self-attention can be replaced; put the cross-attention back"
            )
        if hidden_states.is_nested:
            return self._attend_nested(hidden_states), None
        if self.time_first:
            hidden_states = hidden_states.transpose(0, 1)
        masks = []
        if attention_mask is not None:
            visible = attention_mask.dtype == torch.bool
            masks.append(_as_addend(~attention_mask if visible else attention_mask, hidden_states))
        if attn_mask is not None:
            if attn_mask.dim() == 3:
                attn_mask = attn_mask.unflatten(0, (-1, self.num_heads))
            masks.append(_as_addend(attn_mask, hidden_states))
        if key_padding_mask is not None:
            masks.append(_as_addend(key_padding_mask, hidden_states)[:, None, None])
        mask = sum(masks[1:], masks[0]) if masks else None
        padding = next(self.groups)[0].view.padding_mask if self._knows_batch else None
        if past_key_values is None:
            context = super().forward(hidden_states, padding, self.causal, None, mask)
            context = self.output_dropout(context)
            return context.transpose(0, 1) if self.time_first else context, None
        cache = getattr(past_key_values, "self_attention_cache", past_key_values)
        state = self._read(cache, hidden_states.size(1))
        context = super().forward(hidden_states, None, self.causal, state, mask)
        if state.keys() != {"prev_key", "prev_value"}:
            kept = ", ".join(state.keys() - {"prev_key", "prev_value"})
            raise DataError(
                f"the cache cannot hold {kept}, which these heads keep between steps: pass "
                "use_cache=False"
            )
        cache.update(state["prev_key"][:, :, -1:], state["prev_value"][:, :, -1:], self.layer_idx)
        return self.output_dropout(context), None

    def _attend_nested(self, x: Tensor) -> Tensor:
        """Attend to sentences without padding, as an ordinary layer before this one passes them."""
        lengths = torch.tensor([len(sentence) for sentence in x.unbind()], device=x.device)
        size = int(lengths.max())
        if self._knows_batch:  # which may be padded further
            size = max(size, next(self.groups)[0].view.tokens.size(1))
        padded = x.to_padded_tensor(0.0, (len(lengths), size, x.size(2)))
        padding = torch.arange(size, device=x.device) >= lengths[:, None]
        context, _ = self.forward(padded, key_padding_mask=padding)
        return torch._nested_tensor_from_mask(context, ~padding, mask_check=False)

    @property
    def _knows_batch(self) -> bool:
        return next(self.groups)[0].view.fills > 0

    def _read(self, cache: Any, tokens: int) -> dict[str, Tensor]:
        """Return the cached keys and values of earlier steps; an empty dictionary in the first."""
        if tokens > 1:
            raise DataError(
                "with a cache, these heads read one token at a time: pass use_cache=False"
            )
        if not cache.get_seq_length(self.layer_idx):
            return {}
        layer = cache.layers[self.layer_idx]
        return {"prev_key": layer.keys, "prev_value": layer.values}


def _as_addend(mask: Tensor, like: Tensor) -> Tensor:
    """Convert a mask, True = hidden, to an addend to the scores."""
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -torch.inf)


def additive_mask(
    padding_mask: Tensor | None, attn_mask: Tensor | None, dtype: torch.dtype
) -> Tensor | None:
    """Merge padding mask and attention mask of fairseq into one addend to the scores.

    Padding is hidden by a finite number: in a decoder padded on the left, rows of padding see
    nothing else, and would not be numbers.
    """
    mask = None if attn_mask is None else attn_mask.to(dtype)
    if padding_mask is not None:
        lowest = torch.finfo(dtype).min / 2
        padding = torch.zeros_like(padding_mask, dtype=dtype).masked_fill(padding_mask, lowest)
        mask = padding[:, None, None, :] if mask is None else mask + padding[:, None, None, :]
    return mask
