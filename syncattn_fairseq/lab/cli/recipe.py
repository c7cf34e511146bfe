"""``syncattn-recipe``: repeat published runs, from public archives to a table of scores."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import syncattn_fairseq

from ...base.errors import DataError
from ...cli.command_line import CommandLine
from ...cli.common import announce, command, new_parser, positive
from ..recipes.corpus_facts import Corpus, load_corpus
from ..recipes.row import Row, is_row, read_row
from .own_commands import check_calls

if TYPE_CHECKING:
    from ..evaluation.differences import Group, Measure
    from ..evaluation.results_tables import TableRow
    from ..recipes.launch import Machines

#: Each parser needs 1 or 2 GB.
PARSERS_OF_A_GPU = 4
PLUGIN = Path(syncattn_fairseq.__file__).parent


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    args = _parser().parse_intermixed_args(argv)
    args.work = args.work.resolve()
    if not args.configs.is_dir():
        raise DataError(f"--configs {args.configs}: no such folder")
    corpus = load_corpus(args.configs / args.corpus, args.programs)
    if args.figure:
        from ..report import picture_files  # needs the extra viz

        picture_files.check_format(args.figure)
    args.results = args.results or args.work / "results" / f"{corpus.name}.json"
    words = [name for word in args.words for name in corpus.members(word)]
    _check_given(words, args.words, corpus)
    args.settings = [word for word in words if not is_row(word)]
    args.rows = _read_rows([word for word in words if is_row(word)], corpus)
    if args.plan:
        _read_plan(args, corpus)
    args.systems = [row.label for row in args.rows]
    if args.report:
        _check_report(args)
    if args.table:
        _print(args, corpus)
    else:
        _run(args, corpus)


def _read_plan(args: argparse.Namespace, corpus: Corpus) -> None:
    """Take rows and seeds from the corpus's plan, if they are not given."""
    from ..recipes.plan import load_plan

    if args.settings:
        raise DataError(f"{args.settings[0]}: --plan trains systems as they were planned")
    args.plan = load_plan(corpus.folder)
    planned = args.plan.list_trainings()
    _check_given(planned, args.words, corpus)
    if not args.rows:
        args.rows = _read_rows([*planned], corpus)
    if others := [row.label for row in args.rows if row.label not in planned]:
        raise DataError(f"{others[0]}: not in {corpus.folder / '_plan.yaml'}")


def _check_given(words: Iterable[str], given: Sequence[str], corpus: Corpus) -> None:
    """Refuse plugins that files name, in a group or a plan, and settings of all systems."""
    from ..recipes.known_options import ONLY_GIVEN

    for word in words:
        if word not in given and not is_row(word):
            raise DataError(f"{corpus.folder}: {word}: a group holds systems only")
        if word not in given and "common.user_dir=" in word:
            raise DataError(f"{corpus.folder}: {word}: {ONLY_GIVEN}")


def _read_rows(words: Sequence[str], corpus: Corpus) -> list[Row]:
    """Read rows, each once."""
    rows: dict[str, Row] = {}
    for word in words:
        row = read_row(word, corpus.known_systems())
        if rows.setdefault(row.label, row) != row:
            raise DataError(f"{word}: {row.label} is another row already; choose another name")
    return [*rows.values()]


def _run(args: argparse.Namespace, corpus: Corpus) -> None:
    from ...base.locks import locked
    from ..recipes.cells import Grid, facts
    from ..recipes.display import Display
    from ..recipes.experiment import Cell, Experiment
    from ..recipes.prepare import preparation
    from ..recipes.processes import Processes
    from ..recipes.run import Runner, check, select
    from ..recipes.systems import read_overrides

    overrides = read_overrides(args.settings)
    machines, gpus = _machines(args)
    experiment = Experiment(corpus, PLUGIN, machines, overrides, args.valid_bleu)
    cells = [Cell(experiment, row, seed) for seed, row in _choose_cells(args)]
    prepared = cells or [Cell(experiment, read_row(name)) for name in corpus.members("@all")]
    needs = set().union(*(cell.needs for cell in prepared))
    cores = len(os.sched_getaffinity(0))
    parsing = machines.parsing(min(cores, PARSERS_OF_A_GPU * gpus) if gpus else cores)
    preparing = preparation(corpus, cores, parsing, needs)
    training = {cell: cell.stages() for cell in cells}
    chosen = select(
        [*preparing, *(s for made in training.values() for s in made)], args.first, args.last
    )
    check_calls(chosen, corpus.folder / "_data.yaml")
    first = [stage for stage in preparing if stage in chosen]
    rest = {cell: [stage for stage in made if stage in chosen] for cell, made in training.items()}
    if args.dry_run:
        for stage in chosen:
            print(f"== {stage.title}")
            print(*(f"$ {step}" for step in stage.steps), sep="\n")
        return

    display = Display()
    with Processes() as processes:
        runner = Runner(
            args.work, processes, display, args.first is not None, facts(machines, args.jobs)
        )
        check([stage for stage in chosen if not runner.is_done(stage)])
        corpus_lock = args.work / "logs" / corpus.name / "lock"

        def waits() -> None:
            display.say(f"== {corpus.name}: waiting for another recipe")

        if not all(map(runner.is_done, first)):
            with locked(corpus_lock, waits) as lock:
                runner.run(first, [lock])
        if not any(rest.values()):
            return
        failed = None
        with locked(corpus_lock, waits, shared=True) as lock:
            try:
                Grid(rest, runner, args.jobs, args.results, overrides).run([lock])
            except DataError as error:
                failed = error
    if any(stage.name == "score" for stage in chosen) and args.results.exists():
        _print(args, corpus, partly=failed is not None)
        if args.report:
            from ..recipes.table_report import TableReport
            from .recipe_report import write_report

            rows = _rows(args, corpus, partly=failed is not None)
            given = {row.label: row for row in args.rows}
            report = TableReport(experiment, args.work, rows, given)
            write_report(report, args.report, _groups(args, corpus))
    if failed:
        raise failed


def _choose_cells(args: argparse.Namespace) -> list[tuple[int | None, Row]]:
    """Return seeds and rows, all rows of a seed together; None: the config's seed."""
    seeds: list[int | None] = [*dict.fromkeys(args.seeds or [None])]
    if not args.plan:
        return list(product(seeds, args.rows))
    planned = args.plan.list_trainings()
    every = sorted({seed for row in args.rows for seed in planned[row.label]})
    chosen = every if args.seeds is None else seeds
    cells = [(seed, row) for seed in chosen for row in args.rows if seed in planned[row.label]]
    if not cells:
        raise DataError(f"--seeds {chosen[0]}: planned are {', '.join(map(str, every))}")
    return cells


def _machines(args: argparse.Namespace) -> tuple[Machines, int]:
    import torch

    from ..recipes.launch import Machines

    if args.nodes > 1 and args.slurm is None:
        raise DataError(f"--nodes {args.nodes}: needs --slurm, which starts them")
    gpus = torch.cuda.device_count()
    cpu = args.cpu or (gpus == 0 and args.slurm is None)
    processes = args.processes or (1 if cpu else max(gpus // args.jobs, 1))
    return Machines(processes, args.nodes, cpu, args.slurm), gpus


def _print(args: argparse.Namespace, corpus: Corpus, partly: bool = False) -> None:
    """Print the results; ``partly``: of the systems that have any."""
    if not args.results.is_file():
        raise DataError(
            f"{args.results}: no such file; run the recipe without --table first, or name its "
            "results with --results"
        )
    if args.plan:
        _print_contrasts(args)
    else:
        _print_table(args, corpus, partly)


def _print_contrasts(args: argparse.Namespace) -> None:
    """Print the contrasts of the corpus's plan."""
    from ...base.text_tables import format_table, markdown_table
    from ..evaluation.results_file import load_results
    from ..recipes.contrasts import group_contrasts, index_cells, make_contrast_tables

    places = {name: args.results.with_name(f"{name}.json") for name in args.plan.list_corpora()}
    others = {name: load_results(place) for name, place in places.items() if place.exists()}
    cells = index_cells(load_results(args.results), others, args.plan.names)
    kind, bullet = (markdown_table, "- ") if args.markdown else (format_table, "")
    print()
    print(make_contrast_tables(args.plan, cells, kind, bullet))
    if args.figure:
        _save_forest(args.figure, *group_contrasts(args.plan, cells))


def _print_table(args: argparse.Namespace, corpus: Corpus, partly: bool = False) -> None:
    """Print the results; ``partly``: of the systems that have any."""
    from ...base.text_tables import format_table, markdown_table
    from ..evaluation.results_tables import make_tables

    rows = _rows(args, corpus, partly)
    if rows:
        kind, bullet = (markdown_table, "- ") if args.markdown else (format_table, "")
        print()
        print(make_tables(rows, kind, bullet))
        if args.figure:
            _draw(args, corpus, rows)
        shown = {row.system for row in rows}
        if missing := [system for system in args.systems if system not in shown]:
            text = f"{bullet}no results yet: {', '.join(missing)}"
            print(textwrap.fill(text, 118, subsequent_indent=" " * len(bullet)))


def _check_report(args: argparse.Namespace) -> None:
    """Check before anything runs that a report can be written."""
    from ..report import viz  # noqa: F401  (needs the extra viz)

    if args.table:
        raise DataError(
            "--report: leave out --table, since a report reads translations; what is done already "
            "is not done again"
        )
    if not args.rows:
        raise DataError("--report: name the systems that it is about")


def _draw(args: argparse.Namespace, corpus: Corpus, rows: Sequence[TableRow]) -> None:
    """Draw how far systems are from their baselines, in the groups that were asked for."""
    from ..evaluation.differences import group_rows

    _save_forest(args.figure, *group_rows(rows, _groups(args, corpus)))


def _groups(args: argparse.Namespace, corpus: Corpus) -> dict[str, Sequence[str]]:
    """Return the systems of the groups that were asked for."""
    words = [word for word in args.words if word.startswith("@") and word != "@all"]
    return {word[1:]: corpus.members(word) for word in words}


def _save_forest(path: Path, measures: Sequence[Measure], groups: Sequence[Group]) -> None:
    from ..report.forest import draw_forest
    from ..report.picture_files import save

    save(draw_forest(measures, groups), path)
    announce(path, "the differences to the baseline", sys.stderr)


def _rows(args: argparse.Namespace, corpus: Corpus, partly: bool) -> list[TableRow]:
    """Return the results of the systems that were asked for, after those of their baselines."""
    from ..evaluation.results_file import load_results
    from ..evaluation.results_tables import make_rows

    def baseline(system: str) -> str:
        chosen: str = args.baseline or corpus.baseline(configs.get(system, system))
        return chosen

    results = load_results(args.results)
    configs = {cell["system"]: cell.get("config", cell["system"]) for cell in results["cells"]}
    known = dict.fromkeys(
        cell["system"]
        for cell in results["cells"]
        if args.seeds is None or cell["seed"] in args.seeds
    )
    words = {read_row(word).label for word in args.words if is_row(word)}
    needed = () if partly else words  # but not every system of a group
    wanted = [name for name in args.systems or known if name in known or name in needed]
    if not wanted and not partly:
        raise DataError(f"{args.results}: no results" + " with these seeds" * bool(args.seeds))
    compared = [name for name in map(baseline, wanted) if name in known or name == args.baseline]
    return make_rows(results, list(dict.fromkeys([*compared, *wanted])), args.seeds, baseline)


def _parser() -> CommandLine:
    parser = new_parser(
        "syncattn-recipe",
        "Prepare a corpus; train, decode and score systems on it, each with one or "
        "more seeds; print a table of their scores. The output of commands is kept next to the "
        "files that they make. The next run skips finished stages, and continues a training "
        "that was interrupted, or whose limit of updates has grown.",
        example="syncattn-recipe wmt14_en_de transformer syncattn --dry-run",
        epilog="Stages: download, collect, tokenise, clean (for the built-in corpus: generate), "
        "align (with gold alignments), subwords, parse, binarise; for each system and seed train, "
        "decode, score. What reads something that was made again since is made again, too; a "
        "training stops instead. Environment variables: PARSE_OPTIONS holds more "
        "options for syncattn-parse, STANZA_DIR is the folder of its models, PARSER_JA and so on "
        "choose a language's parser, and SYNCATTN_MIRROR names mirrors to download from; a corpus "
        "may name one for the folder of its text.",
    )
    parser.add_argument("corpus", metavar="CORPUS", help="a folder of --configs")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="SYSTEM|@GROUP|SECTION.OPTION=VALUE",
        help="systems to train, by the names of their configs; groups of them, @all or one that "
        "the corpus defines; and settings to change in all systems. SYSTEM:SECTION.OPTION=VALUE "
        "changes a setting of one system, which gets a row of its own; NAME=SYSTEM:... gives this "
        "row a name. Without a system, only prepare the corpus",
    )
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=_seed,
        metavar="N",
        help="random seeds, one training each for every system (default: the config's)",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="how many trainings to run at a time (default: 1)",
    )
    parser.add_argument(
        "--from",
        dest="first",
        metavar="STAGE",
        help="redo this stage and later ones; a training that was interrupted continues",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="train the systems of the corpus's plan (_plan.yaml), or those given, with its seeds; "
        "the table is that of its contrasts",
    )
    parser.add_argument("--to", dest="last", metavar="STAGE", help="the last stage to do")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    parser.add_argument(
        "--configs",
        type=Path,
        default=PLUGIN / "configs",
        metavar="DIR",
        help="where the configs are (default: those of this package)",
    )
    parser.add_argument(
        "--programs",
        nargs="+",
        default=[],
        metavar="NAME",
        help="programs besides cat, tr and kytea that the corpus of another --configs may start, "
        "as it says in words",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where corpora/, data-bin/, checkpoints/, logs/ and results/ go (default: here)",
    )
    group = parser.add_argument_group("results")
    group.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="JSON with a result for each system and seed, kept from run to run (default: "
        "results/CORPUS.json in --work)",
    )
    group.add_argument(
        "--table", action="store_true", help="print the table of these results; run nothing"
    )
    group.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="also draw the differences to the baseline, in the groups given, with intervals over "
        "seeds: .svg, .png or .pdf",
    )
    group.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="also write a page that shows the systems side by side, see syncattn-report",
    )
    group.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    group.add_argument(
        "--baseline",
        metavar="SYSTEM",
        help="the system to compare with (default: the baseline of each system's paper)",
    )
    group = parser.add_argument_group(
        "training", "The batch is the config's, whatever the number of GPUs."
    )
    group.add_argument(
        "--processes",
        type=positive,
        metavar="N",
        help="processes on each machine, one for each GPU (default: the GPUs of this machine, "
        "divided by --jobs, or 1)",
    )
    group.add_argument("--nodes", type=positive, default=1, metavar="N", help="Slurm machines")
    group.add_argument("--cpu", action="store_true", help="train without GPUs")
    group.add_argument(
        "--valid-bleu",
        action="store_true",
        help="also measure BLEU on the validation set, with greedy search",
    )
    group.add_argument(
        "--slurm",
        nargs="*",
        metavar="OPTION[=VALUE]",
        help="parse, train and decode in Slurm jobs and wait for them; long options of sbatch, "
        "such as partition=gpu time=7-0 (default: 4 hours; a longer training continues in another "
        "job)",
    )
    parser.name_files(files=["results"], outputs=["figure", "report"])
    return parser


def _seed(value: str) -> int:
    number = int(value)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


if __name__ == "__main__":
    sys.exit(main())
