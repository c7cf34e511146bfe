"""Export of models as plain Transformers, for fairseq itself and for other programs."""

from .. import plugin  # registers the models, and is the first to import fairseq
from .pipeline import FORMATS, export
