"""Stanford CoreNLP (Manning et al., 2014): ``-outputFormat json`` and ``-outputFormat conll``.

Its ``-outputFormat conllu`` is CoNLL-U, and to be preferred where words are split that are written
as one (French "au"): neither of these two formats says how they were written.

CoreNLP is to be called with ``-ssplit.eolonly true``, or else it cuts lines of the text into
several sentences, which then have no single tree; and with ``-tokenize.whitespace true`` to keep
the words of the text. It leaves blank lines out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...base.errors import DataError
from .analysis import Analysis
from .table import Table

CORENLP_CONLL = Table("of CoreNLP -outputFormat conll", "\t", form=1, head=5, label=6, columns=7)

_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


def read_corenlp_json(lines: Iterable[str], name: str) -> Iterator[Analysis]:
    """Yield the sentences of one JSON document, or of several in one file.

    Words are those of the text (``originalText``), not those of the Penn Treebank (``-LRB-``). The
    tree is that of the ``basicDependencies``.

    Raises:
        DataError: naming the line where a sentence begins that is not as CoreNLP writes it.
    """
    for number, text in _sentences(lines, name):
        try:
            # Not strict: CoreNLP leaves control characters as they are.
            item = json.loads(text, strict=False)
            if "tokens" in item:
                yield _analysis(item)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise DataError(
                f"{name}:{number}: not a sentence of CoreNLP's ({type(error).__name__}: {error}); "
                "write it with -outputFormat json"
            ) from None


def _analysis(sentence: dict[str, Any]) -> Analysis:
    words = [token.get("originalText") or token["word"] for token in sentence["tokens"]]
    heads: list[int | None] = [None] * len(words)
    labels = ["_"] * len(words)
    for link in sentence.get("basicDependencies", ()):
        heads[link["dependent"] - 1] = int(link["governor"])
        labels[link["dependent"] - 1] = link["dep"]
    known = [head for head in heads if head is not None]
    return Analysis(words, known, labels) if len(known) == len(words) else Analysis(words)


def _sentences(lines: Iterable[str], name: str) -> Iterator[tuple[int, str]]:
    """Yield what may be a sentence, the objects inside the outermost ones, with their lines."""
    depth = number = 0
    documents = False
    held: list[str] = []
    for number, line in enumerate(lines, 1):
        begin = 0
        # Most lines have no brace; the others may have one in a string.
        tokens = _STRING_OR_BRACE.finditer(line) if "{" in line or "}" in line else ()
        for token in tokens:
            if token[0] == "{":
                depth += 1
                if depth == 2:
                    first, begin, held = number, token.start(), []
            elif token[0] == "}":
                depth -= 1
                if depth == 1:
                    yield first, "\n".join([*held, line[begin : token.end()]])
            documents |= depth > 0
        if depth > 1:
            held.append(line[begin:])
    if depth or not documents:
        raise DataError(
            f"{name}:{max(number, 1)}: the file ends here, but holds no whole JSON document; "
            "write it again with -outputFormat json"
        )
