"""Print the contrasts of study/findings.md that several texts have, in NLL.

    python -m study.elsewhere

A contrast in parentheses was not planned there.
"""

import re
from collections.abc import Sequence

from syncattn_fairseq.base.text_tables import markdown_table
from syncattn_lab.evaluation.intervals import Interval
from syncattn_lab.evaluation.measures import NLL, NONE

from .facts import Pair, open_results

#: Files below study/results/planned/, and what their columns are called.
TEXTS = {
    "multi30k_tiny_en_de_3625": "Multi30k, 3,625 pairs",
    "multi30k_tiny_en_de_7250": "Multi30k, 7,250 pairs",
    "atis_en_tr": "ATIS, En-Tr",
    "atis_tr_en": "ATIS, Tr-En",
    "enja_10000": "enja, Ja-En",
    "builtin_en_de": "built-in, En-De",
}
CONTRASTS = (
    ("rotary", "transformer"),
    ("lpsi", "transformer"),
    ("local_attention", "transformer"),
    ("lpsi", "rotary"),
    ("rotary_lpsi", "rotary"),
    ("constant_gate", "lpsi"),
    ("forget_gate", "lpsi"),
    ("synch_mse", "lpsi"),
    ("dbsa", "transformer"),
    ("syncattn", "dbsa"),
    ("pascal", "transformer"),
)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table of contrasts on several texts; the command has no options."""
    rows = [["contrast in NLL", *TEXTS.values()]]
    for ours, theirs in CONTRASTS:
        shown = [_compare(corpus, ours, theirs) for corpus in TEXTS]
        rows.append([f"`{ours}` − `{theirs}`", *shown])
    print(markdown_table(rows))


def _compare(corpus: str, ours: str, theirs: str) -> str:
    """Return a difference, in parentheses if not planned; a dash if a system was not trained."""
    results = open_results(f"planned/{corpus}")
    if not {ours, theirs} <= results.known.keys():
        return NONE
    interval = Pair(results, ours, theirs, NLL).interval()
    text = _format(interval)
    return text if results.find_contrast(ours, theirs) else f"({text})"


def _format(interval: Interval) -> str:
    """Return a signed difference and its interval without leading zeros, as in the page's prose."""
    shown = f"{interval.difference:+.3f} [{interval.low:.3f}, {interval.high:.3f}]"
    return re.sub(r"\b0\.", ".", shown).replace("-", "−")


if __name__ == "__main__":
    main()
