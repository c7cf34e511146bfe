"""Tables of planned contrasts: differences with intervals, tests and verdicts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from syncattn_fairseq.base.errors import DataError

from ..evaluation.differences import (
    BLOCKS,
    WITHIN,
    Difference,
    Group,
    Line,
    describe_blocks,
    fit_within,
    format_blocks,
    format_difference,
    make_difference,
)
from ..evaluation.intervals import (
    Blocks,
    Interval,
    bootstrap_seeds,
    equivalence,
    welch,
    welch_interval,
)
from ..evaluation.measures import CHRF, NLL, NONE, Measure, format_p, holm, list_compared
from ..evaluation.results_file import list_differing, unpack_counts
from ..evaluation.results_tables import leave_out_empty, list_notes
from .plan import Contrast, Plan
from .systems import say_system

Cells = Mapping[tuple[str, int], Mapping[str, Any]]
"""The results by system and seed."""


def index_cells(
    results: Mapping[str, Any],
    others: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str] | None = None,
) -> Cells:
    """Return the results of all systems; those of other corpora are called ``CORPUS/SYSTEM``.

    Args:
        results: of the plan's own corpus, from `load_results`.
        others: the same of other corpora, by name.
        names: other names of systems, from the plan.

    Raises:
        DataError: a training is not the planned one, since a setting was changed for all systems.
    """
    cells: dict[tuple[str, int], Mapping[str, Any]] = {}
    for prefix, document in [("", results), *((f"{k}/", v) for k, v in others.items())]:
        for cell in document["cells"]:
            if cell["overrides"]:
                changed = ", ".join(f"{k}={v}" for k, v in cell["overrides"].items())
                raise DataError(
                    f"{cell['system']}, seed {cell['seed']}: trained with {changed}, which is not "
                    "planned; keep the plan's results in a file of their own"
                )
            cells[prefix + cell["system"], cell["seed"]] = cell
    for name, system in (names or {}).items():
        cells |= {(name, seed): cell for (other, seed), cell in cells.items() if other == system}
    return cells


def nats_per_word(cell: Mapping[str, Any]) -> float | None:
    """Return the validation NLL in nats per word.

    Raises:
        DataError: an older version made the cell, without what is needed.
    """
    per_subword, subwords = NLL.of_cell(cell), cell.get("subwords_per_word")
    if per_subword is not None and subwords is None:
        raise DataError(
            f"{cell['system']}, seed {cell['seed']}: the results lack subwords_per_word; run the "
            "recipe again with --from score"
        )
    return None if per_subword is None or subwords is None else per_subword * subwords


class MeasuredPlan:
    """All contrasts of a plan in one measure; NLL per word where subwords differ."""

    def __init__(self, plan: Plan, cells: Cells, measure: Measure = NLL) -> None:
        self.plan, self.measure = plan, measure
        self.values: dict[tuple[str, Contrast], dict[int, float]] = {}
        for contrast in plan.contrasts:
            number = nats_per_word if measure is NLL and contrast.per_word else measure.of_cell
            for system in contrast.systems:
                known = {x: cells[system, x] for x in contrast.seeds if (system, x) in cells}
                numbers = {seed: number(cell) for seed, cell in known.items()}
                self.values[system, contrast] = {
                    seed: value for seed, value in numbers.items() if value is not None
                }
        #: p and Holm's p of each complete contrast of the family; in Holm's, the others count as 1.
        self.p = self._correct(lambda contrast: contrast.tested)
        #: The same of the test that both systems are equivalent.
        self.p_same = self._correct(lambda contrast: contrast.same, plan.margin)

    def samples(self, contrast: Contrast) -> tuple[list[float], list[float]]:
        """Return the values of both systems, one for each seed that has them."""
        ours, theirs = ([*self.values[system, contrast].values()] for system in contrast.systems)
        return ours, theirs

    def is_complete(self, contrast: Contrast) -> bool:
        """Tell whether all seeds of both systems have results."""
        return all(len(values) == len(contrast.seeds) for values in self.samples(contrast))

    def interval(self, contrast: Contrast) -> Interval | None:
        """Return the difference with its interval; None with fewer than two seeds of a system."""
        if self.plan.by_blocks:
            blocks, within = self._fit(contrast)
            return blocks.interval(within) if blocks else None
        return welch_interval(*self.samples(contrast))

    def difference(self, contrast: Contrast) -> Difference | None:
        """Return the difference of a complete contrast with its verdict; None of any other.

        Who looks earlier may stop when it pleases.
        """
        if not self.is_complete(contrast):
            return None
        (_, p), (_, p_same) = (each.get(contrast, (None, None)) for each in (self.p, self.p_same))
        alike = self._alike(contrast)
        return make_difference(self.measure, *alike, p, p_same, self.plan.by_blocks)

    def _alike(self, contrast: Contrast) -> tuple[Any, Any, Any]:
        """Return the values of both systems, and of all that were trained with their seeds."""
        alike = {
            system: values
            for (system, other), values in self.values.items()
            if (other.seeds, other.per_word) == (contrast.seeds, contrast.per_word)
        }
        ours, theirs = (self.values[system, contrast] for system in contrast.systems)
        return ours, theirs, alike.values()

    def _fit(self, contrast: Contrast) -> tuple[Blocks | None, float]:
        return fit_within(*self._alike(contrast))

    def _test(self, contrast: Contrast, margin: float) -> float | None:
        """Return the p of a contrast's test, with a margin of the one for sameness."""
        if self.plan.by_blocks:
            blocks, within = self._fit(contrast)
            return blocks.p(within, margin) if blocks else None
        samples = self.samples(contrast)
        return equivalence(*samples, margin) if margin else welch(*samples)

    def _correct(
        self, chosen: Callable[[Contrast], bool], margin: float = 0.0
    ) -> dict[Contrast, tuple[float, float]]:
        """Return p and Holm's p of the complete ones among the chosen contrasts."""
        family = [contrast for contrast in self.plan.contrasts if chosen(contrast)]
        p_values = [self._test(c, margin) if self.is_complete(c) else None for c in family]
        corrected = holm([1.0 if p is None else p for p in p_values])
        return {
            contrast: (p, other)
            for contrast, p, other in zip(family, p_values, corrected, strict=True)
            if p is not None and other is not None
        }


def make_contrast_tables(
    plan: Plan, cells: Cells, table: Callable[[Sequence[Sequence[str]]], str], bullet: str = ""
) -> str:
    """Return a table of the contrasts in NLL with verdicts, one in chrF and BLEU, and notes.

    A function formats rows as a table; each note begins with a bullet.
    """
    likelihood = MeasuredPlan(plan, cells)
    scores = {
        measure.name: MeasuredPlan(plan, cells, measure)
        for measure in list_compared()
        if measure is not NLL
    }
    begun = [contrast for contrast in plan.contrasts if all(likelihood.samples(contrast))]
    notes = _notes(plan, likelihood, scores, cells)
    if left := [contrast.name for contrast in plan.contrasts if contrast not in begun]:
        notes.append(f"no results yet: {'; '.join(left)}")
    return "\n\n".join(
        [
            table(_likelihood_table(begun, likelihood, cells)),
            table(_score_table(begun, scores, cells)),
            list_notes(notes, bullet),
        ]
    )


def group_contrasts(plan: Plan, cells: Cells) -> tuple[list[Measure], list[Group]]:
    """Return the complete contrasts as `..report.forest.draw_forest` wants them.

    Raises:
        DataError: no contrast is complete.
    """
    measured = [MeasuredPlan(plan, cells, measure) for measure in (NLL, CHRF)]
    groups: dict[str, list[Line]] = {}
    for contrast in plan.contrasts:
        differences = [one.difference(contrast) for one in measured]
        if all(differences):
            title = contrast.group + ", NLL per word" * contrast.per_word
            name = " against ".join(map(say_system, contrast.systems))
            groups.setdefault(title, []).append(Line(name, differences))
    if not groups:
        raise DataError("nothing to draw: no contrast has the results of all its seeds")
    return [one.measure for one in measured], [Group(*item) for item in groups.items()]


def _likelihood_table(
    contrasts: Iterable[Contrast], measured: MeasuredPlan, cells: Cells
) -> list[list[str]]:
    header = ["contrast", "seeds", "NLL", "seeds as blocks", "p Holm", "p same", "verdict", "mixed"]
    rows = [
        [
            contrast.name,
            _count(measured, contrast),
            format_difference(difference := measured.difference(contrast)),
            format_blocks(difference),
            _corrected(measured.p, contrast),
            _corrected(measured.p_same, contrast),
            judge(measured, contrast),
            ", ".join(list_differing(_list_cells(contrast, cells))) or NONE,
        ]
        for contrast in contrasts
    ]
    return leave_out_empty([header, *rows])


def _score_table(
    contrasts: Iterable[Contrast], scores: Mapping[str, MeasuredPlan], cells: Cells
) -> list[list[str]]:
    header = ["contrast"]
    for name in scores:
        header += [name, "seeds as blocks", "p Holm"]
    table = [[*header, "BLEU, other sentences too"]]
    for contrast in contrasts:
        row = [contrast.name]
        for measured in scores.values():
            difference = measured.difference(contrast)
            row += [format_difference(difference), format_blocks(difference)]
            row.append(_corrected(measured.p, contrast))
        both = _bootstrap(contrast, cells) if scores["BLEU"].is_complete(contrast) else None
        table.append([*row, NONE if both is None else both.format_ends(1)])
    return leave_out_empty(table)


def judge(measured: MeasuredPlan, contrast: Contrast) -> str:
    """Return what a contrast's NLL says: better, worse, the same, not known, or an estimate."""
    difference = measured.difference(contrast)
    if difference is None:
        return "not complete"
    return difference.verdict if contrast.tested else "estimate"


def _bootstrap(contrast: Contrast, cells: Cells) -> Interval | None:
    """Return the difference in BLEU with its interval over seeds and sentences."""
    ours, theirs = (
        [
            unpack_counts(cells[system, seed]["ngrams"])
            for seed in contrast.seeds
            if "ngrams" in cells.get((system, seed), {})
        ]
        for system in contrast.systems
    )
    return bootstrap_seeds(ours, theirs) if min(len(ours), len(theirs)) > 1 else None


def _count(measured: MeasuredPlan, contrast: Contrast) -> str:
    ours, theirs = map(len, measured.samples(contrast))
    counted = str(ours) if ours == theirs else f"{ours} and {theirs}"
    return counted if measured.is_complete(contrast) else f"{counted} of {len(contrast.seeds)}"


def _list_cells(contrast: Contrast, cells: Cells) -> list[Mapping[str, Any]]:
    keys = ((system, seed) for system in contrast.systems for seed in contrast.seeds)
    return [cells[key] for key in keys if key in cells]


def _corrected(tests: Mapping[Contrast, tuple[float, float]], contrast: Contrast) -> str:
    return format_p(tests[contrast][1]) if contrast in tests else NONE


def _notes(
    plan: Plan, likelihood: MeasuredPlan, scores: Mapping[str, MeasuredPlan], cells: Cells
) -> list[str]:
    family = sum(contrast.tested for contrast in plan.contrasts)
    same = sum(contrast.same for contrast in plan.contrasts)
    complete = sum(c.tested and likelihood.is_complete(c) for c in plan.contrasts)
    whose = "its" if plan.by_blocks else "Welch's"
    notes = [
        "NLL: validation, nats per subword; the difference of means over seeds, with "
        f"{whose} 95 % interval. Lower is better",
        f"intervals and tests: {WITHIN}" if plan.by_blocks else BLOCKS,
    ]
    if family:
        missing = f", of which {complete} are complete; the others count with p = 1"
        notes.append(
            f"p Holm: corrected for the family's {family} contrasts" + missing * (complete < family)
        )
    if words := list(dict.fromkeys(c.group for c in plan.contrasts if c.per_word)):
        notes.append(f"NLL of {' and '.join(words)}: per word, since subwords differ")
    if same:
        notes.append(
            f"p same: two one-sided tests that the difference is below {plan.margin:g} nats; by "
            f"Holm's method for all contrasts that have this test ({same})"
        )
    for one in (likelihood, *scores.values()):
        for unit in ("", " per word") if one is likelihood else ("",):
            alike = (c for c in plan.contrasts if one is not likelihood or c.per_word == bool(unit))
            notes += describe_blocks(map(one.difference, alike), unit)
    notes.append(
        "BLEU, other sentences too: bootstrap over seeds and sentences together, 95 % interval"
    )
    notes += _disagreements(plan, likelihood, scores)
    known = [cell for contrast in plan.contrasts for cell in _list_cells(contrast, cells)]
    if any(list_differing(_list_cells(contrast, cells)) for contrast in plan.contrasts):
        notes.append("mixed: what differs between the trainings of a contrast")
    notes += [f"hardware: {one}" for one in sorted({cell["hardware"] for cell in known})]
    notes.append(f"commit: {', '.join(sorted({cell['commit'] for cell in known}))}")
    return notes


def _disagreements(
    plan: Plan, likelihood: MeasuredPlan, scores: Mapping[str, MeasuredPlan]
) -> list[str]:
    contrasts = []
    for contrast in plan.contrasts:
        if not likelihood.is_complete(contrast):
            continue
        lower = _side(likelihood.interval(contrast))
        wrong = [
            name
            for name, other in scores.items()
            if (side := _side(other.interval(contrast)))
            and side != (-lower if other.measure.higher_is_better else lower)
        ]
        if wrong:
            contrasts.append(f"{contrast.name} ({', '.join(wrong)})")
    note = f"scores say what NLL does not (interval without 0): {'; '.join(contrasts)}"
    return [note] if contrasts else []


def _side(interval: Interval | None) -> int:
    """Return on which side of 0 an interval is, 0 if it has 0."""
    if interval is None:
        return 0
    return (interval.low > 0) - (interval.high < 0)
