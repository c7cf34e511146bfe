"""Turn the dependency heads of words into the parents of subwords.

:mod:`.words` says where words begin. The *marks* of a sentence are one integer for each subword:
the head of its word if it is the word's first subword, else `CONTINUATION`.

Rules for a parent (w a word, h its head word; positions are 0-based):

========== =============================================== ===================== ================
rule       parent of a subword of w                        if w is the root      system
========== =============================================== ===================== ================
``chain``  the next subword; of the last one, the first    the next; the last    DBSA, SyncAttn
           subword of h                                    one: itself
``first``  the first subword of h                          its own word's first  LISA
``middle`` the middle position of h, maybe x.5             its own word's middle PASCAL
========== =============================================== ===================== ================
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from .words import check_choice

CONTINUATION = -1
"""Number that marks a subword that is not the first of its word."""
NO_HEAD = -2
"""Number that marks the first subword of a word without a head, as the sentence has no parse."""
NO_TOKEN = -3
"""Number that marks padding and end-of-sentence columns in a batch; it is never on disk."""

RULES = ("chain", "first", "middle")


def find_parents(marks: Tensor, rule: str = "chain") -> Tensor:
    """Return the parent of each subword in a batch, from the dependency heads of words (marks).

    All of it is computed on the device of the marks.

    Args:
        marks: (B, T) integers: a word's first subword carries the word's head (0 = root, k = the
            k-th word of the row) or ``NO_HEAD``, its other subwords ``CONTINUATION``; columns of
            padding, left or right, and of the end of sentence carry ``NO_TOKEN``.
        rule: ``chain``, ``first`` or ``middle`` (see the module's table).

    Returns:
        (B, T) columns of ``marks``: int64 with -1 = no parent for ``chain`` and ``first``, float32
        with NaN = no parent for ``middle``. A head beyond the row's last word (in a truncated
        sentence) gives no parent; the row's last word ends where its tokens end.

    Raises:
        ValueError: the rule is unknown.
    """
    check_choice("rule", rule, RULES)
    marks = marks.long()
    batch, length = marks.shape
    columns = torch.arange(length, device=marks.device).expand(batch, length)
    starts = (marks >= 0) | (marks == NO_HEAD)
    continues = marks == CONTINUATION
    unfinished = torch.nn.functional.pad(continues, (0, 1))[:, 1:]

    # Slot k holds columns of word k. Slot 0 takes the columns that do not matter; the last slot
    # stays empty, for heads far beyond the row's words.
    words = starts.cumsum(dim=1)
    tokens = (starts | continues) & (words > 0)
    slots = marks.new_full((batch, length + 2), -1)
    first = slots.scatter(1, words * starts, columns)
    head = marks.gather(1, first.gather(1, words))  # a column's own slot is never empty
    known = tokens & (head >= 0)
    parent = torch.where(head == 0, words, head.clamp(0, length + 1))
    parent_first = first.gather(1, parent)

    if rule == "middle":
        last = slots.scatter(1, words * (tokens & ~unfinished), columns)
        middle = (parent_first + last.gather(1, parent)).float() / 2
        return middle.masked_fill(~known | (parent_first < 0), float("nan"))
    if rule == "first":
        return parent_first.masked_fill(~known, -1)
    parents = torch.where(head == 0, columns, parent_first)
    return torch.where(unfinished, columns + 1, parents).masked_fill(~known, -1)


def spread_over_subwords(marks: Tensor) -> Tensor:
    """Copy the value (mark) on each word's first subword to all of its subwords, ``(B, T)``."""
    columns = torch.arange(marks.size(1), device=marks.device).expand_as(marks)
    first = columns.masked_fill(marks == CONTINUATION, 0).cummax(dim=1).values
    return marks.gather(1, first)


def mark_subwords(words: Iterable[int], starts: Sequence[bool]) -> list[int]:
    """Return a number per subword: the word's on its first subword, `CONTINUATION` on others."""
    numbers = iter(words)
    return [next(numbers) if start else CONTINUATION for start in starts]


def subword_parents(
    heads: Sequence[int], lengths: Sequence[int], rule: str
) -> list[int] | list[float]:
    """Return the parent position of each subword of a sentence, from the heads of its words.

    Args:
        heads: one 1-based head per word, 0 = root.
        lengths: number of subwords of each word.
        rule: ``chain``, ``first`` or ``middle`` (see the module's table).

    Returns:
        One 0-based subword position per subword; floats, maybe x.5, for ``middle``.

    Raises:
        ValueError: a head is out of range, a length is below 1, the lists differ in length, or the
            rule is unknown.
    """
    if len(heads) != len(lengths):
        raise ValueError(f"{len(heads)} heads but {len(lengths)} words")
    for word, (head, length) in enumerate(zip(heads, lengths, strict=True), 1):
        if not 0 <= head <= len(heads):
            raise ValueError(f"head {head} of word {word} is out of range 0..{len(heads)}")
        if length < 1:
            raise ValueError(f"word {word} has {length} subwords; a word has at least 1")
    marks: list[int] = []
    for head, length in zip(heads, lengths, strict=True):
        marks += [head] + [CONTINUATION] * (length - 1)
    parents: list[int] | list[float] = find_parents(torch.tensor([marks], dtype=torch.long), rule)[
        0
    ].tolist()
    return parents
