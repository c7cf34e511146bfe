"""The syntactic losses; importing this package registers all of them.

To add a loss, write a file with a subclass of :class:`Term` under :func:`register_term`, and import
it here; or put it into your own ``--user-dir``.
"""

from . import dependency_loss, distances, guided_alignment, sync_attention, tree_planted
from .term import TERMS, Term, register_term
