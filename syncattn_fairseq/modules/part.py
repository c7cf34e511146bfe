"""The base class of a model's syntactic parts, their registry, and the places of heads."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from torch import Tensor

from ..base.errors import DataError
from ..base.option_fields import add_named
from ..data.fields import NOTHING, SourceFields
from .batch_view import BatchView


@dataclass
class NoOptions:
    """The empty option class, for a syntactic part without options."""


class Part:
    """A syntactic part of a Transformer, such as a kind of attention head.

    The model gathers the options, checks and required data fields of all registered parts
    (:func:`register_part`), whether they are in use or not.

    Attributes:
        view: the batch, where the part is an attention, or some of its heads or its positions.
    """

    view: BatchView

    #: The part's options, a dataclass, which is added to the command line and to hydra's
    #: configuration. Its fields are made by :func:`.base.option_fields.option`, or have ``help`` in
    #: their metadata.
    Options: ClassVar[type] = NoOptions

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise ``DataError`` for impossible or contradictory options.

        ``cfg`` is fairseq's ``TransformerConfig``, which also has the options of all parts.
        """

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Return the batch fields, made from the source's parse, that the part reads, if in use."""
        return NOTHING

    def share(self, name: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """Return a tensor that several layers share, computed once per batch by the first caller.

        It is shared among parts of this one class, not with its subclasses or with other classes,
        which may have tensors of the same name. It has no gradient.

        Args:
            name: identifies the tensor among those of the class: everything that it depends on
                besides the batch, such as a tuple of options and sizes.
            make: computes the tensor.
        """
        return self.view.share(type(self), name, make)

    def start_plain(self) -> bool:
        """Make the part compute like a plain Transformer; return whether the part can."""
        return False


#: The registered syntactic parts by name, in the order in which their options are listed.
PARTS: dict[str, type[Part]] = {}

P = TypeVar("P", bound=type[Part])


def register_part(name: str) -> Callable[[P], P]:
    """Return a decorator that registers a syntactic part by name, in a ``--user-dir`` too.

    Raises:
        DataError: the name, or the name of an option, is taken.
    """

    def register(part: P) -> P:
        others = dict(PARTS)
        add_named(PARTS, name, part, "syntactic part")
        own = {option.name for option in fields(part.Options)}
        for other_name, other in others.items():
            shared = own & {option.name for option in fields(other.Options)}
            if shared and other.Options is not part.Options:
                del PARTS[name]
                raise DataError(
                    f"{name}: {other_name} already has an option {min(shared)}; choose another name"
                )
        return part

    return register


@dataclass(frozen=True)
class Slot:
    """Place of a group of neighbouring heads in an attention layer, or of all its heads.

    Attributes:
        side: ``encoder`` or ``decoder`` for self-attention, or ``cross`` for the decoder's
            attention to the source.
        layer: counted from 1 at the bottom, in the model as it was trained.
        numbers: the numbers of the heads in the layer, counted from 0.
        total: H, the number of heads of the layer.
        head_dim: d, the width of a head.
        view: the batch; for ``cross``, the decoder's.
    """

    side: str
    layer: int
    numbers: range
    total: int
    head_dim: int
    view: BatchView

    @property
    def count(self) -> int:
        """The number of heads in the group."""
        return len(self.numbers)

    @property
    def embed_dim(self) -> int:
        """D, the width of the layer's input."""
        return self.total * self.head_dim
