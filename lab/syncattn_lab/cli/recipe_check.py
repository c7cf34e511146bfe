"""The checks of ``syncattn-recipe`` before anything runs, and the rehearsal of ``--check``."""

import argparse
import io
import logging
import shutil
import signal
import tempfile
import time
from collections.abc import Container, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.cli.command_line import claiming_outputs
from syncattn_fairseq.data.doctor import KINDS as FOUND
from syncattn_fairseq.data.doctor import Finding
from syncattn_fairseq.data.parses import SPLITS

from ..recipes.cell import Cell, list_needs, list_stages, make_cells
from ..recipes.corpus_facts import Corpus
from ..recipes.display import Display, duration
from ..recipes.grid import Grid, describe_run
from ..recipes.launch import Machines
from ..recipes.missing import (
    examine_corpus,
    list_missing_parsers,
    list_missing_texts,
    list_scarce,
    list_vocabulary_faults,
)
from ..recipes.processes import Processes
from ..recipes.rehearsal import CHANGES, SENTENCES, UPDATES, shorten_corpus, shorten_row
from ..recipes.request import Request
from ..recipes.run import Runner, list_missing_programs
from ..recipes.stages import Stage, is_own, split_commands
from .score import KINDS

_PREFIX = "syncattn-"
_PACKAGES = ("syncattn_fairseq.cli", "syncattn_lab.cli")
#: A command that is not checked: its parser is fairseq's, and no config has options for it.
_FOREIGN = "syncattn-preprocess"
#: The status of a program that SIGTERM ends.
_TERMINATED = 128 + signal.SIGTERM


def check_calls(stages: Iterable[Stage], data_file: Path) -> None:
    """Raise `DataError` if a stage calls a command of this package with arguments it refuses.

    Wrong options come from ``data_file``, which the message names.
    """
    for stage in stages:
        for words in (words for step in stage.steps for words in step.commands):
            with naming(f"{data_file}: {stage.name}"):
                if is_own(words):
                    _check(" ".join(words[:3]), words[3:])
                elif words[0].startswith(_PREFIX) and words[0] != _FOREIGN:
                    _check(words[0], words[1:])


def _check(command: str, arguments: Sequence[str]) -> None:
    if command == "syncattn-score" and arguments[0] in KINDS:
        command, arguments = f"{command} {arguments[0]}", arguments[1:]
    with (
        claiming_outputs(claims=False),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()) as message,
    ):
        try:
            _parser_of(command).parse_args(arguments)
        except SystemExit as end:
            if end.code == _TERMINATED:
                raise
            reason = message.getvalue().strip().removeprefix("error: ").rpartition("; see ")[0]
            raise DataError(f"{command}: {reason or 'wrong options'}") from None


@cache
def _parser_of(command: str) -> argparse.ArgumentParser:
    if command.startswith(_PREFIX):
        name, _, kind = command.removeprefix(_PREFIX).partition(" ")
        if kind:
            return KINDS[kind].make_parser()
        name += "_" * iskeyword(name)
        modules = [f"{package}.{name}" for package in _PACKAGES if name.isidentifier()]
    else:
        modules = [command.rpartition(" ")[2]]  # of python -m MODULE
    for module in filter(find_spec, modules):
        make_parser = getattr(import_module(module), "make_parser", None)
        if make_parser is not None:
            parser: argparse.ArgumentParser = make_parser()
            return parser
    raise DataError(f"{command}: there is no such command")


def rehearse(request: Request, machines: Machines, cells: Sequence[Cell], work: Path) -> None:
    """Print which inputs are missing, then run every stage of a recipe on a few sentences.

    Before the run, the whole text is examined, and refused if it has a severe fault. Missing inputs
    are replaced: a tokeniser by none, a parser by random trees, a text by invented sentences.

    Args:
        request: the corpus, systems and settings of the command line.
        machines: the processes and the kind of device.
        cells: the cells of the recipe; of each row, only the first seed is trained.
        work: the folder of the recipe; the rehearsal runs in a temporary folder inside.

    Raises:
        DataError: an input is missing, a stage fails, or the text has a severe fault.
    """
    logging.getLogger("urllib3").setLevel(logging.WARNING)  # libraries let everybody speak
    corpus, began = request.corpus, time.monotonic()
    work.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="rehearsal-", dir=work))
    short, faults = shorten_corpus(corpus, work, scratch)
    seeds = {shorten_row(cell.row): cell.given_seed for cell in reversed(cells)}  # the first
    rows = dict.fromkeys(shorten_row(cell.row) for cell in cells)
    chosen = [(seeds[row], row) for row in rows]
    changes = {**request.overrides, **CHANGES}
    rehearsed = make_cells(short, machines, changes, chosen)
    preparation, trainings = list_stages(short, rehearsed, 1, 1)
    programs = list_missing_programs([*preparation, *(s for x in trainings.values() for s in x)])
    parsers = list_missing_parsers(corpus, list_needs(corpus, cells))
    missing = [
        *(f"{name}: {fault}" for name, fault in programs.items()),
        *(f"parser of {language}: {fault}" for language, fault in parsers.items()),
        *list_missing_texts(corpus, work, faults),
        *list_scarce(corpus, cells, work),
        *list_vocabulary_faults(corpus, work),
    ]
    findings = []
    try:
        findings = examine_corpus(corpus, work, faults)
    except (DataError, OSError) as fault:
        missing.append(str(fault))
    print(f"{corpus.name}: missing: {len(missing) or 'nothing'}")
    print(*(f"- {fault}\n" for fault in missing), sep="", end="")
    examined = not corpus.generated and {*SPLITS} - {*faults}
    severe = _print_findings(corpus, findings) if examined else []
    if severe:
        shutil.rmtree(scratch)
        raise DataError(
            f"{corpus.name}: the text would give wrong numbers: {'; '.join(severe)}; correct the "
            "text, or allow these faults in _data.yaml under examine (docs/recipes.md)"
        )
    short = _replace_missing(short, programs, parsers)
    rehearsed = make_cells(short, machines, changes, chosen)
    preparation, trainings = list_stages(short, rehearsed, 1, 1)
    stages = [*preparation, *(stage for each in trainings.values() for stage in each)]
    check_calls(stages, corpus.folder / "_data.yaml")
    texts = f" (invented: {', '.join(faults)})" if faults else ""
    print(f"rehearsal: {SENTENCES} sentences{texts}, {UPDATES} updates, in {scratch}", flush=True)
    with Processes() as processes:
        provenance = describe_run(machines, 1)
        runner = Runner(scratch, processes, Display(), provenance=provenance)
        grid = Grid(trainings, runner, 1, scratch / "results.json")
        failure = grid.run_after(preparation, short)
    if failure:
        raise failure
    shutil.rmtree(scratch)
    print(f"rehearsal: {len(stages)} stages in {duration(time.monotonic() - began)}")
    if missing:
        raise DataError(
            f"{corpus.name}: the rehearsal succeeded, but the things listed above are missing; "
            "supply them first"
        )


def _print_findings(corpus: Corpus, findings: Sequence[Finding]) -> list[str]:
    """Print the notable faults of a corpus's text; return short descriptions of the severe ones."""
    shown = [finding for finding in findings if finding.is_notable]
    print(f"{corpus.name}: text: {len(shown) or 'nothing'} to check")
    print(*(f"- {finding}\n" for finding in shown), sep="", end="")
    return [f"{each.split}: {FOUND[each.kind].about}" for each in shown if each.severe]


def _replace_missing(short: Corpus, programs: Container[str], parsers: Container[str]) -> Corpus:
    def lacks(command: str) -> bool:
        return any(words[0] in programs for words in split_commands(command))

    return replace(
        short,
        words={x: "cat" if lacks(text) else text for x, text in short.words.items()},
        score={k: v for k, v in short.score.items() if k != "words_by" or not lacks(v)},
        parses={x: "--parser random" if x in parsers else y for x, y in short.parses.items()},
    )
