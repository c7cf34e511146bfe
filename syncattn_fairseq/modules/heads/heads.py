"""The base class of all kinds of attention heads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from ...data.fields import NOTHING, SourceField, SourceFields
from ...functional._numerics import dot_products
from ..batch_view import BatchView
from ..layer_numbers import CROSS, read_layers
from ..part import Part, Slot
from ..positions.positions import Order

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Shaped


@dataclass
class Scope:
    """Masks, positions, dropout and decoding state of a group of heads in a forward pass.

    :meth:`attend` does all that ordinary heads do. Heads that compute scores of their own turn
    queries and keys with ``order``, normalise the scores with :meth:`softmax`, and use
    :meth:`average`.

    In cross-attention, rows are target tokens and the tokens to see are the source's: ``mask`` and
    ``padding_mask`` are the source's, and nothing is causal.

    Attributes:
        mask: added to the scores; None for nothing.
        padding_mask: of the tokens to see, True = padding; None for none.
        causal: whether queries see nothing to their right.
        dropout: the module that drops attention probabilities.
        state: in incremental decoding, the tensors that these heads carry from step to step, with
            the sentence as first dimension; None otherwise.
        order: how positions enter the scores.
        x: the layer's input; in incremental decoding only the newest token's.
        observed: whether a loss or a printer reads the tensor that these heads expose.
        exposed: the tensor that these heads expose if it is read (:attr:`.Heads.exposes`).
        returns_attention: whether a loss or a printer reads the attention probabilities, as in
            cross-attention.
        attention: the attention probabilities if they are read, in float32 or wider.
            :meth:`average` puts them here; heads that do not call it do so themselves.
    """

    mask: Float[Tensor, "... #rows #tokens"] | None
    padding_mask: Bool[Tensor, "batch tokens"] | None
    causal: bool
    dropout: Any
    state: dict[str, Tensor] | None = None
    order: Order = field(default_factory=Order)
    x: Float[Tensor, "rows batch inputs"] | None = None
    observed: bool = False
    exposed: Float[Tensor, "batch heads ..."] | None = None
    returns_attention: bool = False
    attention: Float[Tensor, "batch heads rows tokens"] | None = None

    def softmax(
        self, scores: Float[Tensor, "batch heads rows tokens"]
    ) -> Float[Tensor, "batch heads rows tokens"]:
        """Return attention probabilities: scores plus masks and position biases, normalised.

        What positions add to scores is added here.
        """
        for addend in (self.order.bias, self.mask):
            if addend is not None:
                scores = scores + addend
        return scores.softmax(dim=-1)

    def average(
        self,
        attention: Float[Tensor, "batch heads rows tokens"],
        value: Float[Tensor, "batch heads tokens outputs"],
    ) -> Float[Tensor, "batch heads rows outputs"]:
        """Return the average of ``value``, weighted by attention probabilities."""
        if self.returns_attention:
            self.attention = attention
        return self.dropout(attention.to(value.dtype)) @ value

    def attend(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        value: Float[Tensor, "batch heads tokens outputs"],
        bias: Float[Tensor, "... #rows #tokens"] | None,
    ) -> Float[Tensor, "batch heads rows outputs"]:
        """Compute attention as ordinary heads do, with ``bias`` added to the scores.

        PyTorch's fused kernel does so, unless somebody reads the probabilities.

        Args:
            query, key: before positions turn them.
            value: the vectors to average.
            bias: an addend to the scores; None for nothing.
        """
        if self.returns_attention:
            scores = dot_products(*self.order.turn(query, key))
            return self.average(self.softmax(scores if bias is None else scores + bias), value)
        mask = self.mask
        for addend in (self.order.bias, bias):
            if addend is not None:
                # CUDA's fused kernels refuse masks whose last dimension is not the innermost.
                addend = addend.to(key.dtype).contiguous()
                mask = addend if mask is None else mask + addend
        query, key = self.order.turn(query.to(key.dtype), key)
        # With --retain-dropout, fairseq's modules drop in decoding, too.
        drops = self.dropout.training or getattr(self.dropout, "apply_during_inference", False)
        p = self.dropout.p if drops else 0.0
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)


class Heads(Part, nn.Module):
    """Base class of an attention layer's heads of one kind; by itself, ordinary heads.

    A kind of head is one class. It defines its options (:class:`Options`) and which values are
    impossible (:meth:`check`), which layers have such heads and how many (:meth:`list_layers`,
    :meth:`count_heads`), what it reads from the batch (:meth:`list_fields`, and :attr:`view` when
    it attends), how it attends (:meth:`attend`, or one of the smaller :meth:`bias` and
    :meth:`rewrite_query`), what it exposes to losses and printers (:attr:`exposes`) and whether it
    could be an ordinary head with other projections (:attr:`folds`).

    A kind may have heads in the self-attention of the encoder, in that of the decoder, and in the
    decoder's attention to the source, ``cross``.

    Args:
        count: h, the number of these heads.
        head_dim: d, the width of a head.
        view: the batch.
    """

    #: The name of this kind of heads in messages: "of which 1 are ... heads".
    title: ClassVar[str] = "ordinary"
    #: The place of these heads in the layer: the ``first``, the ``last`` or those in between.
    rank: ClassVar[str] = "between"
    #: The option for the number of heads, for messages; by default, the option for their layers.
    option: ClassVar[str] = ""
    #: The option that lists the encoder layers with such heads; empty if encoders cannot have any.
    encoder_layers: ClassVar[str] = ""
    #: The option that lists the decoder layers with such heads, or is ``same``: the encoder's.
    decoder_layers: ClassVar[str] = ""
    #: The option that lists the decoder layers whose cross-attention has such heads; empty if
    #: cross-attention cannot have any.
    cross_layers: ClassVar[str] = ""
    #: The options that the constructor takes after ``count``, ``head_dim`` and ``view``, in order.
    arguments: ClassVar[tuple[str, ...]] = ()
    #: The field of the source's parse that these heads read, see :meth:`read`; None for nothing.
    #: A decoder's self-attention cannot read it.
    reads: ClassVar[SourceField | None] = None
    #: The name of the tensor that these heads expose to losses and printers by
    #: :attr:`.Scope.exposed`. The model returns it as ``src_NAME``, ``tgt_NAME`` and, for
    #: cross-attention, ``cross_NAME``. None for nothing.
    exposes: ClassVar[str | None] = None
    #: Whether these heads need a syntactic loss to learn syntax.
    supervised: ClassVar[bool] = False
    #: Whether these are ordinary heads but for :meth:`rewrite_query`, and can be exported as such;
    #: by default, if their class overrides neither :meth:`attend` nor :meth:`bias`.
    folds: bool = True
    #: The attribute of the attention that holds these heads; by default, they are in its ``heads``,
    #: under the name of their kind. It keeps names of parameters that checkpoints have.
    stored_as: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in cls.__mro__:  # the nearest class that says anything about it, mixins included
            if base is Heads or "folds" in vars(base):
                return
            if not {"attend", "bias"}.isdisjoint(vars(base)):
                cls.folds = False
                return

    def __init__(self, count: int, head_dim: int, view: BatchView) -> None:
        super().__init__()
        self.count = count
        self.head_dim = head_dim
        self.view = view

    # ---- where

    @classmethod
    def list_layers(cls, cfg: Any, side: str) -> list[int]:
        """Return the layers with heads of this kind, counted from 1.

        Args:
            cfg: the options of the model.
            side: ``encoder``, ``decoder`` or, only asked of kinds with :attr:`cross_layers`,
                ``cross`` for the decoder's attention to the source.
        """
        option = cls.layer_option(cfg, side)
        return read_layers(cfg, option, "decoder" if side == CROSS else side) if option else []

    @classmethod
    def layer_option(cls, cfg: Any, side: str) -> str:
        """Return the name of the option that lists a side's layers with these heads, if any.

        It is an empty string if there is no such option.
        """
        if side == CROSS:
            return cls.cross_layers
        if side == "decoder" and getattr(cfg, cls.decoder_layers or "", None) == "same":
            return cls.encoder_layers
        return cls.encoder_layers if side == "encoder" else cls.decoder_layers

    @classmethod
    def count_heads(cls, cfg: Any, side: str, free: int) -> int:
        """Return the number of heads of this kind in a layer with ``free`` unassigned heads."""
        return free

    @classmethod
    def build(cls, cfg: Any, slot: Slot) -> Heads:
        """Build a layer's heads of this kind from the model's options."""
        values = (getattr(cfg, name) for name in cls.arguments)
        return cls(slot.count, slot.head_dim, slot.view, *values)

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Return the batch field :attr:`reads`, or none if the model has no heads to read it."""
        sides = ("encoder", CROSS) if cls.cross_layers else ("encoder",)
        if cls.reads is None or not any(cls.list_layers(cfg, side) for side in sides):
            return NOTHING
        return SourceFields(fields=frozenset([cls.reads]))

    # ---- how they attend

    @property
    def fused(self) -> bool:
        """Whether fairseq's own attention may stand in for :meth:`attend` with this batch."""
        return self.folds and not self.observed

    @property
    def observed(self) -> bool:
        """Whether a loss, or printing parses, reads the tensor of these heads for this batch."""
        return self.exposes is not None and self.exposes in self.view.observed

    def read(self) -> Shaped[Tensor, "batch ..."]:
        """Return the batch field :attr:`reads`; raise `DataError` if the batch lacks it."""
        assert self.reads is not None
        return self.view.require(self.reads.name, reader=f"{self.title} heads")

    def rewrite_query(
        self, query: Float[Tensor, "*batch heads rows width"]
    ) -> Float[Tensor, "*batch heads rows width"]:
        """Return projected queries rewritten as these heads use them, by default unchanged.

        This must be affine in each query, `q U + c`: it is also folded into the projection.
        """
        return query

    def attend(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        value: Float[Tensor, "batch heads tokens outputs"],
        scope: Scope,
    ) -> Float[Tensor, "batch heads rows outputs"]:
        """Compute the heads' outputs for all queries, or in incremental decoding for the newest.

        There are as many rows as tokens, or in incremental decoding one: that of the last token. In
        cross-attention, rows are target tokens, and the tokens of keys and values are the source's.

        Args:
            query: rewritten, before positions turn it.
            key: before positions turn it.
            value: what is averaged, of any width.
            scope: what may be seen.
        """
        return scope.attend(query, key, value, self.bias(query, key, scope))

    def bias(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        scope: Scope,
    ) -> Float[Tensor, "... #rows #tokens"] | None:
        """Return these heads' addend to attention scores, or None without an addend."""
        return None

    # ---- what they expose

    @classmethod
    def is_exposed_in_training(cls, cfg: Any) -> bool:
        """Return whether a training loss reads the tensor that these heads store for losses."""
        return cls.exposes is not None


def split_heads(
    projected: Float[Tensor, "tokens batch inputs"], head_dim: int
) -> Float[Tensor, "batch heads tokens {head_dim}"]:
    """Reshape projected states so that attention heads have a dimension of their own."""
    return projected.unflatten(-1, (-1, head_dim)).permute(1, 2, 0, 3)
