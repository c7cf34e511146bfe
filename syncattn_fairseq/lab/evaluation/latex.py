"""Write a table for a paper, one row per system, in LaTeX with ``booktabs``."""

from __future__ import annotations

from collections.abc import Mapping

from .scoring import SystemScore

_SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
#: Without a width, so that numbers stay in line.
_MARKS = {"better": r"\rlap{$^\dagger$}", "worse": r"\rlap{$^\ddagger$}"}


def latex_table(scores: Mapping[str, SystemScore]) -> str:
    """Write all systems, with a mark if BLEU is better or worse than the baseline's (p < 0.05).

    Empty columns are left out. A comment holds the signatures.
    """
    columns = {
        "BLEU": [f"{s.bleu.score:.2f}{_mark(s)}" for s in scores.values()],
        "chrF": [f"{s.chrf.score:.2f}" for s in scores.values()],
        "RIBES": [f"{s.ribes.score:.2f}" for s in scores.values()],
        "UAS source": [_percent(_uas(s, "source")) for s in scores.values()],
        "UAS target": [_percent(_uas(s, "target")) for s in scores.values()],
        "AER": [_percent(s.alignment.aer if s.alignment else None) for s in scores.values()],
    }
    used = {name: cells for name, cells in columns.items() if any(cell != "--" for cell in cells)}
    lines = [
        *(f"% {line}" for line in _notes(scores)),
        rf"\begin{{tabular}}{{l{'r' * len(used)}}}",
        r"\toprule",
        " & ".join(["system", *used]) + r" \\",
        r"\midrule",
    ]
    for name, *cells in zip(scores, *used.values(), strict=True):
        lines.append(" & ".join([name.translate(_SPECIAL), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _notes(scores: Mapping[str, SystemScore]) -> list[str]:
    notes = []
    for score in scores.values():
        notes += [f"BLEU {score.bleu.signature}", f"chrF {score.chrf.signature}"]
        notes.append(f"RIBES {score.ribes.signature}")
        if score.significance:
            notes.append(
                f"dagger: better than {score.significance.baseline}, double dagger: worse, with "
                "p < 0.05 by paired approximate randomisation, for these outputs, not corrected "
                f"for several systems; other seeds may differ, {score.significance.signature}"
            )
    return list(dict.fromkeys(notes))


def _mark(score: SystemScore) -> str:
    verdict = score.significance and score.significance.verdict
    return _MARKS[verdict] if verdict else ""


def _uas(score: SystemScore, side: str) -> float | None:
    attachment = score.source_attachment if side == "source" else score.target_attachment
    return attachment.uas if attachment and attachment.counted else None


def _percent(fraction: float | None) -> str:
    return "--" if fraction is None else f"{100 * fraction:.2f}"
