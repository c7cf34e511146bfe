"""Models in Python: text in; translations, parses, alignments, distances and heads out."""

from ..data.segmenters import SubwordModel
from .analysis import Analysis
from .answers import Alignment, Distances, Pair, Parse, Sentence, Translation
from .attention_heads import AttentionHeads, HeadName
from .decoding import Decoding
from .load import load
from .model import Model
