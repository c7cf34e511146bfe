"""Positions in the token embeddings, or nowhere."""

from .positions import Positions, register_positions


@register_positions("absolute")
class AbsolutePositions(Positions):
    """fairseq's position embeddings, which are added to the tokens': sinusoids, unless learnt."""

    embedded = True


@register_positions("none")
class NoPositions(Positions):
    """No positions; a decoder still sees how many tokens there are to the left of each."""
