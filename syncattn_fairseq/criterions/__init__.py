"""The criterion. Importing this package registers it with fairseq."""

from . import label_smoothed_cross_entropy_with_syntax

__all__ = ["label_smoothed_cross_entropy_with_syntax"]
