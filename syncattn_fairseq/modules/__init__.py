"""Modules that hold parameters and call :mod:`syncattn_fairseq.functional`."""

from . import heads
from .backward_cross_attention import BackwardCrossAttention
from .batch_view import BatchView
from .folded_linear import FoldedLinear
from .gru import gru_step
from .label_embedding import LabelEmbedding
from .layer_drop import NumberedLayerDrop
from .registry import PARTS, register_part
from .source_attention import (
    FlexibleAttention,
    GlobalAttention,
    LocalAttention,
    PositionPredictor,
    Source,
    SourceAttention,
    SyntaxDirectedAttention,
)
from .stepwise_linear import StepwiseLinear
from .syntax_attention import SyntaxAttention
from .tree_cross_attention import TreeCrossAttention

__all__ = [
    "PARTS",
    "BackwardCrossAttention",
    "BatchView",
    "FlexibleAttention",
    "FoldedLinear",
    "GlobalAttention",
    "LabelEmbedding",
    "LocalAttention",
    "NumberedLayerDrop",
    "PositionPredictor",
    "Source",
    "SourceAttention",
    "StepwiseLinear",
    "SyntaxAttention",
    "SyntaxDirectedAttention",
    "TreeCrossAttention",
    "gru_step",
    "heads",
    "register_part",
]
