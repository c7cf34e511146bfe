"""Tasks, wired to fairseq. Importing this package registers them."""

from . import translation_with_syntax

__all__ = ["translation_with_syntax"]
