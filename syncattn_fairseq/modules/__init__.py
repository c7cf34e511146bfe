"""Modules that hold parameters and call :mod:`syncattn_fairseq.functional`."""

from .backward_cross_attention import BackwardCrossAttention
from .biaffine_query import BiaffineQuery
from .layer_drop import NumberedLayerDrop
from .parent_weights import ParentWeights
from .syntax_attention import SyntaxAttention

__all__ = [
    "BackwardCrossAttention",
    "BiaffineQuery",
    "NumberedLayerDrop",
    "ParentWeights",
    "SyntaxAttention",
]
