"""Translation models in Python, which also show parses, alignments, distances and attention."""

from ..data.segmenters import SubwordModel
from .analysis import Analysis
from .answers import Alignment, Distances, Pair, Parse, Sentence, Translation
from .attention_heads import AttentionHeads, HeadName
from .decoding import Decoding
from .load import load
from .model import Model
