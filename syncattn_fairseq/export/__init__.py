"""Export of models as plain Transformers, for fairseq itself and for other programs."""

from .. import plugin  # noqa: F401  (registers the models, and is the first to import fairseq)
from .pipeline import FORMATS, export

__all__ = ["FORMATS", "export"]
