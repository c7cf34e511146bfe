"""Tables of contrasts: differences with intervals, tests and verdicts, with notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from .contrast import Cell, Cells, Contrast
from .differences import Difference, compare
from .measures import BLEU, NLL, NONE, Measure, format_p, list_compared
from .results_file import list_differing, list_provenance
from .sentence_tests import bootstrap_sentences, randomise_sentences
from .tables import Column, Tables, list_meanings, list_tables

Compared: TypeAlias = Mapping[Measure, Sequence[Difference]]
"""The differences of all contrasts in each measure, in the order of the contrasts."""

#: What it means that seeds are blocks.
WITHIN = (
    "each seed is a block: its trainings share initial weights and batches; the residual "
    "deviation is pooled over all systems of similar variance"
)
#: What the names of columns mean.
_SENTENCES = (
    "of the difference in BLEU between these trained models, by randomisation over sentences of "
    "all seeds together"
)
_BOOTSTRAP = "bootstrap over seeds and sentences together, 95 % interval"
_MIXED = "the settings in which the compared trainings differ"


def compare_all(contrasts: Sequence[Contrast], cells: Cells) -> dict[Measure, list[Difference]]:
    """Return the differences of all contrasts, by each measure that is tested over seeds."""
    return {measure: compare(contrasts, cells, measure) for measure in list_compared()}


def tabulate_baselines(contrasts: Sequence[Contrast], cells: Cells) -> Tables:
    """Return a table of each system's difference from its baseline in every tested measure.

    Args:
        contrasts: each system with its baseline. If nothing is known of any, there is no table.
        cells: the results of their systems.
    """
    found = compare_all(contrasts, cells)
    correction = _describe_family(found)
    columns = [Column("system", [contrast.system for contrast in contrasts])]
    for measure, differences in found.items():
        columns += _list_columns(measure, differences, correction, sign="Δ ")
    over_sentences = [_format_sentences(contrast, cells) for contrast in contrasts]
    columns.append(Column("p sentences", over_sentences, _SENTENCES))
    columns.append(_list_mixed(contrasts, cells))
    tables = list_tables(columns)
    if not tables:
        return Tables([], [])
    notes = [*_describe_test(contrasts), *list_meanings(columns), *_describe_blocks(found)]
    return Tables(tables, notes)


def tabulate_plan(contrasts: Sequence[Contrast], cells: Cells) -> Tables:
    """Return a table of planned contrasts in NLL with verdicts, and one of the other measures.

    Args:
        contrasts: all that are planned; those without results are only named in a note.
        cells: the results of their systems.
    """
    found = compare_all(contrasts, cells)
    begun = [one.contrast for one in found[NLL] if one.is_begun]
    shown = {measure: _select(differences, begun) for measure, differences in found.items()}
    correction, sameness = _describe_family(found), _describe_sameness(contrasts)
    names = Column("contrast", [contrast.name for contrast in begun])
    likelihood = [
        names,
        Column("seeds", [_count_seeds(one) for one in shown[NLL]]),
        *_list_columns(NLL, shown[NLL], correction),
        Column("p same", [format_p(one.p_same) for one in shown[NLL]], sameness),
        Column("verdict", [one.conclusion for one in shown[NLL]]),
        _list_mixed(begun, cells),
    ]
    others = [names]
    for measure, differences in shown.items():
        if measure is not NLL:
            others += _list_columns(measure, differences, correction)
    bootstraps = [_format_bootstrap(one, cells) for one in shown[BLEU]]
    others.append(Column("BLEU, other sentences too", bootstraps, _BOOTSTRAP))
    notes = [
        *(_describe_test(begun) if begun else []),
        *list_meanings([*likelihood, *others]),
        *_describe_words(contrasts),
        *_describe_blocks(found),
        *_describe_disagreements(found),
        *list_provenance(_list_cells(contrasts, cells)),
    ]
    if missing := [contrast.name for contrast in contrasts if contrast not in begun]:
        notes.append(f"no results yet: {'; '.join(missing)}")
    return Tables(list_tables(likelihood, others), notes)


def _select(differences: Iterable[Difference], contrasts: Sequence[Contrast]) -> list[Difference]:
    return [one for one in differences if one.contrast in contrasts]


def _list_columns(
    measure: Measure, differences: Sequence[Difference], correction: str, sign: str = ""
) -> list[Column]:
    """Return a measure's columns: difference, interval with seeds as blocks, and p.

    Args:
        measure: what is compared.
        differences: of all rows.
        correction: which tests p is corrected for.
        sign: what stands before the measure's name.
    """
    better = "higher is better" if measure.higher_is_better else "lower is better"
    meaning = f"{measure.note}; {better}" if measure.note else better
    blocks = f"the 95 % interval if {WITHIN}. Welch's test decides"
    return [
        Column(f"{sign}{measure.name}", [one.format() for one in differences], meaning),
        Column("seeds as blocks", [one.format_blocks() for one in differences], blocks),
        Column("p Holm", [format_p(one.p) for one in differences], correction),
    ]


def _list_mixed(contrasts: Iterable[Contrast], cells: Cells) -> Column:
    """Return the column of differences between a contrast's trainings, such as the machine."""
    differing = [list_differing(_list_cells([contrast], cells)) for contrast in contrasts]
    return Column("mixed", [", ".join(names) or NONE for names in differing], _MIXED)


def _list_cells(contrasts: Iterable[Contrast], cells: Cells) -> list[Cell]:
    """Return the results of all trainings of the contrasts' systems."""
    selected = (both for contrast in contrasts for both in contrast.select(cells))
    return [cell for by_seed in selected for cell in by_seed.values()]


def _count_seeds(one: Difference) -> str:
    """Format the number of trainings of both systems, and if incomplete, the planned number."""
    ours, theirs = len(one.ours), len(one.theirs)
    counted = str(ours) if ours == theirs else f"{ours} and {theirs}"
    return counted if one.is_complete else f"{counted} of {len(one.contrast.seeds or ())}"


def _format_sentences(contrast: Contrast, cells: Cells) -> str:
    """Format p over sentences, with the tested seeds if not all could be tested."""
    p, seeds = randomise_sentences(contrast, cells)
    if p is None or len(seeds) == len(contrast.select(cells)[0]):
        return format_p(p)
    noun = "seed" if len(seeds) == 1 else "seeds"
    return f"{format_p(p)} ({noun} {', '.join(map(str, seeds))})"


def _format_bootstrap(one: Difference, cells: Cells) -> str:
    """Format the interval of BLEU over seeds and sentences, if the contrast is complete."""
    interval = bootstrap_sentences(one.contrast, cells) if one.is_complete else None
    return interval.format_ends(BLEU.digits) if interval else NONE


def _describe_family(found: Compared) -> str:
    """Describe the correction of p: the number of tests, and the number of complete contrasts."""
    sizes = sorted({*map(_count_tests, found.values())} - {0})
    said = f"corrected for the family's {' or '.join(map(str, sizes))} contrasts"
    likelihood = found[NLL]
    complete = sum(one.is_counted and one.is_complete for one in likelihood)
    if complete == _count_tests(likelihood):
        return said
    return (
        f"{said}, and {complete} of these contrasts are complete; incomplete contrasts count "
        "with p = 1"
    )


def _count_tests(differences: Iterable[Difference]) -> int:
    return sum(one.is_counted for one in differences)


def _describe_sameness(contrasts: Iterable[Contrast]) -> str:
    margins = [contrast.margin for contrast in contrasts if contrast.margin]
    return (
        f"two one-sided tests that the difference is below {max(margins, default=0):g} nats; by "
        f"Holm's method for all contrasts that have this test ({len(margins)})"
    )


def _describe_test(contrasts: Iterable[Contrast]) -> list[str]:
    """Return notes on the intervals and tests of the contrasts."""
    notes = ["differences: of means over seeds, system − baseline"]
    if any(contrast.by_blocks for contrast in contrasts):
        return [*notes, f"intervals and tests: {WITHIN}"]
    return [f"{notes[0]}, with Welch's 95 % interval and p"]


def _describe_words(contrasts: Iterable[Contrast]) -> list[str]:
    """Return notes on the contrasts whose NLL is counted per word."""
    words = dict.fromkeys(contrast.group for contrast in contrasts if contrast.per_word)
    return [f"NLL of {' and '.join(words)}: per word, since subwords differ"] if words else []


def _describe_blocks(found: Compared) -> list[str]:
    """Describe the variance explained by seeds, and the detectable difference, for each measure."""
    notes = []
    for differences in found.values():
        known = dict.fromkeys((one.measure.name, one.blocks) for one in differences if one.blocks)
        for name, blocks in known:
            notes.append(
                f"{name}, {blocks.seeds} seeds: deviation within seeds {blocks.deviation:.2g} "
                f"({blocks.freedom} d.f.). Seeds explain {100 * blocks.share:.0f} % of the "
                f"variance. A difference of {blocks.detectable():.2g} is shown with 80 % power, "
                "before correction."
            )
    return notes


def _describe_disagreements(found: Compared) -> list[str]:
    """List contrasts in which another measure's interval excludes 0 and NLL's does not agree."""
    said = []
    for number, likelihood in enumerate(found[NLL]):
        row = [differences[number] for differences in found.values()]
        names = [one.measure.name for one in row if one.side not in (0, likelihood.side)]
        if names and likelihood.is_complete:
            said.append(f"{likelihood.contrast.name} ({', '.join(names)})")
    return (
        [f"scores differ where NLL does not (the interval does not contain 0): {'; '.join(said)}"]
        if said
        else []
    )
