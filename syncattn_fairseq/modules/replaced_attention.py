"""Read the weights of a self-attention of PyTorch or of transformers that will be replaced."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ..base.errors import DataError

_PROJECTIONS = ("q_proj", "k_proj", "v_proj")
#: Names of the projections in BERT and its kin.
_OF_BERT = dict(zip(("query", "key", "value"), _PROJECTIONS, strict=True))
#: Attributes of attention with other scores than ours: rotary or relative positions, norms, gates.
_OTHERS = (
    *("relative_attention_bias", "distance_embedding", "rotary_dim", "rotary_embeddings"),
    *("attention_type", "query_global", "q_norm", "num_random_blocks", "num_landmarks"),
)


@dataclass(frozen=True)
class Form:
    """Sizes and weights of another library's self-attention, under the names of this library.

    Attributes:
        width: D, of its input and output.
        dropout: of the attention's probabilities.
        state: weights and biases by the names of :class:`.SyntaxAttention`.
        projects_output: whether it projects its output itself; in BERT, another module does.
        output_dropout: what it drops of its output.
    """

    width: int
    dropout: float
    state: dict[str, Tensor]
    projects_output: bool = True
    output_dropout: float = 0.0


def read_form(attention: Any) -> Form:
    """Read sizes and weights of a self-attention module of PyTorch or of transformers.

    Raises:
        DataError: it computes something else than ordinary attention does, or is not known.
    """
    form = _read_parts(attention, dict(attention.named_children()))
    for name in [name for name in form.state if name.endswith("_proj.weight")]:
        weight = form.state[name]  # whose bias it may lack; Whisper's keys have none
        form.state.setdefault(name.replace("weight", "bias"), weight.new_zeros(weight.size(0)))
    return form


def _read_parts(attention: Any, parts: Mapping[str, nn.Module]) -> Form:
    _refuse_others(attention, parts)
    if isinstance(attention, nn.MultiheadAttention):
        return _read_pytorch(attention)
    if {*_PROJECTIONS, "out_proj"} <= parts.keys() and hasattr(attention, "embed_dim"):
        state = dict(attention.state_dict())
        return Form(attention.embed_dim, _read_rate(attention.dropout), state)
    if _OF_BERT.keys() <= parts.keys():
        return _read_bert(attention)
    if {"c_attn", "c_proj"} <= parts.keys():
        return _read_gpt2(attention)
    raise _reject(
        attention,
        "the names of its projections are unknown, or the module is more than an attention",
    )


def _refuse_others(attention: Any, parts: Mapping[str, nn.Module]) -> None:
    if getattr(attention, "is_cross_attention", False) or "q_attn" in parts:
        raise _reject(attention, "the module is a cross-attention")
    if {"q", "k", "v", "o"} <= parts.keys():
        raise _reject(
            attention, "T5 does not scale its scores, and its layers share their position biases"
        )
    if "self" in parts:
        raise _reject(attention, "the module is a whole block; replace the attention in it, .self")
    usual = getattr(attention, "head_dim", getattr(attention, "attention_head_size", 1)) ** -0.5
    scaling = getattr(attention, "scaling", usual)
    # GPT-2's, whose older releases have no `scaling`.
    other = not getattr(attention, "scale_attn_weights", True) or (
        getattr(attention, "scale_attn_by_inverse_layer_idx", False) and attention.layer_idx > 0
    )
    if other or abs(scaling - usual) > 1e-6:
        raise _reject(attention, "the module scales its scores differently")
    others = ", ".join(name for name in _OTHERS if getattr(attention, name, None) is not None)
    if others:
        raise _reject(attention, f"the module has {others}, which the new heads do not support")


def _read_pytorch(attention: nn.MultiheadAttention) -> Form:
    if not attention._qkv_same_embed_dim or attention.bias_k is not None or attention.add_zero_attn:
        raise _reject(
            attention,
            "the module has kdim, vdim, add_bias_kv or add_zero_attn, which the new heads do not "
            "support",
        )
    state = dict(attention.state_dict())
    for kind in ("weight", "bias"):
        joined = state.pop(f"in_proj_{kind}", None)
        if joined is not None:
            state |= _split(joined, kind)
    return Form(attention.embed_dim, attention.dropout, state)


def _read_bert(attention: Any) -> Form:
    state = {}
    for name, tensor in attention.state_dict().items():
        part, _, kind = name.partition(".")
        if part in _OF_BERT:
            state[f"{_OF_BERT[part]}.{kind}"] = tensor
    query = attention.query
    if query.in_features != query.out_features:
        raise _reject(attention, "the heads together are not as wide as the module's input")
    return Form(query.in_features, _read_rate(attention.dropout), state, projects_output=False)


def _read_gpt2(attention: Any) -> Form:
    parts = attention.state_dict()
    weight = parts["c_attn.weight"].T  # of a Conv1D, (in, out)
    width = weight.size(1)
    state = _split(weight, "weight") | _split(parts["c_attn.bias"], "bias")
    state |= {"out_proj.weight": parts["c_proj.weight"].T, "out_proj.bias": parts["c_proj.bias"]}
    dropout, of_output = (_read_rate(x) for x in (attention.attn_dropout, attention.resid_dropout))
    return Form(width, dropout, state, output_dropout=of_output)


def _split(joined: Tensor, kind: str) -> dict[str, Tensor]:
    parts = zip(_PROJECTIONS, joined.chunk(3), strict=True)
    return {f"{name}.{kind}": part for name, part in parts}


def _read_rate(dropout: Any) -> float:
    return float(getattr(dropout, "p", dropout))


def _reject(attention: Any, reason: str) -> DataError:
    return DataError(f"{type(attention).__name__}: this attention cannot be replaced: {reason}")
