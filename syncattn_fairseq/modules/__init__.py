"""Modules with the parameters for :mod:`syncattn_fairseq.functional`; they need only torch."""

from . import heads, positions
from .batch_view import BatchView, number_tokens
from .folded_linear import FoldedLinear
from .label_embedding import LabelEmbedding
from .part import PARTS, register_part
from .recurrent_steps import StepwiseLinear, gru_step
from .source_attention import (
    FlexibleAttention,
    GlobalAttention,
    LocalAttention,
    PositionPredictor,
    Source,
    SourceAttention,
    SyntaxDirectedAttention,
)
from .syntax_attention import DropInAttention, SyntaxAttention
