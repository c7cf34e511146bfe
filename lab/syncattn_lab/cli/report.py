"""``syncattn-report``: show systems side by side on one test set, in one HTML file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.loggers import hushed
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import (
    add_model_files,
    command,
    new_parser,
    positive,
    warn_of_unknown,
)

from .draw import load_model
from .score import add_arguments, measures, read_input

if TYPE_CHECKING:
    from syncattn_fairseq.inference.model import Model

    from ..printed.training_log import Point
    from ..recipes.table_report import TableReport
    from ..report.page import Trainings


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    write_page(_parser().parse_args(argv))


def write_report(report: TableReport, page: Path, groups: Mapping[str, Sequence[str]]) -> None:
    """Write a page about all that a recipe has trained; log the call that writes one seed's."""
    if not report.shown:
        return  # every training failed
    from ..evaluation.differences import compare_bleu, group_rows
    from ..evaluation.results_tables import list_tables
    from ..recipes.systems import say_system
    from ..report.forest import draw_forest
    from ..report.page import Trainings

    call = report.call(page)
    log = report.work / "logs" / report.corpus.name / "report.log"
    log.write_text(f"$ {call}\n", encoding="utf-8")
    trainings = None
    if any(len(row.cells) > 1 for row in report.rows):
        compared = compare_bleu(report.rows)
        forest = draw_forest(*group_rows(report.rows, groups, say_system)) if compared else None
        parents, errors = report.means("UAS source"), report.means("AER")
        tables = list_tables(report.rows)
        trainings = Trainings(compared, *tables, forest, parents, errors, report.say_shown())
    write_page(_parser().parse_args(call.commands[0][1:]), trainings)


@hushed("sacrebleu")
def write_page(args: argparse.Namespace, trainings: Trainings | None = None) -> None:
    """Write the page, and say so; ``trainings`` is what is known of all seeds, if several."""
    # Imported here, since they take seconds.
    from tqdm import tqdm

    from ..evaluation.scoring import score_systems
    from ..printed.training_log import read_training_log
    from ..report.heat_maps import with_heat_maps
    from ..report.page import render
    from ..report.sentences import describe

    outputs, gold = read_input(args)
    logs: dict[str, list[list[Point]]] = {}
    for name, path in args.log:
        if name not in outputs:
            raise DataError(f"--log {name}: no --system has that name")
        logs.setdefault(name, []).append(read_training_log(path))
    models = _models(args, list(outputs))
    asked = measures(args)
    if asked["baseline"] is None:
        asked["baseline"] = next(iter(outputs))
    by_length = gold.source is not None or any(
        sentence.source
        for output in outputs.values()
        for sentence in chain(output.beam, output.forced or ())
    )
    scores = score_systems(outputs, gold, by_length=by_length, **asked)
    count_shown = min(args.sentences, len(gold.references))
    described = describe(outputs, gold, asked["scheme"], asked["moses_language"], count_shown)
    described = with_heat_maps(described, outputs, models)
    bar = {"desc": "sentences", "unit": "", "leave": False, "disable": None}
    sentences = tqdm(described, total=count_shown, **bar)
    title = args.title or f"{', '.join(outputs)}: {args.references}"
    page = render(title, scores, sentences, logs, trainings)
    with replacing(args.output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    for model in models.values():
        warn_of_unknown(model)
    size = args.output.stat().st_size / 1e6
    every = len(gold.references)
    count = f"{every} sentences" if count_shown == every else f"{count_shown} of {every} sentences"
    print(f"{args.output}: {count}, {len(outputs)} systems, {size:.1f} MB; open it in a browser")


def _models(args: argparse.Namespace, systems: list[str]) -> dict[int, Model]:
    for name, _ in args.attention:
        if name not in systems:
            raise DataError(f"--attention {name}: no --system has that name")
    return {systems.index(name): load_model(args, path) for name, path in args.attention}


def _parser() -> CommandLine:
    parser = new_parser(
        "syncattn-report",
        "Show systems side by side on one test set, in one HTML file that needs no "
        "network: scores, their significance and details, and every sentence with its parses, "
        "alignments and trees. The first system is the baseline unless --baseline names another.",
        example="syncattn-report --references words/test.de --tokenize none \\\n"
        "--system SyncAttn translations.txt forced.txt --output report.html",
    )
    add_arguments(parser)
    parser.add_argument(
        "--log",
        action="append",
        nargs=2,
        default=[],
        metavar=("NAME", "FILE"),
        help="what fairseq-train printed for this system, to draw curves of its losses; once for "
        "each seed",
    )
    parser.add_argument(
        "--attention",
        action="append",
        nargs=2,
        default=[],
        metavar=("NAME", "CHECKPOINT"),
        help="this system's model, to show its attention to sources and references",
    )
    parser.add_argument(
        "--sentences",
        type=positive,
        default=5000,
        help="show the first N sentences (default: 5000); the scores are those of all",
    )
    add_model_files(parser)
    parser.add_argument("--title", help="heading of the page")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE.html", help="the page to write"
    )
    parser.name_files(inputs=["log"], files=["attention"], outputs=["output"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
