"""Modules that hold parameters and call :mod:`syncattn_fairseq.functional`."""

from .backward_cross_attention import BackwardCrossAttention
from .biaffine_query import BiaffineQuery
from .dependency_attention import DependencyAttention
from .layer_drop import NumberedLayerDrop

__all__ = ["BackwardCrossAttention", "BiaffineQuery", "DependencyAttention", "NumberedLayerDrop"]
