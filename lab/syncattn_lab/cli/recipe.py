"""``syncattn-recipe``: repeat published runs, from public archives to a table of scores."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.systems import count_cores
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import announce, command, new_parser, positive

from ..recipes.corpus_facts import load_corpus
from ..recipes.request import Request, read_request
from ..recipes.start import with_options
from ..recipes.systems import SHARED
from .recipe_results import ResultsView

if TYPE_CHECKING:
    from ..recipes.corpus_facts import Corpus
    from ..recipes.launch import Machines

#: Parsers that share a GPU; each needs 1 or 2 GB of its memory.
PARSERS_OF_A_GPU = 4


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Train the systems of a corpus as its recipe says, and print the table of results."""
    args = make_parser().parse_intermixed_args(argv)
    args.work = args.work.resolve()
    if not args.configs.is_dir():
        raise DataError(f"--configs {args.configs}: no such folder")
    folder, here = args.configs / args.corpus, Path(args.corpus)
    if args.start and not args.init:
        raise DataError(
            "--start needs --init; a corpus that exists names its model in _data.yaml: start: "
            "FOLDER"
        )
    if args.init:
        _write_corpus(here, args)
        return
    if (here / "_data.yaml").is_file() and not folder.is_dir():
        folder = here
    corpus = load_corpus(folder, args.programs)
    finished = set[Path]()
    if corpus.start is not None:
        if not (args.table or args.dry_run):
            finished = _import_start(corpus, args)
        corpus = with_options(corpus, args.work)
    if args.figure:
        from ..report import picture_files

        picture_files.check_format(args.figure)
    folder = args.work / "results"
    if args.idea:
        from ..recipes.idea import read_idea
        from ..report import viz  # noqa: F401  (says now if pages cannot be made here)

        if args.plan or args.report or not args.seeds:
            raise DataError(
                "--idea needs --seeds, and cannot be used with --plan or --report, since an idea "
                "has its own plan and page"
            )
        idea = read_idea(args.idea, corpus, args.words, args.seeds, args.work / "ideas")
        folder, words = idea.folder, [row.text for row in idea.rows]
        request = Request(corpus, words, idea.rows, {}, args.seeds, idea.plan)
    else:
        idea, request = None, read_request(corpus, args.words, args.seeds, args.plan)
    path = args.results or folder / f"{corpus.name}.json"
    view = ResultsView(request, path, args.baseline, args.markdown, args.figure)
    if args.report:
        _check_report(request, args.table)
    runs = not (args.dry_run or args.check)
    if args.table:
        view.print_all()
    else:
        view.check_baseline()
        if idea and runs:
            idea.write_plan()
        _run(args, request, view, finished)
    if idea and path.exists() and runs:
        announce(idea.write_page(path), f"whether {idea.row.label} helps", sys.stderr)


def _write_corpus(folder: Path, args: argparse.Namespace) -> None:
    from ..recipes.new_corpus import write_corpus

    gpus = _choose_machines(args)[1]
    written = write_corpus(folder, args.words, gpus > 0 and not args.cpu, args.start)
    announce(folder, written.sizes)
    for note in written.notes:
        print(f"note: {note}", file=sys.stderr)
    for finding in (each for each in written.findings if each.is_notable):
        print(f"warning: {finding}", file=sys.stderr)
    for system in written.systems:
        print(f"system {system}")
    print(f"next: syncattn-recipe {folder} @all --check")
    print(f"then: syncattn-recipe {folder} @all --report {folder.name}.html")


def _check_report(request: Request, table: bool) -> None:
    from ..report import viz  # noqa: F401  (says now if pages cannot be made here)

    if table:
        raise DataError(
            "--report: leave out --table, which runs nothing; with --report, finished stages are "
            "not run again"
        )
    if not request.rows:
        raise DataError("--report: name the systems that the report shows")


def _import_start(corpus: Corpus, args: argparse.Namespace) -> set[Path]:
    """Import the published start model of the trainings; return the ``log`` of stages just run.

    The settings of all trainings need the options of the model.
    """
    from ..recipes.display import Display
    from ..recipes.grid import Grid, describe_run
    from ..recipes.prepare import list_import
    from ..recipes.processes import Processes
    from ..recipes.run import Runner

    with Processes() as processes:
        provenance = describe_run(_choose_machines(args)[0], args.jobs)
        again = args.first == "import"
        runner = Runner(args.work, processes, Display(), again, provenance)
        Grid({}, runner, args.jobs, args.work).run_after(list_import(corpus), corpus)
    return runner.finished


def _run(
    args: argparse.Namespace, request: Request, view: ResultsView, finished: set[Path]
) -> None:
    from ..recipes.cell import list_stages, make_cells
    from ..recipes.display import Display
    from ..recipes.grid import Grid, describe_run
    from ..recipes.places import examined
    from ..recipes.processes import Processes
    from ..recipes.run import Runner, select_stages
    from .recipe_check import check_calls, rehearse

    corpus = request.corpus
    machines, gpus = _choose_machines(args)
    cells = make_cells(corpus, machines, request.overrides, request.list_cells())
    if args.check:
        rehearse(request, machines, cells, args.work)
        return
    cores = count_cores()
    parsing = min(cores, PARSERS_OF_A_GPU * gpus) if gpus else cores
    preparation, stages = list_stages(corpus, cells, cores, parsing)
    chosen = select_stages(
        [*preparation, *(stage for each in stages.values() for stage in each)],
        args.first,
        args.last,
    )
    check_calls(chosen, corpus.folder / "_data.yaml")
    if args.dry_run:
        for stage in chosen:
            print(f"== {stage.title}")
            print(*(f"$ {step}" for step in stage.steps), sep="\n")
        rows = ", ".join(dict.fromkeys(cell.row.label for cell in cells))
        print(f"trainings of {rows}: {len(cells)}", file=sys.stderr)
        return
    with Processes() as processes:
        provenance = describe_run(machines, args.jobs)
        again = args.first is not None
        runner = Runner(args.work, processes, Display(), again, provenance, finished)
        rest = {cell: [stage for stage in each if stage in chosen] for cell, each in stages.items()}
        grid = Grid(rest, runner, args.jobs, view.path)
        for stage in preparation if args.first else ():
            if stage not in chosen:
                runner.check_read(stage)
        failure = grid.run_after([stage for stage in preparation if stage in chosen], corpus)
    if any(stage.name == "examine" for stage in chosen):
        _say_severe(corpus, args.work / examined(corpus))
    if any(stage.name == "score" for stage in chosen) and view.path.exists():
        view.print_all(partly=failure is not None)
        if args.report:
            _write_report(args, view, partly=failure is not None)
    if failure:
        raise failure


def _say_severe(corpus: Corpus, path: Path) -> None:
    """Print a warning for each fault in the text beyond the corpus's limits.

    Such faults may distort the scores.
    """
    from syncattn_fairseq.data.doctor import read_limits

    from ..evaluation.findings_file import load_findings

    limits = read_limits(corpus.examine)
    for finding in load_findings(path) if path.exists() else ():
        if limits.are_passed(finding.kind, finding.count, finding.total):
            print(f"warning: {finding}", file=sys.stderr)


def _write_report(args: argparse.Namespace, view: ResultsView, partly: bool) -> None:
    from ..recipes.table_report import TableReport
    from .recipe_report import write_report

    report = TableReport(view.request, args.work, view.load_rows(partly))
    write_report(report, args.report, view.request.list_groups())


def _choose_machines(args: argparse.Namespace) -> tuple[Machines, int]:
    """Return the processes and devices to train with, and the number of GPUs of this machine."""
    import torch

    from ..recipes.launch import Machines

    gpus = torch.cuda.device_count()
    cpu = args.cpu or gpus == 0
    processes = args.processes or (1 if cpu else max(gpus // args.jobs, 1))
    return Machines(processes, cpu), gpus


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-recipe",
        "Prepare a corpus; train, decode and score systems on it, each with one or "
        "more seeds; print a table of their scores. The output of commands is kept next to the "
        "files that they make. The next run skips finished stages, and continues a training "
        "that was interrupted, or whose limit of updates has grown.",
        example="syncattn-recipe wmt14_en_de transformer syncattn --dry-run",
        epilog="Stages: import (of a model to start from), download, collect, tokenise, clean (for "
        "the built-in corpus: generate), examine, subwords, parse, binarise; for each system and "
        "seed train, decode, score. What reads something that was made again since is made again, "
        "too; a training stops instead. Environment variables: PARSE_OPTIONS holds more "
        "options for syncattn-parse, STANZA_DIR is the folder of its models, PARSER_JA and so on "
        "choose a language's parser, and SYNCATTN_MIRROR names mirrors to download from; a corpus "
        "may name one for the folder of its text.",
    )
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        help="name of a corpus in --configs, or a folder of your own with _data.yaml and "
        "_corpus.yaml; with --init, the folder to write",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="SYSTEM|@GROUP|SECTION.OPTION=VALUE",
        help="systems to train, by the names of their configs; groups of them, @all or one that "
        "the corpus defines; and settings to change in all systems. SYSTEM:SECTION.OPTION=VALUE "
        "changes a setting of one system, which gets a row of its own; NAME=SYSTEM:... gives "
        "this row a name (default: no system, only prepare the corpus)",
    )
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=_seed,
        metavar="N",
        help="random seeds; every system is trained once with each (default: the config's)",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=1,
        help="number of trainings that run at the same time (default: 1)",
    )
    parser.add_argument(
        "--from",
        dest="first",
        metavar="STAGE",
        help="first stage to run again, with all later ones; an interrupted training continues "
        "(default: only unfinished stages run)",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="train the systems of the corpus's plan (_plan.yaml), or those of them that are "
        "given, with the plan's seeds and settings, and print the table of its contrasts",
    )
    parser.add_argument(
        "--idea",
        metavar="[NAME=]FOLDER:SECTION.OPTION=VALUE",
        help="with --seeds: FOLDER of your plugin, and the settings that switch your idea on; "
        "plans, trains and scores the idea, called NAME, and its controls, and writes a page "
        "that says whether the idea helps",
    )
    parser.add_argument(
        "--init",
        action="store_true",
        help="write the configs of a new corpus into the folder CORPUS; give, in place of "
        "systems, two files of training text as people write it, such as train.en train.de, and "
        "optionally those of validation and test text (default: held out of the training text)",
    )
    parser.add_argument(
        "--start",
        type=Path,
        metavar="FOLDER",
        help="with --init: model that every system starts from, a published MarianMT folder or a "
        "folder of syncattn-import",
    )
    parser.add_argument(
        "--to", dest="last", metavar="STAGE", help="last stage to run (default: score)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the commands of the stages, and run nothing"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="list what is missing (programs, parsers' models, texts, disk, memory) and faults "
        "of the text, such as test sentences in the training text; then run every stage on 20 "
        "sentences",
    )
    parser.add_argument(
        "--configs",
        type=Path,
        default=SHARED,
        metavar="DIR",
        help="folder of the corpora's configs (default: that of this package)",
    )
    parser.add_argument(
        "--programs",
        nargs="+",
        default=[],
        metavar="NAME",
        help="further programs, besides cat, tr and kytea, that a corpus of your own may run to "
        "split text into words, as the entry words of its configs says (default: none)",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder for corpora/, data-bin/, checkpoints/, logs/ and results/ (default: the "
        "current folder)",
    )
    group = parser.add_argument_group("results")
    group.add_argument(
        "--results",
        type=Path,
        help="JSON file with the result of each system and seed, which later runs extend "
        "(default: results/CORPUS.json in --work)",
    )
    group.add_argument(
        "--table",
        action="store_true",
        help="print the table of the results that are there, and run nothing",
    )
    group.add_argument(
        "--figure",
        type=Path,
        help="picture to draw (.svg, .png or .pdf): differences to the baseline, with confidence "
        "intervals over seeds",
    )
    group.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="HTML page to write, which shows the translations and parses of the systems side by "
        "side",
    )
    group.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    group.add_argument(
        "--baseline",
        metavar="SYSTEM",
        help="system that the others are compared with (default: the baseline of each system's "
        "paper)",
    )
    group = parser.add_argument_group(
        "training", "The batch is the config's, whatever the number of GPUs."
    )
    group.add_argument(
        "--processes",
        type=positive,
        help="number of processes of a training, one for each GPU (default: the number of GPUs "
        "divided by --jobs, at least 1)",
    )
    group.add_argument(
        "--cpu", action="store_true", help="train on the CPU, even if there are GPUs"
    )
    parser.claims_outputs = False  # syncattn-report, in a process of its own, claims the report
    parser.name_files(files=["results"], outputs=["figure", "report"])
    return parser


def _seed(value: str) -> int:
    number = int(value)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


if __name__ == "__main__":
    sys.exit(main())
