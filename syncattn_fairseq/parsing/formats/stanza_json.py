"""Stanza's own JSON (Qi et al., 2020): the output of ``doc.to_dict()`` and ``str(doc)``.

A file has documents, each on a line or indented as ``str(doc)`` is. A document is a list of
sentences, and a sentence one of words, and of tokens that stand for several words: their ``id`` has
the first and the last one.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...base.errors import DataError
from ...base.text import MAX_LINE
from .parsed_sentence import Analysis, Surface

_REMEDY = "write str(doc), or json.dumps(doc.to_dict()) on a line"


def read_stanza_json(lines: Iterable[str], name: str) -> Iterator[Analysis]:
    """Yield the sentences of the documents in a file of Stanza's JSON.

    Raises:
        DataError: a document is not what Stanza writes; names the line where it begins.
    """
    for number, text in _find_documents(lines, name):
        try:
            document = json.loads(text)
            yield from map(_make_analysis, _check(document, list))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            cause = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            raise DataError(
                f"{name}:{number}: this is not a document of Stanza ({cause}); {_REMEDY}"
            ) from None


def _find_documents(lines: Iterable[str], name: str) -> Iterator[tuple[int, str]]:
    held: list[str] = []
    first = size = 0
    for number, line in enumerate(lines, 1):
        if not held and not line.strip():
            continue
        if not held:
            first, size = number, 0
        held.append(line)
        size += len(line)
        if size > MAX_LINE:
            raise DataError(
                f"{name}:{first}: the document has more than {MAX_LINE:,} characters; write "
                "several documents"
            )
        # The last line of one that is indented, or the only line.
        if line.rstrip() == "]" or (len(held) == 1 and line.rstrip().endswith("]")):
            yield first, "\n".join(held)
            held = []
    if held:
        raise DataError(f"{name}:{first}: the document has no end; {_REMEDY}")


def _make_analysis(sentence: Any) -> Analysis:
    words: list[str] = []
    heads: list[int] = []
    labels: list[str] = []
    surface: list[Surface] = []
    for entry in _check(sentence, list):
        numbers, text = _check(entry, dict)["id"], _check(entry["text"], str)
        numbers = numbers if isinstance(numbers, list) else [numbers]
        if len(numbers) == 2:
            first, last = (_check(number, int) for number in numbers)
            if first != len(words) + 1 or last < first:
                raise ValueError(f"the token {first}-{last} follows word {len(words)}")
            surface.append(Surface(text, first - 1, last))
            continue
        if [_check(number, int) for number in numbers] != [len(words) + 1]:
            raise ValueError(f"the word {numbers} follows word {len(words)}")
        words.append(text)
        if "head" in entry:
            heads.append(_check(entry["head"], int))
            labels.append("_".join(_check(entry.get("deprel") or "_", str).split()) or "_")
    if any(token.past > len(words) for token in surface):
        raise ValueError(f"a token ends after word {len(words)}, the last word")
    if len(heads) < len(words):
        return Analysis(words, surface=surface)
    return Analysis(words, heads, labels, surface)


def _check(value: Any, kind: type) -> Any:
    """Return a value if its type is exactly ``kind`` (``true`` is no int), or raise `TypeError`."""
    if type(value) is not kind:
        raise TypeError(f"{str(value)[:60]!r} is not of the type {kind.__name__}")
    return value
