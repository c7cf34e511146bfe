"""Models of other programs as fairseq's checkpoints: the inverse of :mod:`syncattn_fairseq.export`.

A folder of Hugging Face's MarianMT or FSMT becomes a syntax Transformer that computes the same.
"""

from .pipeline import import_model, read_options

__all__ = ["import_model", "read_options"]
