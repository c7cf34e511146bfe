"""Compute the numbers that comments on the study's pages name, from the results.

A page says behind its numbers where they are from (`study.pages` reads that), such as::

    distance_random − distance_tree: NLL, p in planned/multi30k_tiny_en_de_3625

That is systems, what is asked of each of them, and a file below ``study/results/``, perhaps with
``seeds 6-8``. Asked can be

- of one system the mean over its seeds of a measure in `MEASURES`;
- of two, ``A − B``, a measure and a form in `FORMS`. A contrast of the corpus's plan has the seeds
  and the tests that were planned; any other has all seeds that there are;
- of all of them together what is in `TOGETHER`.

``A & B`` is the mean of two systems, seed by seed. In the name of a system or a file, ``*`` stands
for anything; only what is asked of all together may then be of several. ``FILE/SYSTEM`` is a system
of another file.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

from scipy.stats import spearmanr, ttest_rel

from syncattn_fairseq.base.errors import DataError, suggest
from syncattn_fairseq.base.files import read_json
from syncattn_lab.evaluation import measures
from syncattn_lab.evaluation.contrast import Cell, Cells, Contrast
from syncattn_lab.evaluation.differences import Difference, compare, fit_steady_blocks
from syncattn_lab.evaluation.intervals import (
    Blocks,
    Interval,
    equivalence,
    fit_blocks,
    welch,
    welch_interval,
)
from syncattn_lab.evaluation.measures import NLL, NLL_PER_WORD, Measure
from syncattn_lab.evaluation.results_file import load_results
from syncattn_lab.evaluation.table_rows import index_rows, list_contrasts, make_rows
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.plan import Plan, load_plan
from syncattn_lab.recipes.planned_cells import index_cells

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "study" / "results"
LOSS = Measure("loss", "valid.loss", digits=3, higher_is_better=False)
#: Of dependency heads on the test text, over subwords whose sentence is given.
FORCED_UAS = [Measure(f"forced UAS {side}", f"test.{side}_uas") for side in ("src", "tgt")]
#: UAS of parses beside which that of a system is read.
BESIDE_UAS = [
    Measure(name, name) for name in ("UAS source counts", "UAS target counts", "UAS target input")
]
#: What is measured of a training.
MEASURES = {
    one.name: one for one in (*measures.MEASURES, NLL_PER_WORD, LOSS, *FORCED_UAS, *BESIDE_UAS)
}


@dataclass(frozen=True)
class Number:
    """A number computed for a page, with its digits.

    Attributes:
        value: the number before it is rounded.
        digits: digits after the point; of a p, at least so many.
        is_p: whether it is a p, which a page shows with three digits at most, or as ``< .001``.
    """

    value: float
    digits: int
    is_p: bool = False


class Results:
    """The trainings of one system or more in a results file, with the plan of their contrasts.

    Args:
        name: the file's name below ``study/results/``, without ``.json``; ``*`` for several.
        seeds: the only seeds that count; None: all seeds, and contrasts as they were planned.

    Raises:
        DataError: there is no such file, or it is something else.
    """

    def __init__(self, name: str, seeds: Sequence[int] | None = None) -> None:
        paths = sorted(RESULTS.glob(f"{name}.json"))
        if not paths:
            known = [str(path.relative_to(RESULTS))[:-5] for path in RESULTS.rglob("*.json")]
            raise DataError(f"{name}: no such file in study/results/{suggest(name, known)}")
        self.name, self.corpus = name, paths[0].stem
        documents = [_read(path) for path in paths]
        self.cells: list[Cell] = [cell for document in documents for cell in document["cells"]]
        by_system: dict[str, dict[int, Cell]] = defaultdict(dict)
        for cell in self.cells:
            by_system[cell["system"]][cell["seed"]] = cell
        found: Cells = by_system
        folder = ROOT / "configs" / self.corpus
        has_plan = len(paths) == 1 and (folder / "_plan.yaml").exists()
        self.plan = load_plan(folder) if has_plan else Plan()
        self.is_planned = name.startswith("planned/")
        if self.is_planned and has_plan:
            beside = {other: paths[0].with_stem(other) for other in self.plan.list_corpora()}
            others = {other: _read(path) for other, path in beside.items() if path.exists()}
            found = index_cells(self.plan, documents[0], others)
        #: The trainings of the seeds that count, by system and seed.
        self.known: Cells = {}
        for system, cells in found.items():
            counted = [seed for seed in cells if seeds is None or seed in seeds]
            self.known[system] = {seed: cells[seed] for seed in counted}
        #: The planned contrasts that are compared as they were planned.
        self.contrasts = self.plan.contrasts if self.is_planned and seeds is None else []
        self._planned: dict[str, list[Difference]] = {}

    def list_values(self, system: str, measure: Measure) -> dict[int, float]:
        """Return a measure's value of each training of a system, by seed.

        Raises:
            DataError: there is no such system, or it was not measured.
        """
        if _MEAN in system:
            each = [self.list_values(one, measure) for one in system.split(_MEAN)]
            seeds = set.intersection(*map(set, each))
            return {seed: mean(values[seed] for values in each) for seed in sorted(seeds)}
        slash = system.partition(":")[0].rfind("/")
        if slash > 0 and system not in self.known:
            return open_results(system[:slash]).list_values(system[slash + 1 :], measure)
        system = self.find_system(system)
        values = measure.by_seed(self.known[system].values())
        if not values:
            raise DataError(f"{system}: {self.name} has no {measure.name} of it")
        return values

    def list_pool(self, measure: Measure, seeds: Sequence[int]) -> list[list[float]]:
        """Return the values, one for each seed, of all systems of the corpus with these seeds.

        Those are the systems of this file and of the plan's, without settings of their own. NLL of
        the test text that a training did not record is that of ``likelihood/``.
        """
        places = [f"{folder}/{self.corpus}" for folder in ("likelihood", "planned")]
        there = [open_results(name) for name in places if (RESULTS / f"{name}.json").exists()]
        planned: dict[str, dict[int, float]] = {}
        for results in there:
            planned |= results.list_measured(measure)
        own = {} if self.is_planned else self.list_measured(measure)
        pool = [*planned.values(), *own.values()]
        return [_pick(x, seeds) for x in pool if x.keys() >= {*seeds}]

    def list_measured(self, measure: Measure) -> dict[str, dict[int, float]]:
        """Return a measure's values by system and seed, without systems that have settings."""
        systems = [name for name in self.known if ":" not in name and name not in self.plan.names]
        values = {name: measure.by_seed(self.known[name].values()) for name in systems}
        return {name: numbers for name, numbers in values.items() if numbers}

    def find_system(self, name: str) -> str:
        """Return the system's name that a page means; `DataError` unless exactly one matches."""
        names = [known for known, cells in self.known.items() if cells]
        found = [known for known in names if _matches(known, name)]
        if len(found) != 1:
            fault = "several systems" if found else f"no such system{suggest(name, names)}"
            raise DataError(f"{name}: {fault} in {self.name}")
        return found[0]

    def find_cells(self, system: str) -> Mapping[int, Cell]:
        """Return a system's trainings by seed; its name may begin with another results file.

        Raises:
            DataError: there is no such system.
        """
        slash = system.partition(":")[0].rfind("/")
        if slash > 0 and system not in self.known:
            return open_results(system[:slash]).find_cells(system[slash + 1 :])
        return self.known[self.find_system(system)]

    def find_contrast(self, ours: str, theirs: str) -> Contrast | None:
        """Return the planned contrast of two systems, in either order; None if none was planned."""
        pair = {ours, theirs}
        return next((x for x in self.contrasts if {*x.systems} == pair), None)

    def compare_planned(self, contrast: Contrast, measure: Measure) -> Difference:
        """Return the difference, interval and tests of a planned contrast in a measure."""
        if measure.name not in self._planned:
            self._planned[measure.name] = compare(self.contrasts, self.known, measure)
        return self._planned[measure.name][self.contrasts.index(contrast)]

    def correct(self, measure: Measure) -> dict[frozenset[str], float]:
        """Return p by Holm's method for each system and its baseline, among all of the corpus.

        Where contrasts were planned, only these have one.
        """
        if self.is_planned:
            return {}
        corpus = load_corpus(ROOT / "configs" / self.corpus)
        systems = [system for system in corpus.members("@all") if self.known.get(system)]
        rows = make_rows({"cells": self.cells}, systems, None, corpus.baseline)
        found = compare(list_contrasts(rows, {}), index_rows(rows), measure)
        return {frozenset(one.contrast.systems): one.p for one in found if one.p is not None}


@cache
def open_results(name: str, seeds: tuple[int, ...] | None = None) -> Results:
    """Return the `Results` of a file, given its name; each file is read only once."""
    return Results(name, seeds)


def _read(path: Path) -> Mapping[str, Any]:
    """Load a file of results; files of `study.likelihood` are converted to the common form."""
    if path.parent.name != "likelihood":
        return load_results(path)
    cells = []
    for row in read_json(path):
        cell = {"system": row["system"], "seed": row["seed"], "overrides": {}, "scores": {}}
        for split in ("valid", "test"):
            cell[split] = {"nll_loss": row[split] / NLL.factor}
        cells.append(cell)
    return {"corpus": path.stem, "cells": cells}


def _matches(name: str, system: str) -> bool:
    """Tell whether a page means a system; there, ``*`` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, system.split("*"))), name) is not None


@dataclass(frozen=True)
class Pair:
    """Two systems and a measure, to compare them: ``ours − theirs``."""

    results: Results
    ours: str
    theirs: str
    measure: Measure

    def interval(self) -> Interval:
        """Return the difference with its interval as planned, or else Welch's."""
        if self._contrast() is None:
            return self._known(welch_interval(*self._samples()))
        return self._turn(self._planned().interval)

    def difference(self) -> float:
        """Return the difference of the two systems' means."""
        if self._contrast() is not None:
            return self.interval().difference
        ours, theirs = self._samples()
        return mean(ours) - mean(theirs)

    def within_seeds(self) -> Interval:
        """Return the difference with its 95 % interval with seeds as blocks.

        It is that of the plan's contrast, or else that among all systems without settings.
        """
        if self._contrast() is not None:
            return self._turn(self._planned().block_interval)
        results = self.results
        ours, theirs = map(results.find_system, (self.ours, self.theirs))
        systems = [name for name, x in results.known.items() if x and ":" not in name]
        others = [Contrast(name, theirs) for name in systems if name not in (ours, theirs)]
        found = compare([Contrast(ours, theirs), *others], results.known, self.measure)
        return self._known(found[0].block_interval)

    def paired(self) -> Interval:
        """Return the mean difference of trainings with the same seed, with Student's interval."""
        both = self._list()
        seeds = sorted(both[0].keys() & both[1].keys())
        if len(seeds) < 2:
            return self._known(None)
        ours, theirs = _pick(both[0], seeds), _pick(both[1], seeds)
        ends = ttest_rel(ours, theirs).confidence_interval()
        return Interval(mean(ours) - mean(theirs), float(ends.low), float(ends.high))

    def paired_power(self) -> float:
        """Return the smallest difference that `paired` shows in 80 % of experiments."""
        both = self._list()
        seeds = sorted(both[0].keys() & both[1].keys())
        blocks = fit_blocks([_pick(values, seeds) for values in both])
        return float(self._known(blocks).detectable())

    def pooled(self) -> Interval:
        """Return the difference with its interval with seeds as blocks, fitted to all systems."""
        difference, blocks, sizes = self._pool()
        return blocks.interval(difference, sizes)

    def pooled_p(self) -> float:
        """Return the p of the test that `pooled` is 0, not corrected for several tests."""
        difference, blocks, sizes = self._pool()
        return blocks.p(difference, sizes=sizes)

    def pooled_same(self) -> float:
        """Return the p of the equivalence test on `pooled`, with the plan's margin."""
        difference, blocks, sizes = self._pool()
        return blocks.p(difference, find_margin(self.results), sizes)

    def corrected(self) -> float:
        """Return p, corrected for the plan's family of tests, or for the table of all systems."""
        if self._contrast() is not None:
            return self._known(self._planned().p)
        pair = frozenset([self.ours, self.theirs])
        return self._known(self.results.correct(self.measure).get(pair))

    def same(self) -> float:
        """Return the corrected p of the plan's equivalence test of the two systems."""
        return self._known(self._planned().p_same)

    def same_uncorrected(self) -> float:
        """Return the uncorrected p of the equivalence test with all seeds, planned or not."""
        return self._known(equivalence(*self._samples(), find_margin(self.results)))

    def uncorrected(self) -> float:
        """Return the uncorrected p of Welch's test with all seeds, planned or not."""
        return self._known(welch(*self._samples()))

    def deciding(self) -> list[float]:
        """List the corrected p that decided the planned verdict; empty if nothing was decided."""
        verdict = self._planned().conclusion
        if verdict == "the same":
            return [self.same()]
        return [self.corrected()] if verdict in ("better", "worse") else []

    def _pool(self) -> tuple[float, Blocks, tuple[int, int]]:
        """Return the difference, the fit of seeds as blocks, and how many systems are averaged."""
        ours, theirs = self._list()
        seeds = sorted(ours.keys() & theirs.keys())
        if len(seeds) < 2:
            return self._known(None)  # which raises
        sides = [side.split(_MEAN) for side in (self.ours, self.theirs)]
        each = [self.results.list_values(one, self.measure) for side in sides for one in side]
        compared = [_pick(values, seeds) for values in each]
        pool = self.results.list_pool(self.measure, seeds)
        pool += [numbers for numbers in compared if numbers not in pool]
        blocks = fit_steady_blocks(compared, pool)
        difference = mean(ours[seed] - theirs[seed] for seed in seeds)
        return difference, self._known(blocks), (len(sides[0]), len(sides[1]))

    def _list(self) -> tuple[dict[int, float], dict[int, float]]:
        """Return the measure of both systems, by seed."""
        ours, theirs = (self.results.list_values(x, self.measure) for x in (self.ours, self.theirs))
        return ours, theirs

    def _samples(self) -> tuple[list[float], list[float]]:
        """Return the measure of both systems."""
        ours, theirs = self._list()
        return [*ours.values()], [*theirs.values()]

    def _contrast(self) -> Contrast | None:
        return self.results.find_contrast(self.ours, self.theirs)

    def _planned(self) -> Difference:
        """Return the difference of the planned contrast of both systems."""
        return self.results.compare_planned(self._known(self._contrast()), self.measure)

    def _turn(self, interval: Interval | None) -> Interval:
        """Return a planned contrast's interval, or the interval of the opposite contrast."""
        found, contrast = self._known(interval), self._known(self._contrast())
        if contrast.system == self.ours:
            return found
        return Interval(-found.difference, -found.high, -found.low)

    def _known(self, value: Any) -> Any:
        if value is None:
            raise DataError(f"{self.ours} − {self.theirs}: not known in {self.results.name}")
        return value


def _pick(numbers: Mapping[int, float], seeds: Sequence[int]) -> list[float]:
    """Return the numbers of seeds, in the order of the seeds."""
    return [numbers[seed] for seed in seeds]


def _all(interval: Interval) -> list[float]:
    return [interval.difference, interval.low, interval.high]


def _ends(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


#: What can be asked of two systems, behind the name of a measure: differences, intervals and p.
FORMS: dict[str, Callable[[Pair], list[float]]] = {
    "": lambda pair: _all(pair.interval()),
    "ends": lambda pair: _ends(pair.interval()),
    "only": lambda pair: [pair.difference()],
    "within seeds": lambda pair: _all(pair.within_seeds()),
    "ends within seeds": lambda pair: _ends(pair.within_seeds()),
    "paired": lambda pair: _all(pair.paired()),
    "ends paired": lambda pair: _ends(pair.paired()),
    "power paired": lambda pair: [pair.paired_power()],
    "pooled": lambda pair: _all(pair.pooled()),
    "ends pooled": lambda pair: _ends(pair.pooled()),
    "only pooled": lambda pair: [pair.pooled().difference],
    "p pooled": lambda pair: [pair.pooled_p()],
    "p same pooled": lambda pair: [pair.pooled_same()],
    "p": lambda pair: [pair.corrected()],
    "p same": lambda pair: [pair.same()],
    "p uncorrected": lambda pair: [pair.uncorrected()],
    "p same uncorrected": lambda pair: [pair.same_uncorrected()],
    "verdict": lambda pair: pair.deciding(),
}
#: Those that are p. If it is corrected and below .1, a page has three digits of it.
_TESTS = (
    *("p", "p same", "verdict"),
    *(f"{p} {way}" for p in ("p", "p same") for way in ("uncorrected", "pooled")),
)
#: Stands between systems whose mean is meant.
_MEAN = " & "


def count(results: Results, systems: Sequence[str]) -> Number:
    """Count the trainings of systems whose names match."""
    return Number(len(_match(results, systems)), 0)


def count_ended(results: Results, systems: Sequence[str], limit: str) -> Number:
    """Count the trainings of systems that reached a number of updates, such as ``1,800``."""
    updates = [cell["updates"] for cell in _match(results, systems)]
    return Number(sum(one >= int(limit.replace(",", "")) for one in updates), 0)


def find_margin(results: Results) -> float:
    """Return the plan's margin of equivalence in NLL, in nats."""
    return max((contrast.margin for contrast in results.plan.contrasts), default=0.0)


def read_margin(results: Results, systems: Sequence[str], _: str = "") -> Number:
    """Return the plan's margin of equivalence, in nats, as a page shows it."""
    return Number(find_margin(results), 2)


def correlate(results: Results, systems: Sequence[str], place: str) -> Number:
    """Return Spearman's correlation between the systems' mean NLL here and in another file."""
    both = (results, read_place(place))
    means = []
    for place_results in both:
        values = [place_results.list_values(name, NLL).values() for name in systems]
        means.append([*map(mean, values)])
    return Number(float(spearmanr(*means).statistic), 2)


def scatter(results: Results, systems: Sequence[str], first: str, last: str) -> Number:
    """Return the standard deviation of validation NLL around its neighbours in training.

    It is the standard deviation of a validation's NLL, in nats: if those of neighbours are
    independent, the distance to their mean has 3/2 of its variance.

    Args:
        results: the trainings.
        systems: the names of systems.
        first: the number of updates of the first validation, such as ``1,800``.
        last: the number of updates of the last validation.
    """
    squares = []
    for curve in _list_curves(results, systems):
        nats = [*_choose(curve, first, last).values()]
        for before, here, after in zip(nats, nats[1:], nats[2:], strict=False):
            squares.append((here - (before + after) / 2) ** 2)
    return Number(math.sqrt(mean(squares) / 1.5), 3)


def deviate(results: Results, systems: Sequence[str]) -> Number:
    """Return the residual deviation of NLL at chosen checkpoints, with seeds as blocks, in nats."""
    return Number(_fit(results, systems, NLL.of_cell), 4)


def deviate_late(results: Results, systems: Sequence[str], first: str, last: str) -> Number:
    """Return the residual deviation, with seeds as blocks, of the mean NLL of late validations.

    Args:
        results: the trainings.
        systems: the names of systems.
        first: the number of updates of the first validation, such as ``1,800``.
        last: the number of updates of the last validation.
    """
    return Number(_fit(results, systems, partial(_average, updates=(first, last))), 4)


def count_worth(results: Results, systems: Sequence[str], first: str, last: str) -> Number:
    """Return how many times the seeds it saves to average late validations: a ratio of variances.

    Args:
        results: the trainings.
        systems: the names of systems.
        first: the number of updates of the first validation, such as ``1,800``.
        last: the number of updates of the last validation.
    """
    chosen, late = deviate(results, systems), deviate_late(results, systems, first, last)
    return Number((chosen.value / late.value) ** 2, 1)


def compare_late(results: Results, systems: Sequence[str], first: str, last: str) -> Number:
    """Return the difference of two systems' mean NLL over late validations, in nats.

    Args:
        results: the trainings.
        systems: the names of two systems.
        first: the number of updates of the first validation, such as ``1,800``.
        last: the number of updates of the last validation.
    """
    ours, theirs = (
        mean(_average(cell, (first, last)) for cell in results.find_cells(system).values())
        for system in systems
    )
    return Number(ours - theirs, 3)


def _fit(results: Results, systems: Sequence[str], measure: Callable[[Cell], Any]) -> float:
    """Return the residual deviation after systems and seeds."""
    found = [results.find_cells(system) for system in systems]
    seeds = sorted(set.intersection(*(set(cells) for cells in found)))
    blocks = fit_blocks([[measure(cells[seed]) for seed in seeds] for cells in found])
    if blocks is None:
        raise DataError(f"{', '.join(systems)}: too few systems or seeds")
    return blocks.deviation


def _average(cell: Cell, updates: tuple[str, str]) -> float:
    chosen = _choose(read_curve(cell), *updates)
    if not chosen:
        raise DataError(f"{cell['system']}: no validation in updates {' to '.join(updates)}")
    return mean(chosen.values())


def _choose(curve: Mapping[int, float], first: str, last: str) -> dict[int, float]:
    least, most = (int(update.replace(",", "")) for update in (first, last))
    return {update: nats for update, nats in curve.items() if least <= update <= most}


def _list_curves(results: Results, systems: Sequence[str]) -> list[dict[int, float]]:
    found = [results.find_cells(system) for system in systems]
    return [read_curve(cell) for cells in found for cell in cells.values()]


def read_curve(cell: Cell) -> dict[int, float]:
    """Return a training's validation NLL, in nats, by the number of updates.

    Raises:
        DataError: an older version made the cell, which has none.
    """
    if "nll_by_update" not in cell:
        raise DataError(f"{cell['system']}, seed {cell['seed']}: has no NLL by update")
    return {int(k): NLL.factor * float(v) for k, v in cell["nll_by_update"].items()}


def _match(results: Results, systems: Sequence[str]) -> list[Cell]:
    return [
        cell
        for cell in results.cells
        if any(_matches(cell["system"], system) for system in systems)
    ]


#: What can be asked of several systems together, as regular expressions.
TOGETHER: dict[str, Callable[..., Number]] = {
    "trainings": count,
    r"ended at (\d[\d,]*)": count_ended,
    "margin": read_margin,
    "rank correlation with (.+)": correlate,
    r"scatter of updates ([\d,]+) to ([\d,]+)": scatter,
    "deviation": deviate,
    r"deviation of the mean of updates ([\d,]+) to ([\d,]+)": deviate_late,
    r"times the seeds with the mean of updates ([\d,]+) to ([\d,]+)": count_worth,
    r"difference of the mean of updates ([\d,]+) to ([\d,]+)": compare_late,
}

_PLACE = re.compile(r"(\S+)(?: seeds? (\d+)(?:-(\d+))?)?")


def read_place(text: str) -> Results:
    """Return the results that a text names: a file, perhaps with ``seed 1`` or ``seeds 6-8``.

    Raises:
        DataError: it names none.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r}: expected FILE, FILE seed N or FILE seeds N-M")
    name, first, last = found.groups()
    return open_results(name, first and tuple(range(int(first), int(last or first) + 1)))


def compute(fact: str, place: str = "", asked: str = "") -> list[Number]:
    """Compute the numbers that a comment of a page names, in their order.

    Args:
        fact: ``SYSTEMS: QUANTITIES in PLACE``, both lists with commas.
        place: of a fact that names none.
        asked: of a fact that asks nothing.

    Raises:
        DataError: it names something that is not there.
    """
    fact, _, own_place = fact.partition(" in ")
    systems, _, own_asked = fact.partition(": ")
    place, asked = own_place or place, own_asked or asked
    if not place:
        raise DataError(f"{fact}: in which file? End it with 'in FILE', or say it above")
    if not asked:
        raise DataError(f"{fact}: what of it? Say ': NLL', for example")
    results = read_place(place)
    numbers: list[Number] = []
    for quantity in asked.split(", "):
        numbers += _ask(results, systems.split(", "), quantity)
    return numbers


def _ask(results: Results, systems: Sequence[str], quantity: str) -> list[Number]:
    for words, answer in TOGETHER.items():
        found = re.fullmatch(words, quantity)
        if found:
            return [answer(results, systems, *found.groups())]
    named = (name for name in MEASURES if f"{quantity} ".startswith(f"{name} "))
    name = max(named, key=len, default="")
    form, measure = quantity[len(name) :].strip(), MEASURES[name or NLL.name]
    numbers: list[Number] = []
    for system in systems:
        ours, minus, theirs = system.partition(" − ")
        if form not in (FORMS if minus else ("",)):
            known = sorted({*TOGETHER, *MEASURES, *(FORMS if minus else ())} - {""})
            raise DataError(f"{quantity!r} is unknown; known are {', '.join(known)}")
        if minus:
            pair = Pair(results, ours, theirs, measure)
            numbers += [_number(value, form, measure) for value in FORMS[form](pair)]
        else:
            value = mean(results.list_values(system, measure).values())
            numbers.append(Number(value, measure.digits))
    return numbers


def _number(value: float, form: str, measure: Measure) -> Number:
    if form not in _TESTS:
        return Number(value, measure.digits)
    few = form.endswith(("uncorrected", "pooled")) or value >= 0.1
    return Number(value, 2 if few else 3, is_p=True)
