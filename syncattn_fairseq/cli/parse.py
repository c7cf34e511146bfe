"""``syncattn-parse``: dependency heads, labels and CoNLL-U of a text of any size."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import DataError
from ..parsing.corpus import convert_parsed, parse_corpus
from ..parsing.executors import Executor, local, slurm
from ..parsing.external import Command
from ..parsing.formats import FORMATS
from ..parsing.parser import MAX_WORDS
from ..parsing.shards import ParserSource
from ..parsing.stanza_parser import StanzaModels
from ..parsing.writer import CONLLU, HEADS, LABELS
from .common import check_outputs, command, positive

#: What each parser needs, and what else it takes.
_OPTIONS = {
    "stanza": (["lang"], ["stanza_dir", "tagger", "depparse"]),
    "eda": (["model"], []),
    "command": (["command", "format"], []),
    "parsed": (["format"], []),
}


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    named = {HEADS: args.output, LABELS: args.labels, CONLLU: args.conllu}
    check_outputs(*named.values())
    outputs = {kind: path for kind, path in named.items() if path}
    if args.parsed:
        report, rate = convert_parsed(args.input, args.parsed, args.format, outputs)
    else:
        report, rate = parse_corpus(
            args.input,
            outputs,
            _source(args),
            args.max_words,
            _executor(args),
            args.shards,
            say=print,
        )
    for line, detail in report.failures:
        print(f"{args.input}:{line}: the parser failed: {detail}")
    print(f"{args.output}: {report.totals()}" + (f", {rate:,.0f} words/s" if rate else ""))


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    chosen = "parsed" if args.parsed else args.parser
    needed, taken = _OPTIONS[chosen]
    for option in sorted({name for lists in _OPTIONS.values() for some in lists for name in some}):
        given = getattr(args, option) is not None
        flag = f"--{option.replace('_', '-')}"
        name = "--parsed" if args.parsed else f"--parser {chosen}"
        if option in needed and not given:
            parser.error(f"{name} needs {flag}")
        if given and option not in needed + taken:
            parser.error(f"{flag} does not go with {name}")
    if (args.tagger is None) != (args.depparse is None) or (args.tagger and args.stanza_dir):
        parser.error("give --stanza-dir, or both of --tagger and --depparse")
    if args.slurm and args.executor != "slurm":
        parser.error("--slurm needs --executor slurm")


def _source(args: argparse.Namespace) -> ParserSource:
    if args.parser == "eda":
        return Command.eda(str(args.model.resolve()))
    if args.parser == "command":
        return Command.of_user(args.command, args.format)
    for path in (args.stanza_dir, args.tagger, args.depparse):
        if path and not path.exists():
            raise DataError(f"{path}: no such file or directory")
    paths = (str(p.resolve()) if p else None for p in (args.stanza_dir, args.tagger, args.depparse))
    return StanzaModels(args.lang, *paths)


def _executor(args: argparse.Namespace) -> Executor:
    if args.executor == "slurm":
        split = (option.partition("=") for option in args.slurm or [])
        return slurm(args.workers, {name: value or True for name, _, value in split})
    return local(args.workers or 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="syncattn-parse",
        description="Parse a text of one sentence per line, with white space between words. The "
        "output has a line for each line of the text, 1-based heads with 0 for the root, in its "
        "order. It is empty where there is no parse: for blank lines, more than --max-words words, "
        "control characters in words, and sentences on which the parser fails. The last line "
        "printed says how many and why.",
        epilog="The text is parsed in shards. Finished ones are kept in OUTPUT.shards and not "
        "parsed again when the command is run again, unless the text, the parser's files, versions "
        "or options are others. At the end the folder is removed, and OUTPUT.manifest.json says "
        "what the output was made from; the same command then finds nothing to do.",
    )
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="the text")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="the heads of its words"
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="write the relations to the heads as well"
    )
    parser.add_argument(
        "--conllu",
        type=Path,
        metavar="FILE",
        help="write all that the parser says as CoNLL-U; sentences without a parse are left out, "
        "sent_id is the number of the line",
    )
    parser.add_argument(
        "--max-words",
        type=positive,
        default=MAX_WORDS,
        metavar="N",
        help="longer sentences are not parsed; 1,000 words take Stanza 10 s and 3 GB (default: "
        f"{MAX_WORDS})",
    )
    group = parser.add_argument_group("the parser")
    group.add_argument(
        "--parser",
        choices=("stanza", "eda", "command"),
        default="stanza",
        help="Stanza, on a GPU where there is one; EDA, on KyTea's tags for the words of the text; "
        "or any --command (default: stanza)",
    )
    group.add_argument("--lang", metavar="LANG", help="Stanza's code of the language, such as de")
    group.add_argument(
        "--stanza-dir",
        type=Path,
        metavar="DIR",
        help="what stanza.download has filled, or with one's own models LANG_tagger.pt and "
        "LANG_parser.pt (default: Stanza's own folder); nothing is ever downloaded",
    )
    group.add_argument("--tagger", type=Path, metavar="FILE", help="one's own Stanza tagger")
    group.add_argument("--depparse", type=Path, metavar="FILE", help="one's own Stanza parser")
    group.add_argument("--model", type=Path, metavar="FILE", help="EDA's model")
    group.add_argument(
        "--command",
        metavar="COMMAND",
        help="of the shell; reads the sentences and writes their parses in --format, in order, as "
        "'udpipe --input=horizontal --tag --parse MODEL' does",
    )
    group.add_argument("--format", choices=FORMATS, help="what --command or --parsed is written in")
    group.add_argument(
        "--parsed",
        type=Path,
        metavar="FILE",
        help="instead of a parser: what one has written for this text already",
    )
    group = parser.add_argument_group("shards")
    group.add_argument(
        "--shards",
        type=positive,
        metavar="N",
        help="how many shards (default: one per 2 MB of text)",
    )
    group.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="how many are parsed at the same time, in processes of one thread each; best as many "
        "as there are cores, or a few for each GPU (default: 1; of Slurm, all shards)",
    )
    group.add_argument(
        "--executor",
        choices=("local", "slurm"),
        default="local",
        help="parse on this machine, or in an array of Slurm jobs, which are requeued when they "
        "are preempted (default: local)",
    )
    group.add_argument(
        "--slurm",
        nargs="+",
        metavar="OPTION[=VALUE]",
        help="long options of sbatch, such as partition=gpu gpus-per-node=1 time=60 (minutes; "
        "default: 240)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
