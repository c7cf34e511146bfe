"""Ways to encode positions in attention heads, with a file for each.

Importing this package registers them. ``--positions`` chooses one for all layers of encoder and
decoder, whatever the kinds of their heads. A new one is a subclass of :class:`Positions` under
:func:`register_positions`, here or in a user's own ``--user-dir``.
"""

from .alibi import AlibiPositions
from .bias import BiasPositions
from .marian import MarianEmbedding, MarianPositions, marian_table
from .positions import (
    POSITIONS,
    AbsolutePositions,
    NoPositions,
    Order,
    Positions,
    offsets,
    register_positions,
)
from .rotary import InterleavedPositions, RotaryPositions
