"""Stanford CoreNLP (Manning et al., 2014): ``-outputFormat json`` and ``-outputFormat conll``.

Its ``-outputFormat conllu`` is CoNLL-U. Prefer it for languages where a written word is split into
several (French "au"): neither of these two formats keeps the written form.

Call CoreNLP with ``-ssplit.eolonly true``: otherwise it splits lines of the text into several
sentences, which have no single tree. Add ``-tokenize.whitespace true`` to keep the text's words. It
leaves out blank lines.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...base.errors import DataError
from ...base.text import MAX_LINE
from .parsed_sentence import Analysis

#: Half of a character (a lone surrogate), which JSON can write but UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


def read_corenlp_json(lines: Iterable[str], name: str) -> Iterator[Analysis]:
    """Yield the sentences of CoreNLP's JSON output, a file of one or several documents.

    Words are the text's (``originalText``), not the Penn Treebank's (``-LRB-``). The tree comes
    from ``basicDependencies``; a word with two heads, or a link of a word that is not there, leaves
    the sentence without one.

    Raises:
        DataError: a sentence is not what CoreNLP writes; names the line where it begins.
    """
    for number, text in _find_sentences(lines, name):
        try:
            # Not strict: CoreNLP does not escape control characters.
            item = json.loads(text, strict=False)
            if "tokens" in item:
                yield _make_analysis(item)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{name}:{number}: this is not a sentence as CoreNLP writes it "
                f"({_cause(error)}); run CoreNLP with -outputFormat json"
            ) from None


def _cause(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"


def _make_analysis(sentence: dict[str, Any]) -> Analysis:
    words = [
        _text(token.get("originalText") or token["word"]) for token in _items(sentence, "tokens")
    ]
    heads: list[int | None] = [None] * len(words)
    labels = ["_"] * len(words)
    for link in _items(sentence, "basicDependencies"):
        word = _number(link["dependent"])
        if not 1 <= word <= len(words) or heads[word - 1] is not None:
            return Analysis(words)
        heads[word - 1] = _number(link["governor"])
        labels[word - 1] = "_".join(_text(link["dep"]).split()) or "_"
    known = [head for head in heads if head is not None]
    return Analysis(words, known, labels) if len(known) == len(words) else Analysis(words)


def _items(sentence: dict[str, Any], key: str) -> list[dict[str, Any]]:
    items = sentence.get(key, [])
    if not (isinstance(items, list) and all(isinstance(item, dict) for item in items)):
        raise TypeError(f"{key} is not a list of objects")
    return items


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:60]!r} is not text")
    return _SURROGATE.sub("\ufffd", value)


def _number(value: Any) -> int:
    """Return a word's number; ``true``, 2.0 and "2" are not numbers."""
    if type(value) is not int:
        raise TypeError(f"{str(value)[:60]!r} is not a word's number")
    return value


def _find_sentences(lines: Iterable[str], name: str) -> Iterator[tuple[int, str]]:
    """Yield possible sentences, the objects inside the outermost ones, with their lines."""
    depth = number = size = 0
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
                    first, begin, held, size = number, token.start(), [], 0
            elif token[0] == "}":
                depth -= 1
                if depth == 1:
                    yield first, "\n".join([*held, line[begin : token.end()]])
            documents |= depth > 0
        if depth > 1:
            held.append(line[begin:])
            size += len(line) - begin
            if size > MAX_LINE:
                raise DataError(
                    f"{name}:{first}: the sentence has more than {MAX_LINE:,} characters; check "
                    "that CoreNLP wrote the file"
                )
    if depth or not documents:
        raise DataError(
            f"{name}:{max(number, 1)}: the file ends before the JSON document is complete; run "
            "CoreNLP again with -outputFormat json"
        )
