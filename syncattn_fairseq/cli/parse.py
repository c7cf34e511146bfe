"""``syncattn-parse``: parse a text of any size into dependency heads, labels and CoNLL-U."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..base.option_fields import flag
from ..data.languages import find_language
from ..data.parses import MIN_PARSED, SPANS
from ..data.splitters import SPLITTERS, choose_splitter
from ..parsing.executors import Executor, make_local_executor
from ..parsing.formats import FORMATS
from ..parsing.parse_corpus import ParsingPlan, convert_parsed, parse_corpus
from ..parsing.parser import MAX_WORDS
from ..parsing.parsers import PARSERS, find_parser
from ..parsing.slurm_jobs import make_slurm_executor
from ..parsing.writer import CONLLU, HEADS, LABELS
from .command_line import CommandLine
from .common import command, fraction, new_parser, positive


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Parse a text, or convert the output of a parser."""
    args = make_parser().parse_args(argv)
    named = {HEADS: args.output, LABELS: args.labels, SPANS: args.spans, CONLLU: args.conllu}
    outputs = {kind: path for kind, path in named.items() if path}
    if args.parsed:
        report, rate = convert_parsed(
            args.input, args.parsed, args.format, outputs, args.min_parsed, args.anywhere
        )
    else:
        spec = args.parser
        source = find_parser(spec) if ":" in spec else PARSERS[spec].from_options(args)
        plan = ParsingPlan(
            args.input,
            outputs,
            source,
            args.max_words,
            args.shards,
            args.min_parsed,
            _choose_splitter(args) if args.spans else None,
        )
        report, rate = parse_corpus(plan, _make_executor(args), say=print)
    for line, detail in report.failures:
        print(f"{args.input}:{line}: the parser failed: {detail}")
    print(f"{args.output}: {report.summarise()}" + (f", {rate:,.0f} words/s" if rate else ""))


def _choose_splitter(args: argparse.Namespace) -> str:
    return args.splitter or choose_splitter(args.lang or find_language(args.input) or "")


def _parser_name(value: str) -> str:
    if value.partition(":")[0] not in PARSERS:
        raise argparse.ArgumentTypeError(f"{value!r} is not one of {', '.join(PARSERS)}")
    return value


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    source = PARSERS[args.parser.partition(":")[0]]
    named = ((), {}) if ":" in args.parser else (source.needs, source.options)
    needed, taken = (("format",), {}) if args.parsed else named
    chosen = "--parsed" if args.parsed else f"--parser {args.parser}"
    for option in sorted({"format"}.union(*(each.options for each in PARSERS.values()))):
        is_set = getattr(args, option) is not None
        if option in needed and not is_set:
            parser.error(f"{chosen} needs {flag(option)}")
        if is_set and option not in (*needed, *taken):
            parser.error(f"{flag(option)} does not go with {chosen}")
    if args.parsed:
        for option in ("shards", "workers", "max_words", "executor", "slurm"):
            if getattr(args, option) != parser.get_default(option):
                parser.error(f"{flag(option)} does not go with --parsed")
    if args.splitter and (args.parsed or not args.spans):
        parser.error("--splitter needs --spans, and does not go with --parsed")
    if args.anywhere and not args.parsed:
        parser.error("--anywhere needs --parsed")
    if args.slurm and args.executor != "slurm":
        parser.error("--slurm needs --executor slurm")


def _make_executor(args: argparse.Namespace) -> Executor:
    if args.executor == "slurm":
        split = (option.partition("=") for option in args.slurm or [])
        return make_slurm_executor(args.workers, {name: value or True for name, _, value in split})
    return make_local_executor(args.workers or 1)


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-parse",
        "Parse a text of one sentence per line, with white space between words, or as people "
        "write it: with --spans. The output has one line for each line of the text, in the same "
        "order: 1-based heads, 0 for the root. The line is empty if there is no parse: for blank "
        "lines, more than --max-words words, and sentences on which the parser fails. The last "
        "line printed says how many and why.",
        example="syncattn-parse --lang de --input words/train.de --output words/train.heads.de \\\n"
        "--labels words/train.labels.de --workers 8",
        epilog="The text is parsed in shards. Finished ones are kept in OUTPUT.shards, and a "
        "second run of the command does not parse them again, unless the text or the parser's "
        "files, versions or options have changed. At the end the folder is removed, and "
        "OUTPUT.manifest.json says what the output was made from; the same command then finds "
        "nothing to do. With --parsed, there are no shards and no manifest.",
    )
    parser.add_argument(
        "--input", type=Path, required=True, help="text to parse, one sentence on each line"
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        help="file to write: the head of each word, counted from 1; 0 is the root",
    )
    parser.add_argument(
        "--labels", type=Path, help="file to write: the dependency label of each word"
    )
    parser.add_argument(
        "--spans",
        type=Path,
        help="file to write: the character span of each word, such as 0-3 4-7; the text is then "
        "read as people write it, and the parser's own tokenizer, or else --splitter, finds the "
        "words",
    )
    parser.add_argument(
        "--splitter",
        choices=SPLITTERS,
        help="with --spans, for parsers without a tokenizer: splitter that finds the words "
        "(default: the splitter of the language in --lang or in the name of the text)",
    )
    parser.add_argument(
        "--conllu",
        type=Path,
        help="file to write: the whole parses in CoNLL-U, whose sent_id is the number of the "
        "line; sentences without a parse are left out",
    )
    parser.add_argument(
        "--max-words",
        type=positive,
        default=MAX_WORDS,
        help="most words of a sentence to parse; longer sentences get no parse; 1,000 words take "
        f"Stanza 10 s and 3 GB (default: {MAX_WORDS})",
    )
    parser.add_argument(
        "--min-parsed",
        type=fraction,
        default=MIN_PARSED,
        metavar="SHARE",
        help="smallest share of sentences, from 0 to 1, that must get a parse; below it nothing "
        f"is written (default: {MIN_PARSED})",
    )
    group = parser.add_argument_group("the parser")
    group.add_argument(
        "--parser",
        type=_parser_name,
        default="stanza",
        metavar="NAME",
        help="parser to run: "
        + ", ".join(f"{name} ({source.about})" for name, source in PARSERS.items())
        + " (default: stanza). Give its options, or name it with them in one word: "
        + ", ".join(f"{name}:{spec}" for name, source in PARSERS.items() for spec in source.specs),
    )
    for source in PARSERS.values():
        for name, settings in source.options.items():
            group.add_argument(flag(name), **settings)
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="with --command: format of the parses that the command prints; with --parsed: "
        "format of the parses in the file",
    )
    group.add_argument(
        "--parsed",
        type=Path,
        help="with --format, in place of running a parser: file of parses to read",
    )
    group.add_argument(
        "--anywhere",
        action="store_true",
        help="with --parsed: find the parse of each sentence by its characters, so that the file "
        "may have another order and further sentences, such as those of a whole corpus (default: "
        "one parse for each sentence, in order)",
    )
    group = parser.add_argument_group("shards")
    group.add_argument(
        "--shards",
        type=positive,
        help="number of shards that the text is divided into (default: one for each 2 MB)",
    )
    group.add_argument(
        "--workers",
        type=positive,
        help="number of shards that are parsed at the same time, in processes of one thread "
        "each; best the number of cores, or a few for each GPU (default: 1; with --executor "
        "slurm, all shards)",
    )
    group.add_argument(
        "--executor",
        choices=("local", "slurm"),
        default="local",
        help="where to parse: on this machine (local), or in arrays of Slurm jobs, which are "
        "requeued when they are preempted (default: local)",
    )
    group.add_argument(
        "--slurm",
        nargs="+",
        metavar="OPTION[=VALUE]",
        help="with --executor slurm: long options of sbatch, such as partition=gpu "
        "gpus-per-node=1 time=1:00:00 (default: time=4:00:00)",
    )
    parser.claims_outputs = False
    parser.check = _check
    parser.name_files(
        inputs=["input", "parsed"],
        files=["model", "tagger", "depparse"],
        outputs=[
            "output",
            "labels",
            "spans",
            "conllu",
            lambda args: [f"{args.output}.manifest.json"],
        ],
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
