"""The measures of a system, and the rule for whether two systems differ.

Tables, figures, reports, LaTeX and JSON loop over `MEASURES`: a new score is a new entry.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from syncattn_fairseq.base.errors import DataError

from .translation import TranslationScore, score_chrf, score_ribes

Verdict: TypeAlias = Literal["better", "worse", "the same", "not known"]
#: Below this p, a difference is not put down to chance.
LEVEL = 0.05
#: Stands in tables for what is not known.
NONE = "–"


@dataclass(frozen=True)
class Measure:
    """A score or loss of a system, with a name in tables, a place in results, and a unit.

    Attributes:
        name: the name in tables and in files of results.
        key: where the value is in the JSON of ``syncattn-score``, or in a cell of results, with
            dots between names.
        compute: computes the score of translations, from references and the name of a tokenizer;
            None: the value comes from counts that are made for other purposes, too.
        factor: what the value at `key` is multiplied by for tables.
        digits: the digits after the point of means over seeds; a single score has one more.
        higher_is_better: whether a higher value is better.
        tested: what the measure is tested over: ``sentences`` of two outputs, ``seeds`` of two
            systems, or both.
        unit: the unit of its values, if it is not points or per cent.
        per_word: whether the value in a cell, which is per subword, is converted to one per word,
            so that systems with different subwords can be compared.
        note: a footnote for the measure's column.
    """

    name: str
    key: str
    compute: Callable[[Sequence[str], Sequence[str], str], TranslationScore] | None = None
    factor: float = 1
    digits: int = 1
    higher_is_better: bool = True
    tested: Collection[str] = ()
    unit: str = ""
    per_word: bool = False
    note: str = ""

    def number(self, parts: Mapping[str, Any]) -> float | None:
        """Return this measure's value in the unit of the tables; None if it was not computed."""
        part: Any = parts
        for name in self.key.split("."):
            part = part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)
        return None if part is None else self.factor * part

    def of_cell(self, cell: Mapping[str, Any]) -> float | None:
        """Return this measure's value in one training's results; None if the value is missing.

        Raises:
            DataError: it is counted per word, but an older version made the cell, which does not
                say how many subwords a word has.
        """
        number: float | None = cell.get("scores", {}).get(self.name, self.number(cell))
        if number is None or not self.per_word:
            return number
        if "subwords_per_word" not in cell:
            raise DataError(
                f"{cell['system']}, seed {cell['seed']}: the results lack subwords_per_word; run "
                "the recipe again with --from score"
            )
        return number * float(cell["subwords_per_word"])

    def by_seed(self, cells: Iterable[Mapping[str, Any]]) -> dict[int, float]:
        """Return this measure's values in the results of trainings, by seed; omit missing ones."""
        numbers = {cell["seed"]: self.of_cell(cell) for cell in cells}
        return {seed: number for seed, number in numbers.items() if number is not None}

    def format(self, number: float | None) -> str:
        """Format a single score for a table; a dash stands for None."""
        return NONE if number is None else f"{number:.{self.digits + 1}f}"


BLEU = Measure("BLEU", "bleu.score", tested=("sentences", "seeds"))
CHRF = Measure(
    "chrF", "chrf.score", lambda ours, gold, _: score_chrf(ours, gold), tested=("seeds",)
)
NLL = Measure(
    "NLL",
    "valid.nll_loss",
    factor=math.log(2),  # fairseq logs bits
    digits=3,
    higher_is_better=False,
    tested=("seeds",),
    unit="nats",
    note="in nats per subword of the validation text",
)
NLL_PER_WORD = replace(
    NLL, name="NLL per word", per_word=True, note="in nats per word of the validation text"
)
MEASURES = [
    BLEU,
    Measure(
        "BLEU, compounds split", "compound_split_bleu.score", note="not to be compared with BLEU"
    ),
    CHRF,
    Measure("RIBES", "ribes.score", score_ribes),
    Measure("UAS source", "source_attachment.uas", factor=100),
    Measure("UAS target", "target_attachment.uas", factor=100),
    Measure("AER", "alignment.aer", factor=100, higher_is_better=False),
    replace(NLL, name="test NLL", key="test.nll_loss", note="in nats per subword of the test text"),
    NLL,
]


def list_compared() -> list[Measure]:
    """List the measures tested over seeds; the most sensitive measure, NLL, comes first."""
    return [measure for measure in reversed(MEASURES) if "seeds" in measure.tested]


def decide(
    difference: float, p: float | None, higher_is_better: bool = True, p_same: float | None = None
) -> Verdict:
    """Return the verdict on a system against its baseline: better, worse, the same or not known.

    Args:
        difference: the system's mean minus the baseline's.
        p: the p of the difference, corrected for all comparisons; None if not tested.
        higher_is_better: whether a higher number is better, as in BLEU, or worse, as in losses.
        p_same: the p of the test for equivalence, corrected in the same way; None if not tested.
    """
    if p is not None and p < LEVEL:
        return "better" if (difference > 0) == higher_is_better else "worse"
    return "the same" if p_same is not None and p_same < LEVEL else "not known"


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct the p-values of several tests by the method of Holm (1979); a p of None stays None.

    If nothing differs, the chance that any corrected p is below .05 is at most 5 %, whether or not
    the tests are independent. Returns the largest of ``(n - i + 1) * p_i``, i up to k, for the k-th
    smallest of n; at most 1.
    """
    corrected: list[float | None] = [None] * len(p_values)
    ranked = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    largest = 0.0
    for rank, (p, index) in enumerate(ranked):
        largest = max(largest, (len(ranked) - rank) * p)
        corrected[index] = min(1.0, largest)
    return corrected


def format_p(p: float | None) -> str:
    """Format a p-value with three digits; never round a smaller p up to `LEVEL`."""
    if p is None:
        return NONE
    if p < 0.0005:
        return "<0.001"
    text = f"{p:.3f}"
    return f"<{text}" if p < LEVEL <= float(text) else text


def say_p(p: float | None) -> str:
    """Format a p-value with its equals or less-than sign, for a sentence: ``p = 0.031``."""
    shown = format_p(p)
    return f"p < {shown[1:]}" if shown.startswith("<") else f"p = {shown}"


def format_signed(number: float, digits: int) -> str:
    """Format a difference with its sign and ``digits`` digits after the point."""
    return f"{number:+.{digits}f}".replace("-", "−")
