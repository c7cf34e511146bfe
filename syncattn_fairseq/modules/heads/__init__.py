"""Kinds of attention heads, one file each; importing this package registers them.

A new kind is a subclass of :class:`Heads` under :func:`register_part`: either a new file and a
line here, or a file in a user's own ``--user-dir``.
"""

from .dependency import DependencyHeads
from .gated import GatedHeads
from .heads import Heads, Scope, States
from .parent_scaled import ParentScaledHeads
from .relative_depth import RelativeDepthHeads
from .supervised_gate import SupervisedGateHeads
from .window import WindowHeads

__all__ = [
    "DependencyHeads",
    "GatedHeads",
    "Heads",
    "ParentScaledHeads",
    "RelativeDepthHeads",
    "Scope",
    "States",
    "SupervisedGateHeads",
    "WindowHeads",
]
