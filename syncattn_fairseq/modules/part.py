"""What the model is told about its syntactic parts."""

from typing import Any, ClassVar

from fairseq.dataclass import FairseqDataclass

from ..data.fields import NOTHING, SourceFields


class Part:
    """A syntactic part of a Transformer: a kind of attention head, say.

    The model's options, their checks and what it asks of the data are those of all parts that are
    registered (:func:`.registry.register_part`), whether they are in use or not.
    """

    #: Its options, which the command line and hydra's configuration gain.
    Options: ClassVar[type[FairseqDataclass]] = FairseqDataclass

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise ``ValueError`` for options that are impossible, or do not go together.

        Args:
            cfg: fairseq's ``TransformerConfig``, which has the options of all parts too.
        """

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Return what it asks of the data about the source's parse; nothing if not in use."""
        return NOTHING

    def start_plain(self) -> bool:
        """Make the parameters such that it computes what a plain Transformer does in its place.

        Returns:
            Whether it does; if not, the parameters may be left as they were made.
        """
        return False
