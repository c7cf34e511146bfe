"""Format tables of scores, as plain text or for LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .attachment_baselines import describe_baselines
from .measures import BLEU, LEVEL, MEASURES, NONE, format_p, format_signed
from .tables import Tables

if TYPE_CHECKING:
    from .scoring import SystemScore
    from .significance import Significance

_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        NONE: "--",
    }
)
#: Without a width, so that numbers stay in line.
_MARKS = {"better": r"\rlap{$^\dagger$}", "worse": r"\rlap{$^\ddagger$}"}


def tabulate_scores(scores: Mapping[str, SystemScore]) -> list[Tables]:
    """Return a table for each kind of score, with notes on how the scores were computed."""
    systems = {"system": list(scores)}
    length = [f"{s.bleu.length:.1f}" for s in scores.values()]
    sizes = {"length": length, "sentences": [str(score.sentences) for score in scores.values()]}
    notes = ["length: words of the translations, in % of the references'", *describe_scores(scores)]
    tables = [make_table({**systems, **list_score_columns(scores), **sizes}, notes)]
    if any(score.bleu_by_part for score in scores.values()):
        columns = _columns([score.bleu_by_part or {} for score in scores.values()])
        tables.append(make_table(systems | columns, ["BLEU of each test set, and its mean"]))
    if tests := [score.significance for score in scores.values() if score.significance]:
        columns = {BLEU.name: list_score_columns(scores)[BLEU.name], **list_test_columns(tests)}
        tables.append(make_table(systems | columns, describe_tests(tests)))
    if any(score.bleu_by_length for score in scores.values()):
        rows = []
        for score in scores.values():
            buckets = (score.bleu_by_length or {}).items()
            rows.append({f"{words} ({bucket.sentences})": bucket.bleu for words, bucket in buckets})
        columns = _columns(rows)
        note = "BLEU by the number of words in the source (sentences)"
        tables.append(make_table(systems | columns, [note]))
    return tables


def list_score_columns(scores: Mapping[str, SystemScore]) -> dict[str, list[str]]:
    """Return the table columns of all measures, by name, without columns that are empty."""
    numbers = [score.scores for score in scores.values()]
    columns = {m.name: [m.format(row.get(m.name)) for row in numbers] for m in MEASURES}
    return {name: cells for name, cells in columns.items() if {*cells} != {NONE}}


def describe_scores(scores: Mapping[str, SystemScore]) -> list[str]:
    """Return notes on how the scores were computed, and on which sentences."""
    notes = {}
    for name, score in scores.items():
        for measure in MEASURES:
            if signature := score.signatures.get(measure.name):
                notes[", ".join(filter(None, [f"{measure.name} {signature}", measure.note]))] = ""
        target = score.target_attachment
        if target and target.counted:
            notes[
                f"UAS target counts the {100 * target.coverage:.1f} % of the words whose head is "
                "the root or to their left"
            ] = ""
        for side in ("source", "target"):
            baselines = getattr(score, f"{side}_baselines")
            if baselines:
                said = describe_baselines(baselines)
                notes[
                    f"UAS {side} of parses that know no syntax, to compare with (best offset: "
                    f"every parent is so many words farther on): {said}"
                ] = ""
        if score.left_out:
            notes[
                f"{name}: {score.left_out} sentences without UAS, AER or trees, since an unknown "
                "subword hides where their words begin"
            ] = ""
    return list(notes)


def list_test_columns(tests: Sequence[Significance], digits: int = 2) -> dict[str, list[str]]:
    """Return the table columns of tests against a baseline, by name, without empty columns."""
    several = sum(test.p is not None for test in tests) > 1
    columns = {
        "± 95 %": [f"{test.confidence:.{digits}f}" for test in tests],
        "difference": [
            NONE if test.p is None else format_signed(test.difference, digits) for test in tests
        ],
        "p": [format_p(test.p) for test in tests],
        "p Holm": [format_p(test.corrected if several else None) for test in tests],
        "verdict": [test.verdict or NONE for test in tests],
    }
    return {name: cells for name, cells in columns.items() if {*cells} != {NONE}}


def describe_tests(tests: Sequence[Significance]) -> list[str]:
    """Return notes on how outputs were compared, one for each column of `list_test_columns`."""
    notes = ["± 95 %: half the width of the confidence interval, by bootstrap resampling"]
    compared = sum(test.p is not None for test in tests)
    if compared:
        text = f"p: how often chance alone makes so large a difference to {tests[0].baseline}, by "
        text += "paired approximate randomisation"
        notes.append(text + ("; p Holm: corrected for all systems" if compared > 1 else ""))
        name = "p Holm" if compared > 1 else "p"
        notes.append(f"better, worse: {name} < {LEVEL}, for these outputs; other seeds may differ")
    return [*notes, f"BLEU {tests[0].signature}"]


def make_table(columns: Mapping[str, Sequence[str]], notes: Sequence[str]) -> Tables:
    """Make a table with notes from columns given by name."""
    return Tables([[[*columns], *zip(*columns.values(), strict=True)]], notes)


def make_latex(scores: Mapping[str, SystemScore]) -> str:
    """Write the scores of all systems as a LaTeX table; daggers mark better and worse systems.

    A comment says how scores were computed and compared.
    """
    columns = list_score_columns(scores)
    tests = [score.significance for score in scores.values() if score.significance]
    notes = describe_scores(scores)
    if tests:
        notes += [*describe_tests(tests), "dagger: better, double dagger: worse"]
    lines = [
        *(f"% {note}" for note in notes),
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        " & ".join(["system", *columns]) + r" \\",
        r"\midrule",
    ]
    for (name, score), row in zip(scores.items(), zip(*columns.values(), strict=True), strict=True):
        bleu, *others = (cell.translate(_LATEX) for cell in row)
        bleu += _MARKS.get((score.significance and score.significance.verdict) or "", "")
        lines.append(" & ".join([name.translate(_LATEX), bleu, *others]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _columns(rows: Iterable[Mapping[str, float]]) -> dict[str, list[str]]:
    known = list(rows)
    names = dict.fromkeys(name for row in known for name in row)
    return {name: [BLEU.format(row.get(name)) for row in known] for name in names}
