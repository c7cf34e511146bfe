"""Parse sentences split into subwords."""

from collections.abc import Sequence

from ..base.errors import BadParse
from ..data.parses import check_tree
from ..data.spans import check_spans
from ..data.words import RAW, is_raw, join_subwords, join_text
from .parser import Parse, Parser


def parse_subwords(
    parser: Parser, sentences: Sequence[Sequence[str]], scheme: str
) -> list[Parse | None]:
    """Return for each sentence, given as subwords, the parse over its words; None without a parse.

    Parses of raw sentences are checked to be trees, and have spans.

    Args:
        parser: the parser, which splits raw sentences into words itself if it can.
        sentences: the subwords of each sentence.
        scheme: how the subwords are marked, see :func:`..data.words.find_word_starts`.
    """
    if not is_raw(scheme):
        return parser([join_subwords(tokens, scheme) for tokens in sentences])
    texts = [join_text(tokens, scheme) for tokens in sentences]
    parses = parser.parse_raw(texts, scheme.removeprefix(RAW))
    return [
        parse if parse and _fits(parse, text) else None
        for parse, text in zip(parses, texts, strict=True)
    ]


def _fits(parse: Parse, text: str) -> bool:
    try:
        check_tree(parse.heads)
        check_spans(parse.spans, len(text))
    except BadParse:
        return False
    return len(parse.spans) == len(parse.heads)
