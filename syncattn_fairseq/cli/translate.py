"""``syncattn-translate``: translate plain text, and print parses or alignments if asked to."""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ..base.errors import DataError
from .command_line import CommandLine
from .common import (
    add_model_files,
    add_tokenised,
    command,
    new_parser,
    number,
    positive,
    progress,
    read_subwords,
    warn_of_unknown,
)

if TYPE_CHECKING:
    from ..inference import Model
    from ..inference.answers import Translation

#: Lines to read and sort by length at a time.
_LINES = 2000


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Translate block by block, and print what is asked for."""
    parser = _parser()
    args = parser.parse_args(argv)
    if (args.alignment_layer or args.alignment_head) and not args.alignments:
        parser.error("--alignment-layer and --alignment-head need --alignments")
    from ..base.inputs import name_input
    from ..base.text import read_lines
    from ..data.segmenters import InSubwords
    from ..inference import load

    model = load(
        args.path,
        args.data_bin,
        read_subwords(args),
        args.source_parser,
        args.device,
        args.user_dir,
    )
    model.beam, model.batch_size, model.length_penalty = args.beam, args.batch_size, args.lenpen
    model.max_len, model.too_long = args.max_len, "empty"
    model.tokenised |= args.tokenised
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    lines = progress(read_lines(args.input))
    name, done = name_input(args.input), 0
    too_long: dict[int, str] = {}  # by line, from 1
    warned: defaultdict[str, list[int]] = defaultdict(list)
    while sentences := list(islice(lines, _LINES)):
        try:
            translations = model.translate(sentences, warn=False)  # said below, by line
        except InSubwords as error:
            raise DataError(f"{name}:{done + error.number}: {error.fault}") from None
        long = [index for index, each in enumerate(translations) if each.too_long]
        too_long |= {done + index + 1: translations[index].too_long for index in long}
        stops = bool(long) and args.too_long == "stop"
        if stops:
            sentences, translations = sentences[: long[0]], translations[: long[0]]
        sentences = ["" if n in long else sentence for n, sentence in enumerate(sentences)]
        sys.stdout.writelines(_output(model, sentences, translations, args))
        sys.stdout.flush()
        for warning, indices in model.list_warnings(translations, ("cut", "unparsed")).items():
            warned[warning] += [done + index + 1 for index in indices]
        done += len(sentences)
        if stops:
            break
    for warning, numbers in warned.items():
        count = f"{len(numbers)} of {done} lines, this is the first"
        print(f"warning: {name}:{numbers[0]}: {warning}: {count}", file=sys.stderr)
    warn_of_unknown(model)
    if too_long:
        line, reason = min(too_long.items())
        remedy = "split it, or use --too-long empty"
        if args.too_long == "empty":
            remedy = f"no translation: {len(too_long)} of {done} lines, this is the first"
        raise DataError(f"{name}:{line}: {reason}; {remedy}")


def _output(
    model: Model, sentences: list[str], translations: list[Translation], args: argparse.Namespace
) -> Iterator[str]:
    if args.parses:
        for pair in model.parse(sentences, translations):
            for title, parse in (("source", pair.source), ("translation", pair.target)):
                if parse is not None:
                    yield f"# side = {title}\n{parse.conllu()}"
    elif args.alignments:
        for alignment in model.align(
            sentences, translations, args.alignment_layer, args.alignment_head
        ):
            yield f"{alignment.target}\t{alignment}\n"
    else:
        for translation in translations:
            yield f"{translation}\n"


def _parser() -> CommandLine:
    parser = new_parser(
        "syncattn-translate",
        "Translate lines of text, and print one line for each.",
        example="syncattn-translate --path checkpoints/checkpoint_best.pt --data-bin data-bin \\\n"
        "--subwords bpe.model < words/test.en",
    )
    parser.add_argument(
        "--path",
        required=True,
        help="a checkpoint, several of them separated by ':', or the folder of an exported model",
    )
    add_model_files(parser)
    add_tokenised(parser)
    parser.add_argument(
        "--input", default=0, metavar="FILE", help="text to translate (standard input)"
    )
    parser.add_argument("--beam", type=positive, default=5, help="size of the beam (5)")
    parser.add_argument("--batch-size", type=positive, default=32, help="sentences at a time (32)")
    parser.add_argument(
        "--lenpen",
        type=number,
        default=1.0,
        metavar="X",
        help="as in fairseq-generate: above 1, longer translations are preferred (1)",
    )
    parser.add_argument(
        "--max-len",
        type=positive,
        help="the most subwords of a translation (200, or 4 to 8 times the source's up to 1000)",
    )
    parser.add_argument(
        "--too-long",
        choices=("stop", "empty"),
        default="stop",
        help="at a line of more subwords than the model reads: stop, or translate the others, "
        "leave its translation empty, and end with status 1 (stop)",
    )
    parser.add_argument("--device", help="cpu or cuda (a GPU if there is one)")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--parses",
        action="store_true",
        help="print the parses of source and translation, in CoNLL-U, in place of the translation",
    )
    more.add_argument(
        "--alignments",
        action="store_true",
        help="after each translation and a tab, print its links to words of the source",
    )
    parser.add_argument(
        "--alignment-layer",
        type=positive,
        help="the decoder layer to align with, from 1 (default: the model's own)",
    )
    parser.add_argument(
        "--alignment-head",
        type=positive,
        help="its head to align with, from 1 (default: the mean of its heads)",
    )
    parser.name_files(inputs=["input"], files=[lambda args: args.path.split(os.pathsep)])
    return parser


if __name__ == "__main__":
    sys.exit(main())
