"""Models out of fairseq: as plain Transformers, for fairseq itself and for other programs."""

from .export import FORMATS, export

__all__ = ["FORMATS", "export"]
