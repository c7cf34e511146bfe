"""Readers for parser output formats; each turns lines into analyses."""

from collections.abc import Callable, Iterable, Iterator

from .columns import CONLLU, CONLLX, CORENLP_CONLL, EDA, EDA_CONLL
from .corenlp import read_corenlp_json
from .parsed_sentence import Analysis
from .stanza_json import read_stanza_json

#: A function that reads a parser's output: it gets the lines of a file, from `read_lines`, and the
#: file's name, and yields the sentences. It holds one sentence at a time and raises `DataError`
#: with the file's name and the line.
Reader = Callable[[Iterable[str], str], Iterator[Analysis]]

FORMATS: dict[str, Reader] = {
    "conllu": CONLLU.read,
    "conllx": CONLLX.read,
    "eda": EDA.read,
    "eda-conll": EDA_CONLL.read,
    "corenlp-json": read_corenlp_json,
    "corenlp-conll": CORENLP_CONLL.read,
    "stanza-json": read_stanza_json,
}

__all__ = ["FORMATS", "Analysis", "Reader"]
