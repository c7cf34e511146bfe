"""Modules that hold parameters and call :mod:`syncattn_fairseq.functional`."""

from .backward_cross_attention import BackwardCrossAttention
from .biaffine_query import BiaffineQuery
from .gru import gru_step
from .layer_drop import NumberedLayerDrop
from .parent_weights import ParentWeights
from .source_attention import (
    FlexibleAttention,
    GlobalAttention,
    LocalAttention,
    PositionPredictor,
    Source,
    SyntaxDirectedAttention,
)
from .syntax_attention import SyntaxAttention
from .tree_cross_attention import TreeCrossAttention

__all__ = [
    "BackwardCrossAttention",
    "BiaffineQuery",
    "FlexibleAttention",
    "GlobalAttention",
    "LocalAttention",
    "NumberedLayerDrop",
    "ParentWeights",
    "PositionPredictor",
    "Source",
    "SyntaxAttention",
    "SyntaxDirectedAttention",
    "TreeCrossAttention",
    "gru_step",
]
