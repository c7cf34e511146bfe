"""The parsers by name; a new parser is a file with a `ParserSource`, and a line here."""

from collections.abc import Mapping

from ..base.errors import DataError
from .external import Command, Eda
from .parser import Parser, ParserSource
from .random_trees import RandomTrees
from .spacy_parser import SpacyModel
from .stanza_parser import StanzaModels

PARSERS: Mapping[str, type[ParserSource]] = {
    "stanza": StanzaModels,
    "spacy": SpacyModel,
    "eda": Eda,
    "command": Command,
    "random": RandomTrees,
}


def open_parser(spec: str) -> Parser:
    """Load the parser named by a text such as ``stanza:en``; nothing is downloaded.

    The spec ``stanza:LANG`` takes Stanza's models from its own folder, ``stanza:LANG:DIR`` from a
    directory; others are the parsers of these names in ``syncattn-parse``.
    """
    return find_parser(spec).open()


def find_parser(spec: str) -> ParserSource:
    """Return the description of the parser named by a text such as ``stanza:en``.

    `DataError`: there is no such parser.
    """
    name, _, rest = spec.partition(":")
    source = PARSERS[name].from_spec(rest) if name in PARSERS else None
    if source is None:
        known = [
            f"{name}:{spec}"
            for name, parser_source in PARSERS.items()
            for spec in parser_source.specs
        ]
        raise DataError(
            f"{spec!r} is not a parser; give {', '.join(known[:-1])} or {known[-1]}, such as "
            "stanza:en"
        )
    return source
