"""``syncattn-show --html``: an HTML page of several systems side by side on the same test set."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError, printable
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.loggers import hushed
from syncattn_fairseq.cli.common import positive, warn_of_unknown

from .models import load_model
from .score import read_input, scoring_options, warn
from .score_words import read_word_groups

if TYPE_CHECKING:
    from syncattn_fairseq.data.doctor import Finding
    from syncattn_fairseq.inference.model import Model

    from ..evaluation.scoring import Gold, Output, ScoringOptions, SystemScore
    from ..evaluation.word_groups import GroupedText
    from ..printed.training_log import Point
    from ..report.page import Trainings
    from .score_words import WordGroups


@hushed("sacrebleu", "fairseq")
def write_page(args: argparse.Namespace, trainings: Trainings | None = None) -> None:
    """Write the HTML page, and print its size and the answers that it begins with.

    ``trainings`` are the results over all seeds; None: one seed of each system is known.
    """
    # Imported here, since they take seconds.
    from tqdm import tqdm

    from ..evaluation.scoring import score_systems
    from ..printed.training_log import read_training_log
    from ..report.heat_maps import with_heat_maps
    from ..report.page import Groups, render
    from ..report.sentences import describe

    outputs, gold = read_input(args)
    logs: dict[str, list[list[Point]]] = {}
    for name, path in args.log:
        if name not in outputs:
            raise DataError(f"--log {name}: no --system has this name")
        logs.setdefault(name, []).append(read_training_log(path))
    models = _models(args, list(outputs))
    by_length = gold.source is not None or any(
        sentence.source.words
        for output in outputs.values()
        for sentence in chain(output.beam, output.forced or ())
    )
    options = replace(scoring_options(args), by_length=by_length)
    if options.baseline is None:
        options = replace(options, baseline=next(iter(outputs)))
    scores = score_systems(outputs, gold, options, warn)
    groups = _read_groups(args, outputs, gold, options)
    trivial: dict[str, SystemScore] = {}
    if groups and len(outputs) == 1:
        trivial = _score_trivial(groups.text, gold, options)
    count_shown = min(args.sentences, len(gold.references))
    by_spaces = options.tokenize == "none"
    text = groups.text if groups else None
    described = describe(outputs, gold, options.moses_language, count_shown, by_spaces, text)
    described = with_heat_maps(described, outputs, models)
    bar = {"desc": "sentences", "unit": "", "leave": False, "disable": None}
    sentences = tqdm(described, total=count_shown, **bar)
    title = args.title or f"{', '.join(outputs)} on {Path(args.references).name}"
    findings = _find_faults(args.examined) if args.examined else None
    found = Groups(groups.scores, groups.tabulate()) if groups else None
    page = render(title, scores, sentences, logs, trainings, findings, found, trivial)
    with replacing(args.html) as temporary:
        temporary.write_text(page.html, encoding="utf-8")
    for model in models.values():
        warn_of_unknown(model)
    size = args.html.stat().st_size / 1e6
    every = len(gold.references)
    count = f"{every} sentences" if count_shown == every else f"{count_shown} of {every} sentences"
    systems = f"{len(outputs)} system" + ("s" if len(outputs) > 1 else "")
    print(f"{args.html}: {count}, {systems}, {size:.1f} MB; open it in a browser")
    for question, answer in page.answers.items():
        print(printable(f"{question} {answer}"))


def _read_groups(
    args: argparse.Namespace, outputs: Mapping[str, Output], gold: Gold, options: ScoringOptions
) -> WordGroups | None:
    """Return the scores of words in groups, or None after a warning if they cannot be computed.

    `DataError`: they were asked for with ``--by``, and cannot be computed.
    """
    try:
        return read_word_groups(args, outputs, gold, options)
    except DataError as error:
        if args.by:
            raise
        warn(f"no groups of words: {error}")
        return None


def _score_trivial(
    text: GroupedText, gold: Gold, options: ScoringOptions
) -> dict[str, SystemScore]:
    """Return the scores of trivial translations by name: the copied source, and word by word."""
    from ..evaluation.scoring import Gold, Output, score_systems
    from ..evaluation.trivial import copy_source, translate_by_word
    from ..printed.sentences import PrintedSentence

    made = {
        "the source itself": copy_source(text),
        "a translation word by word": translate_by_word(text),
    }
    outputs = {
        name: Output([PrintedSentence(line) for line in lines])
        for name, lines in made.items()
        if lines is not None
    }
    plain = replace(options, baseline=None, by_length=False, moses_language=None)
    return score_systems(outputs, Gold(gold.references), plain) if outputs else {}


def _find_faults(path: Path) -> list[Finding]:
    """Return the faults of a corpus's text, from a recipe's file or a folder of binarised data."""
    if path.is_dir():
        from ..evaluation.examined_data import examine_data

        return examine_data(path)
    from ..evaluation.findings_file import load_findings

    return load_findings(path)


def _models(args: argparse.Namespace, systems: list[str]) -> dict[int, Model]:
    for name, _ in args.attention:
        if name not in systems:
            raise DataError(f"--attention {name}: no --system has this name")
    return {systems.index(name): load_model(args, path) for name, path in args.attention}


def add_page_arguments(parser: Any) -> None:
    """Add the options of the HTML page, except the options for scores."""
    parser.add_argument(
        "--log",
        action="append",
        nargs=2,
        default=[],
        metavar=("NAME", "FILE"),
        help="FILE is a log of fairseq-train for the system NAME, whose losses are drawn as "
        "curves; give the option once for each seed",
    )
    parser.add_argument(
        "--attention",
        action="append",
        nargs=2,
        default=[],
        metavar=("NAME", "CHECKPOINT"),
        help="CHECKPOINT of the system NAME, whose attention in sources and references is shown",
    )
    parser.add_argument(
        "--examined",
        type=Path,
        metavar="FILE|DIR",
        help="FILE in which a recipe keeps faults of the text, corpora/CORPUS/examined.json, or "
        "DIR with the binarised text, which is then examined; the page gets a table of the "
        "faults",
    )
    parser.add_argument(
        "--sentences",
        type=positive,
        default=5000,
        help="number of sentences on the page, from the first; scores are those of all sentences "
        "(default: 5000)",
    )
    parser.add_argument(
        "--title",
        help="heading of the page (default: the names of the systems and of the file of "
        "references)",
    )
