"""Format tables of scores, as plain text or Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...base.text_tables import format_table

if TYPE_CHECKING:
    from .scoring import SystemScore


def format_scores(scores: Mapping[str, SystemScore]) -> str:
    """Format tables of everything that was measured, each followed by notes that say how."""
    tables = [
        _format_main_table(scores),
        _part_table(scores),
        _format_compound_table(scores),
        _format_significance(scores),
        _format_lengths(scores),
    ]
    return "\n\n".join(table for table in tables if table)


def _format_main_table(scores: Mapping[str, SystemScore]) -> str:
    measures = ["BLEU", "length", "chrF", "RIBES", "UAS source", "UAS target", "AER"]
    rows = [["system", *measures, "sentences"]]
    notes = ["length: words of the translations, in % of the references'"]
    for name, score in scores.items():
        source, target = score.source_attachment, score.target_attachment
        rows.append(
            [
                name,
                f"{score.bleu.score:.2f}",
                f"{score.bleu.length:.1f}",
                f"{score.chrf.score:.2f}",
                f"{score.ribes.score:.2f}",
                _format_percent(source.uas if source and source.counted else None),
                _format_percent(target.uas if target and target.counted else None),
                _format_percent(score.alignment.aer if score.alignment else None),
                str(score.sentences),
            ]
        )
        notes.append(f"BLEU {score.bleu.signature}")
        notes.append(f"chrF {score.chrf.signature}")
        notes.append(f"RIBES {score.ribes.signature}")
        if target and target.counted:
            notes.append(
                f"UAS target counts the {100 * target.coverage:.1f} % of the words whose head is "
                "the root or to their left"
            )
        if score.left_out:
            notes.append(
                f"{name}: {score.left_out} sentences without UAS or AER, since an unknown subword "
                "hides where their words begin"
            )
    return _add_notes(rows, notes)


def _part_table(scores: Mapping[str, SystemScore]) -> str:
    parts = {name: score.bleu_by_part for name, score in scores.items() if score.bleu_by_part}
    if not parts:
        return ""
    rows = [["system", *next(iter(parts.values()))]]
    rows += [[name, *(f"{score:.2f}" for score in found.values())] for name, found in parts.items()]
    return _add_notes(rows, ["BLEU of each test set, and its mean"])


def _format_compound_table(scores: Mapping[str, SystemScore]) -> str:
    split = {name: score.compound_split_bleu for name, score in scores.items()}
    rows = [[name, f"{score.score:.2f}"] for name, score in split.items() if score]
    notes = [
        f"BLEU {score.signature}, not to be compared with the above"
        for score in split.values()
        if score
    ]
    return _add_notes([["system", "BLEU, compounds split"], *rows], notes) if rows else ""


def _format_significance(scores: Mapping[str, SystemScore]) -> str:
    tested = {name: score.significance for name, score in scores.items() if score.significance}
    if not tested:
        return ""
    rows = [["system", "BLEU", "± 95 %", "difference", "p", ""]]
    for name, result in tested.items():
        rows.append(
            [
                name,
                f"{scores[name].bleu.score:.2f}",
                f"{result.confidence:.2f}",
                "-" if result.p is None else f"{result.difference:+.2f}",
                "-" if result.p is None else f"{result.p:.4f}",
                result.verdict or "",
            ]
        )
    return _add_notes(
        rows,
        [
            "± 95 %: half the width of the confidence interval, by bootstrap resampling",
            f"p: how often chance alone makes so large a difference to {result.baseline}, by "
            "paired approximate randomisation; better, worse: p < 0.05, for these outputs, not "
            "corrected for several systems; other seeds may differ",
            f"BLEU {result.signature}",
        ],
    )


def _format_lengths(scores: Mapping[str, SystemScore]) -> str:
    bucketed = {
        name: score.bleu_by_length for name, score in scores.items() if score.bleu_by_length
    }
    if not bucketed:
        return ""
    buckets = next(iter(bucketed.values()))
    rows = [["system", *(f"{words} ({bucket.sentences})" for words, bucket in buckets.items())]]
    for name, buckets in bucketed.items():
        rows.append([name, *(f"{bucket.bleu:.2f}" for bucket in buckets.values())])
    return _add_notes(rows, ["BLEU by the number of words in the source (sentences)"])


def _add_notes(rows: Sequence[Sequence[str]], notes: Iterable[str]) -> str:
    return "\n".join([format_table(rows), "", *dict.fromkeys(notes)])


def _format_percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.2f}"
