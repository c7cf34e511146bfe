"""``syncattn-recipe --check``: list all that is missing, then rehearse every stage."""

import logging
import shutil
import tempfile
import time
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

from ...base.errors import DataError
from ..recipes.cells import Grid, describe_run
from ..recipes.corpus_facts import Corpus
from ..recipes.display import Display, duration
from ..recipes.experiment import Cell, Experiment
from ..recipes.missing import (
    list_missing_parsers,
    list_missing_texts,
    list_scarce,
    list_vocabulary_faults,
)
from ..recipes.processes import Processes
from ..recipes.rehearsal import CHANGES, SENTENCES, UPDATES, shorten_corpus, shorten_row
from ..recipes.run import Runner, list_missing_programs
from ..recipes.stages import Stage, split_commands
from .own_commands import check_calls


def check(experiment: Experiment, cells: Sequence[Cell], work: Path) -> None:
    """Print what is missing, then run every stage on a few sentences in a scratch folder.

    What is missing is replaced there: a tokeniser by none, a parser by chance, a text by another.

    Args:
        experiment: what was asked for.
        cells: its systems and seeds.
        work: the folder that it would run in.

    Raises:
        DataError: something is missing, or a stage failed.
    """
    logging.getLogger("urllib3").setLevel(logging.WARNING)  # libraries let everybody speak
    corpus, began = experiment.corpus, time.monotonic()
    work.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="rehearsal-", dir=work))
    short, faults = shorten_corpus(corpus, work, scratch)
    preparation, trainings = _list_stages(experiment, short, cells)
    programs = list_missing_programs([*preparation, *(s for x in trainings.values() for s in x)])
    parsers = list_missing_parsers(corpus, experiment.list_needs(cells))
    missing = [
        *(f"{name}: {fault}" for name, fault in programs.items()),
        *(f"parser of {language}: {fault}" for language, fault in parsers.items()),
        *list_missing_texts(corpus, work, faults),
        *list_scarce(corpus, cells, work),
        *list_vocabulary_faults(corpus, work),
    ]
    print(f"{corpus.name}: missing: {len(missing) or 'nothing'}")
    print(*(f"- {fault}\n" for fault in missing), sep="", end="")
    short = _replace_missing(short, programs, parsers)
    preparation, trainings = _list_stages(experiment, short, cells)
    stages = [*preparation, *(stage for each in trainings.values() for stage in each)]
    check_calls(stages, corpus.folder / "_data.yaml")
    texts = f" (invented: {', '.join(faults)})" if faults else ""
    print(f"rehearsal: {SENTENCES} sentences{texts}, {UPDATES} updates, in {scratch}", flush=True)
    with Processes() as processes:
        runner = Runner(
            scratch, processes, Display(), provenance=describe_run(experiment.machines, 1)
        )
        failure = Grid(trainings, runner, 1, scratch / "results.json", CHANGES).run_after(
            preparation, short
        )
    if failure:
        raise failure
    shutil.rmtree(scratch)
    print(f"rehearsal: {len(stages)} stages in {duration(time.monotonic() - began)}")
    if missing:
        raise DataError(f"{corpus.name}: the rehearsal was fine, but see above what is missing")


def _list_stages(
    experiment: Experiment, short: Corpus, cells: Sequence[Cell]
) -> tuple[list[Stage], dict[Cell, list[Stage]]]:
    """Return the stages of the same systems on another corpus, each with its first seed."""
    changes = {**experiment.overrides, **CHANGES}
    rehearsed = Experiment(short, experiment.plugin, experiment.machines, changes)
    seeds = {cell.row: cell.given_seed for cell in reversed(cells)}
    rows = dict.fromkeys(cell.row for cell in cells)
    return rehearsed.list_stages([Cell(rehearsed, shorten_row(x), seeds[x]) for x in rows], 1, 1)


def _replace_missing(short: Corpus, programs: Container[str], parsers: Container[str]) -> Corpus:
    def lacks(command: str) -> bool:
        return any(words[0] in programs for words in split_commands(command))

    return replace(
        short,
        words={x: "cat" if lacks(text) else text for x, text in short.words.items()},
        score={k: v for k, v in short.score.items() if k != "words_by" or not lacks(v)},
        parses={x: "--parser random" if x in parsers else y for x, y in short.parses.items()},
    )
