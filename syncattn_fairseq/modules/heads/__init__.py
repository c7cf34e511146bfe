"""Kinds of attention heads, one file each; importing this package registers them.

A new kind is a subclass of :class:`Heads` under :func:`register_part`: either a new file and a
line here, or a file in a user's own ``--user-dir``.
"""

from .constant_gate import ConstantGateHeads
from .dependency import DependencyHeads
from .distance_bias import DistanceBiasHeads
from .forget_gate import ForgetGateHeads
from .gated import GatedHeads
from .heads import Heads, Place, Scope
from .parent_scaled import ParentScaledHeads
from .relative_depth import RelativeDepthHeads
from .shuffled_gate import ShuffledGateHeads
from .supervised_gate import SupervisedGateHeads
from .window import WindowHeads

__all__ = [
    "ConstantGateHeads",
    "DependencyHeads",
    "DistanceBiasHeads",
    "ForgetGateHeads",
    "GatedHeads",
    "Heads",
    "ParentScaledHeads",
    "Place",
    "RelativeDepthHeads",
    "Scope",
    "ShuffledGateHeads",
    "SupervisedGateHeads",
    "WindowHeads",
]
