"""The base class of a model's syntactic parts."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ..data.fields import NOTHING, SourceFields


@dataclass
class NoOptions:
    """No options."""


class Part:
    """A syntactic part of a Transformer, such as a kind of attention head.

    The model gathers the options, checks and required data fields of all registered parts
    (:func:`.registry.register_part`), whether they are in use or not.
    """

    #: Its options, a dataclass; added to the command line and to hydra's configuration. Its fields
    #: are made by :func:`..base.options.option`, or have ``help`` in their metadata.
    Options: ClassVar[type] = NoOptions

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise ``DataError`` for options that are impossible or contradict each other.

        Args:
            cfg: fairseq's ``TransformerConfig``, which also has the options of all parts.
        """

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Return what it needs to know about the source's parse; nothing if not in use."""
        return NOTHING

    def start_plain(self) -> bool:
        """Set the parameters so that it computes what a plain Transformer does in its place.

        Returns:
            Whether it does; if not, the parameters may keep their initial values.
        """
        return False
