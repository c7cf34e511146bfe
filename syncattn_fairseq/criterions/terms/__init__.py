"""The syntactic losses, one file each; importing this package registers them.

A new loss is a new file with a subclass of :class:`Term` under :func:`register_term`, and a line
here; or neither here but in a user's own ``--user-dir``.
"""

from . import dependency, distances, sync_attention
from .term import TERMS, Term, register_term

__all__ = ["TERMS", "Term", "dependency", "distances", "register_term", "sync_attention"]
