"""``syncattn-recipe``: a published run, from public archives to a scored system."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import syncattn_fairseq

from ..recipes.corpus import Corpus, load_corpus
from ..recipes.experiment import Experiment
from ..recipes.launch import Machines
from ..recipes.needs import needs_of_all
from ..recipes.prepare import preparation
from ..recipes.run import Execute, alone, run, select, show
from .common import command, new_parser, positive

#: A parser needs 1 or 2 GB.
PARSERS_OF_A_GPU = 4
PLUGIN = Path(syncattn_fairseq.__file__).parent


@command
def main(argv: Sequence[str] | None = None, execute: Execute | None = None) -> None:
    """Run the command; ``execute`` is for tests."""
    args = _parser().parse_intermixed_args(argv)
    import torch  # which takes seconds

    corpus = load_corpus(args.configs / args.corpus)
    work = args.work.resolve()
    cores, gpus = len(os.sched_getaffinity(0)), torch.cuda.device_count()
    parsers = min(cores, PARSERS_OF_A_GPU * gpus) if gpus else cores
    training = []
    needs = needs_of_all(corpus)
    if any("=" not in name for name in args.systems):
        experiment = _experiment(args, corpus, gpus)
        needs = experiment.needs()
        baseline = corpus.baseline(experiment.systems[0])
        known = (corpus.folder / f"{baseline}.yaml").exists()
        before = known and (work / experiment.output(baseline)).exists()
        training = experiment.stages([baseline] if before else [])
    preparing = preparation(corpus, cores, parsers, needs)
    chosen = select(preparing + training, args.first, args.last)
    if args.dry_run:
        show(chosen)
        return
    first = [stage for stage in chosen if stage in preparing]
    again = args.first is not None
    with alone(work, corpus.name) if first else nullcontext():
        run(first, work, again, execute)
    run([stage for stage in chosen if stage not in first], work, again, execute)


def _experiment(args: argparse.Namespace, corpus: Corpus, gpus: int) -> Experiment:
    cpu = args.cpu or (gpus == 0 and args.slurm is None)
    processes = args.processes or (1 if cpu else max(gpus, 1))
    systems = [name for name in args.systems if "=" not in name]
    overrides = [name for name in args.systems if "=" in name]
    machines = Machines(processes, args.nodes, cpu, args.slurm)
    return Experiment(corpus, systems, PLUGIN, machines, overrides)


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "syncattn-recipe",
        "Prepare a corpus, and train, decode and score systems on it. Every command is "
        "printed, and its output kept in logs/; what is done is skipped on the next run.",
        epilog="Stages: download, collect, tokenise, clean, subwords, parse, binarise; for each "
        "system train, decode, score. The environment variable PARSE_OPTIONS holds more options of "
        "syncattn-parse, SYNCATTN_MIRROR places to download from.",
    )
    parser.add_argument("corpus", metavar="CORPUS", help="a folder of --configs")
    parser.add_argument(
        "systems",
        nargs="*",
        metavar="SYSTEM|SECTION.OPTION=VALUE",
        help="systems to train, by the names of their configs, and settings to change in all of "
        "them; without any, the corpus is prepared only",
    )
    parser.add_argument(
        "--from", dest="first", metavar="STAGE", help="do this and later ones again"
    )
    parser.add_argument("--to", dest="last", metavar="STAGE", help="the last stage to do")
    parser.add_argument("--dry-run", action="store_true", help="print the commands alone")
    parser.add_argument(
        "--configs",
        type=Path,
        default=PLUGIN.parent / "configs",
        metavar="DIR",
        help="where the configs are (default: those of the checkout)",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where corpora/, data-bin/, checkpoints/ and logs/ go (default: here)",
    )
    group = parser.add_argument_group("training", "The batch is that of the config on any number.")
    group.add_argument(
        "--processes",
        type=positive,
        metavar="N",
        help="on each machine, one for each GPU (default: the GPUs of this machine, or 1)",
    )
    group.add_argument("--nodes", type=positive, default=1, metavar="N", help="machines of Slurm")
    group.add_argument("--cpu", action="store_true", help="train without GPUs")
    group.add_argument(
        "--slurm",
        nargs="*",
        metavar="OPTION[=VALUE]",
        help="train as a job of Slurm and wait for it; long options of sbatch, such as "
        "partition=gpu time=7-0",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
