"""Classes of attention heads, one for each kind; importing this package registers them.

A new kind is a subclass of :class:`Heads` under :func:`register_part`: either a new file and a
line here, or a file in a user's own ``--user-dir``.
"""

from ..part import Slot
from .dependency import DependencyHeads
from .gated import GatedHeads
from .heads import Heads, Scope
from .parent_scaled import ParentScaledHeads

# isort: split
# Kinds are listed in the order of these imports: the papers' first, then what they are compared to.
from .controls.constant_gate import ConstantGateHeads
from .controls.dasa import DasaHeads
from .controls.distance_bias import DistanceBiasHeads
from .controls.forget_gate import ForgetGateHeads
from .controls.shuffled_gate import ShuffledGateHeads
from .controls.supervised_gate import SupervisedGateHeads
from .controls.window import WindowHeads

# isort: split
# Kinds of the decoder's attention to the source.
from .backward import BackwardHeads
from .tree_window import TreeWindowHeads
