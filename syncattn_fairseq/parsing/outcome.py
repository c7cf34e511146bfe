"""The outcome of parsing a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# How many failures to keep.
_FAILURES = 5


@dataclass
class ParseReport:
    """Totals for a text or a part of it.

    Attributes:
        sentences: how many lines.
        words: how many words in all of them.
        empty: how many lines have no parse, by reason.
        failures: the first lines on which the parser itself failed: their numbers, and details.
    """

    sentences: int = 0
    words: int = 0
    empty: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)

    def fail(self, line: int, detail: str) -> None:
        """Note that the parser failed on a line."""
        if len(self.failures) < _FAILURES:
            self.failures.append((line, detail))

    def add(self, part: ParseReport) -> None:
        """Add the report on the next part of the text."""
        self.sentences += part.sentences
        self.words += part.words
        self.empty += part.empty
        for failure in part.failures:
            self.fail(*failure)

    def summarise(self) -> str:
        """Summarise in a line: ``3 sentences, 17 words, 1 without a parse (empty line: 1)``."""
        counts = f"{self.sentences:,} sentences, {self.words:,} words, "
        if not self.empty:
            return counts + "all parsed"
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in self.empty.most_common())
        return counts + f"{self.empty.total():,} without a parse ({reasons})"

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ParseReport:
        """Restore a report from its ``vars``, written as JSON."""
        return cls(
            values["sentences"],
            values["words"],
            Counter(values["empty"]),
            [(line, detail) for line, detail in values["failures"]],
        )
