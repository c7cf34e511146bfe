"""Models in Python: text in; translations, parses, alignments and distances out."""

from ..data.segmenters import SubwordModel
from .analysis import Analysis
from .answers import Alignment, Distances, Pair, Parse, Sentence, Translation
from .decoding import Decoding
from .load import load
from .model import Model
