"""Dependency heads: parsers whose attention is trained on parses (DBSA, SyncAttn, LISA)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...base.option_fields import option
from ...data.fields import NOTHING, SourceFields
from ...functional._numerics import dot_products
from ...functional.dbsa import biaffine_query
from ...functional.lisa import rectify
from ..batch_view import BatchView
from ..layer_numbers import read_layer
from ..part import Slot, register_part
from .heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class DependencyOptions:
    """Dependency heads (DBSA, LISA): their layers, their number and the form of their scores."""

    encoder_dependency_layer: int = option(
        0, "encoder layer with dependency heads (1 = bottom, 0 = none)"
    )
    decoder_dependency_layer: int = option(
        0, "decoder layer with dependency heads (1 = bottom, 0 = none)"
    )
    dependency_heads: int = option(1, "number of dependency heads in each of these layers")
    dependency_key_bias: bool = option(False, "add a bias for each key to the bi-affine scores")
    encoder_parser: str = option(
        "biaffine",
        "form of the encoder's dependency heads: DBSA's bi-affine form, LISA's parser, "
        "or ordinary heads",
        choices=("biaffine", "lisa", "dot"),
    )
    decoder_parser: str = option(
        "biaffine", "form of the decoder's dependency heads", choices=("biaffine", "dot")
    )
    tgt_dependency_rows: str = option(
        "predicted",
        "token whose parent the decoder's dependency heads look for at each step: the token that "
        "the step predicts, or the token that the step reads",
        choices=("predicted", "input"),
    )


@register_part("dependency")
class DependencyHeads(Heads):
    """Attention heads that attend to each token's parent in the dependency tree.

    ============ ===========================================================================
    ``biaffine`` `Q U Kᵀ / √d` (SyncAttn Eq. 4)
    ``lisa``     the same with leaky-rectified queries and keys (LISA Eq. 2); encoder only
    ``dot``      ordinary heads, trained by a loss
    ============ ===========================================================================

    A bi-affine head is an ordinary head with another query: since `Q U = x (W_Q U) + b_Q U`, U is
    folded into `W_Q` and `b_Q`, and the layer stays on fairseq's fused path; folding costs
    d × d × D per call, whatever the batch. A key bias b is folded in the same way,
    `Q U Kᵀ / √d + b · k = (Q U + √d b) Kᵀ / √d`. Where a loss or a printer wants to see the
    probabilities, as in training, the layer leaves the fused path instead.

    For analysis, in evaluation, the heads can be told where to attend: the batch's
    ``forced_parents``, columns ``(B, T)``, -1 = none, replace the parents that they predict.

    Args:
        parser: the form of the heads, see above.
        key_bias: whether to learn b as well; not for ordinary heads.
        rows_predict: whether row t, which reads `y_{t−1}` and predicts `y_t`, looks for the parent
            of `y_t` (usual) or of `y_{t−1}`.
    """

    Options = DependencyOptions
    title = "dependency"
    rank = "first"
    option = "dependency_heads"
    exposes = "dependency"
    supervised = True

    def __init__(
        self,
        count: int,
        head_dim: int,
        view: BatchView,
        parser: str = "biaffine",
        key_bias: bool = False,
        rows_predict: bool = True,
    ) -> None:
        super().__init__(count, head_dim, view)
        self.rows_predict = rows_predict
        self.parser = parser
        self.folds = parser != "lisa"
        self.weight = self.key_bias = None
        if parser != "dot":
            self.weight = nn.Parameter(torch.empty(count, head_dim, head_dim))
            if key_bias:
                self.key_bias = nn.Parameter(torch.zeros(count, head_dim))
            for matrix in self.weight:  # as fairseq does W_Q
                nn.init.xavier_uniform_(matrix, gain=1 / math.sqrt(2))

    @classmethod
    def list_layers(cls, cfg: Any, side: str) -> list[int]:
        """Return the layer with dependency heads in a list, or an empty list if there is none."""
        layer = read_layer(cfg, f"{side}_dependency_layer", side)
        return [layer] if layer else []

    @classmethod
    def count_heads(cls, cfg: Any, side: str, free: int) -> int:
        """Return ``--dependency-heads``, the number of dependency heads in a layer."""
        return cfg.dependency_heads

    @classmethod
    def build(cls, cfg: Any, slot: Slot) -> DependencyHeads:
        """Build a layer's dependency heads from the model's options."""
        parser = getattr(cfg, f"{slot.side}_parser")
        rows_predict = slot.side == "encoder" or cfg.tgt_dependency_rows == "predicted"
        options = (parser, cfg.dependency_key_bias, rows_predict)
        return cls(slot.count, slot.head_dim, slot.view, *options)

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Return the rule that assigns parents to subwords for training: ``chain`` or ``first``."""
        if not cfg.encoder_dependency_layer:
            return NOTHING
        return SourceFields(frozenset(["first" if cfg.encoder_parser == "lisa" else "chain"]))

    def start_plain(self) -> bool:
        """Make bi-affine heads compute like ordinary ones; return False for LISA's form.

        U becomes the identity and b becomes 0.
        """
        if self.weight is not None and self.folds:
            self.weight.copy_(torch.eye(self.head_dim).expand_as(self.weight))
        if self.key_bias is not None:
            self.key_bias.zero_()
        return self.folds

    @property
    def fused(self) -> bool:
        """Whether fairseq's own attention may stand in for these heads with the current batch."""
        return super().fused and self.view.get("forced_parents") is None

    def rewrite_query(
        self, query: Float[Tensor, "*batch heads rows width"]
    ) -> Float[Tensor, "*batch heads rows width"]:
        """Return queries rewritten for bi-affine scores, or unchanged for heads of LISA's form.

        Bi-affine heads multiply the queries by U, and add √d b if they learn b.

        LISA's heads multiply when they attend, after the leaky rectifier.
        """
        return self._multiply(query) if self.folds else query

    def _multiply(
        self, query: Float[Tensor, "*batch heads rows width"]
    ) -> Float[Tensor, "*batch heads rows width"]:
        if self.weight is None:
            return query
        return biaffine_query(query, self.weight, self.key_bias)

    def attend(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        value: Float[Tensor, "batch heads tokens outputs"],
        scope: Scope,
    ) -> Float[Tensor, "batch heads rows outputs"]:
        """Attend to the parents predicted by the heads, or to the batch's ``forced_parents``.

        The predicted attention is exposed: A, ``(B, h, T, T)`` in float32 or wider, row =
        dependent, column = parent. In a decoder, rows and columns are numbered by the tokens that
        states predict. If they stand for the tokens that states read instead, all move up by one,
        and the end of the sentence, which no state reads, gets a row of zeros.

        Args:
            query, key, value, scope: as for :meth:`.Heads.attend`.
        """
        gold = self.view.get("forced_parents")
        if self.folds and gold is None and not scope.observed:
            return super().attend(query, key, value, scope)
        if self.parser == "lisa":
            query, key = self._multiply(rectify(query)), rectify(key)
        attention = scope.softmax(dot_products(*scope.order.turn(query, key)))
        if scope.observed:
            scope.exposed = attention if self.rows_predict else _move_up(attention, scope)
        if gold is not None:
            at_parent = F.one_hot(gold.clamp_min(0), key.size(2)).unsqueeze(1).to(attention)
            attention = torch.where((gold >= 0)[:, None, :, None], at_parent, attention)
        return scope.average(attention, value)


def _move_up(
    attention: Float[Tensor, "batch heads rows tokens"], scope: Scope
) -> Float[Tensor, "batch heads rows tokens"]:
    """Shift a decoder's attention so that rows and columns follow the tokens read by the states."""
    read = torch.ones_like(attention[:, 0, :, 0])
    if scope.padding_mask is not None:
        read = read.masked_fill(scope.padding_mask, 0.0)
    read = F.pad(read[:, 1:], (0, 1))
    return attention.roll((-1, -1), (-2, -1)) * read[:, None, :, None]
