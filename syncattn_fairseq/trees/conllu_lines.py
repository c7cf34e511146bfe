"""Write dependency trees in CoNLL-U."""

from collections.abc import Iterable, Sequence
from itertools import repeat

#: Lemma, both parts of speech and features of a word that nothing is known about.
UNKNOWN = ("_", "_", "_", "_")


def format_conllu(
    words: Sequence[str],
    heads: Iterable[int],
    labels: Iterable[str],
    morphology: Iterable[Sequence[str]] | None = None,
    number: int | None = None,
) -> str:
    """Return a sentence as CoNLL-U, including the blank line after it.

    Args:
        words, heads, labels: its words, their 1-based heads, 0 = root, and relations to these.
        morphology: lemma, both parts of speech and features of each word; None: unknown.
        number: its ``sent_id``; None: it has none.
    """
    rows = [] if number is None else [f"# sent_id = {number}"]
    rows.append(f"# text = {' '.join(words)}")
    columns = zip(words, morphology or repeat(UNKNOWN), heads, labels)  # noqa: B905  (repeat)
    for index, (word, known, head, label) in enumerate(columns, 1):
        rows.append("\t".join([str(index), word, *known, str(head), label, "_", "_"]))
    return "\n".join(rows) + "\n\n"
