"""``syncattn-translate``: translate plain text, and print parses or alignments if asked to."""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from typing import TYPE_CHECKING

from ..base.errors import BadSentence, DataError
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
    from ..inference import Analysis, Decoding, Model, Translation
    from ..inference.sources import Parses
    from ..parsing.parser import Parse as DependencyTree

#: The number of lines that are read and sorted by length at a time.
_LINES = 2000
#: The kinds of files with the input's parses, and the help of their options.
_PARSES = {
    "heads": "with --input, for models that read the source's parse: file with the heads of the "
    "words of each line (default: those that --source-parser finds)",
    "labels": "with --input-heads, for models that read dependency labels: file with the labels "
    "of the words of each line",
    "spans": "with --input-heads, for models that read sentences as people write them: file with "
    "the character spans of the words of each line, as syncattn-parse --spans writes them",
}


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Translate a text block by block, and print translations, parses or alignments."""
    args = make_parser().parse_args(argv)
    from ..base.inputs import name_input
    from ..base.text import count_lines, read_lines
    from ..inference import Decoding, load

    if args.force:
        count_lines(args.input, args.force)
    decoding = Decoding(args.beam, args.lenpen, args.max_len, None, "empty", args.batch_size)
    model = load(
        args.path,
        args.data_bin,
        read_subwords(args),
        args.source_parser,
        args.device,
        args.user_dir,
        tokenised=args.tokenised,
        in_subwords=args.in_subwords,
    )
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    lines = progress(read_lines(args.input))
    references = read_lines(args.force) if args.force else None
    parses = _read_parses(args) if args.input_heads else None
    run = _Run(model, decoding, args, name_input(args.input))
    while sentences := list(islice(lines, _LINES)):
        given = None if references is None else list(islice(references, len(sentences)))
        trees = None if parses is None else list(islice(parses, len(sentences)))
        if not run.translate(sentences, given, trees):
            break
    run.finish()


def _read_parses(args: argparse.Namespace) -> Iterator[DependencyTree | None]:
    """Yield the parse of each input line; the files must have as many lines as the input."""
    from ..base.text import count_lines
    from ..data.parses import read_heads, read_labels, read_spans
    from ..parsing.parser import Parse

    count_lines(*filter(None, [args.input, *(getattr(args, f"input_{x}") for x in _PARSES)]))
    labels = read_labels(args.input_labels) if args.input_labels else repeat(None)
    spans = read_spans(args.input_spans) if args.input_spans else repeat(())
    for heads, of_words, where in zip(read_heads(args.input_heads), labels, spans, strict=False):
        yield None if heads is None else Parse(heads, of_words or [], spans=where)


def _check_options(parser: CommandLine, args: argparse.Namespace) -> None:
    """End the program if options do not go together."""
    if args.force and not (args.jsonl and args.input):
        parser.error(
            "--force needs --jsonl, and --input FILE with as many lines as the file of --force"
        )
    for kind in ("labels", "spans"):
        if getattr(args, f"input_{kind}") and not args.input_heads:
            parser.error(f"--input-{kind} needs --input-heads")
    if args.input_heads and not args.input:
        parser.error("--input-heads needs --input FILE with as many lines as the file of heads")
    if args.every_layer and not args.jsonl:
        parser.error("--every-layer needs --jsonl")
    if args.alignment_layer and not args.alignments:
        parser.error("--alignment-layer needs --alignments")
    if args.alignment_head and not (args.alignments or args.jsonl):
        parser.error("--alignment-head needs --alignments or --jsonl")


class _Run:
    """A text translated block by block.

    Args:
        model: the model that translates.
        decoding: the settings of the search.
        args: the command's arguments, which say what is printed.
        name: the name of the text in messages.
    """

    def __init__(
        self, model: Model, decoding: Decoding, args: argparse.Namespace, name: str
    ) -> None:
        self.model, self.decoding, self.args, self.name = model, decoding, args, name
        self.done = 0
        #: Why lines, counted from 1, were not translated.
        self.too_long: dict[int, str] = {}
        #: The lines to which a warning applies.
        self.warned: defaultdict[str, list[int]] = defaultdict(list)

    def translate(
        self,
        sentences: list[str],
        references: list[str] | None,
        parses: list[DependencyTree | None] | None,
    ) -> bool:
        """Print the requested parts of the next lines.

        Args:
            sentences: the lines.
            references: translations of the lines; None: the model's own.
            parses: parses of the lines; None: those of the model's parser.

        Returns:
            Whether to translate the next block, too.
        """
        try:
            if references is None:
                analyses = None
                found = self.model.translate(
                    sentences, decoding=self.decoding, parses=parses, warn=False
                )
            else:
                analyses = self._analyse(sentences, references, parses)
                found = [analysis.translation for analysis in analyses]
        except BadSentence as error:
            raise DataError(f"{self.name}:{self.done + error.number}: {error.fault}") from None
        long = [index for index, each in enumerate(found) if each.too_long]
        self.too_long |= {self.done + index + 1: found[index].too_long for index in long}
        stops = bool(long) and self.args.too_long == "stop"
        count = long[0] if stops else len(sentences)
        kept = ["" if n in long else sentence for n, sentence in enumerate(sentences[:count])]
        trees = parses and [None if n in long else tree for n, tree in enumerate(parses[:count])]
        if self.args.jsonl:
            analyses = analyses[:count] if analyses else self._analyse(kept, found[:count], trees)
            sys.stdout.writelines(f"{self._write(analysis)}\n" for analysis in analyses)
        else:
            sys.stdout.writelines(self._print(kept, found[:count], trees))
        sys.stdout.flush()
        for warning, indices in self.model.list_warnings(found, ("cut", "unparsed")).items():
            self.warned[warning] += [self.done + index + 1 for index in indices]
        self.done += count
        return not stops

    def _analyse(
        self, sentences: Sequence[str], translations: Sequence[str], parses: Parses
    ) -> list[Analysis]:
        return self.model.analyse(
            sentences,
            translations,
            decoding=self.decoding,
            parses=parses,
            head=self.args.alignment_head,
            every_layer=self.args.every_layer,
        )

    def _write(self, analysis: Analysis) -> str:
        from ..inference.record import make_record, write_record

        fault = self.model.describe_faults(analysis.translation)
        return write_record(make_record(analysis, fault))

    def _print(
        self, sentences: list[str], translations: list[Translation], parses: Parses
    ) -> Iterator[str]:
        """Yield the printed form of lines, with line ends."""
        args = self.args
        if args.parses:
            for pair in self.model.parse(sentences, translations, parses=parses):
                for title, parse in (("source", pair.source), ("translation", pair.target)):
                    if parse is not None:
                        yield f"# side = {title}\n{parse.conllu()}"
        elif args.alignments:
            layer, head = args.alignment_layer, args.alignment_head
            for alignment in self.model.align(
                sentences, translations, layer=layer, head=head, parses=parses
            ):
                yield f"{alignment.target}\t{alignment}\n"
        else:
            for translation in translations:
                yield f"{translation}\n"

    def finish(self) -> None:
        """Report warnings; raise `DataError` if a line was not translated."""
        for warning, numbers in self.warned.items():
            count = f"{len(numbers)} of {self.done} lines; this is the first of them"
            print(f"warning: {self.name}:{numbers[0]}: {warning}: {count}", file=sys.stderr)
        warn_of_unknown(self.model)
        if self.too_long:
            line, reason = min(self.too_long.items())
            remedy = "split the line, or use --too-long empty"
            if self.args.too_long == "empty":
                counts = f"{len(self.too_long)} of {self.done} lines"
                remedy = f"{counts} have no translation, of which this is the first"
            raise DataError(f"{self.name}:{line}: {reason}; {remedy}")


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-translate",
        "Translate lines of text, and print one line for each.",
        example="syncattn-translate --path checkpoints/checkpoint_best.pt --data-bin data-bin \\\n"
        "--subwords bpe.model < words/test.en",
    )
    parser.add_argument(
        "--path",
        required=True,
        help="a checkpoint, several checkpoints separated by ':' (an ensemble), or the folder of "
        "an exported model",
    )
    add_model_files(parser)
    add_tokenised(parser)
    parser.add_argument(
        "--input",
        default=0,
        metavar="FILE",
        help="text to translate, one sentence on each line (default: standard input)",
    )
    parser.add_argument(
        "--in-subwords",
        action="store_true",
        help="the input and the file of --force are in subwords already, so that no subword "
        "model is needed",
    )
    for kind, about in _PARSES.items():
        parser.add_argument(f"--input-{kind}", metavar="FILE", help=about)
    parser.add_argument(
        "--beam",
        type=positive,
        default=5,
        help="number of hypotheses that the beam search keeps (default: 5)",
    )
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=32,
        help="number of sentences translated at a time (default: 32)",
    )
    parser.add_argument(
        "--lenpen",
        type=number,
        default=1.0,
        metavar="X",
        help="exponent of the length penalty, as in fairseq-generate; above 1, longer "
        "translations are preferred (default: 1)",
    )
    parser.add_argument(
        "--max-len",
        type=positive,
        help="most subwords of a translation (default: 200; for a source of more than 32 "
        "subwords, 4 to 8 times as many as it has, up to 1000)",
    )
    parser.add_argument(
        "--too-long",
        choices=("stop", "empty"),
        default="stop",
        help="what to do if a line has more subwords than the model reads: stop, or leave its "
        "translation empty and end with status 1 (default: stop)",
    )
    parser.add_argument(
        "--device", help="where the model runs, cpu or cuda (default: cuda if there is a GPU)"
    )
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--parses",
        action="store_true",
        help="print the parses of source and translation in CoNLL-U, in place of translations",
    )
    more.add_argument(
        "--alignments",
        action="store_true",
        help="print after each translation a tab and its links to words of the source, such as "
        "0-0 1-2, source first",
    )
    more.add_argument(
        "--jsonl",
        action="store_true",
        help="print in place of each translation a JSON object for the sentence pair: text, "
        "subwords, score, parses, links and distances",
    )
    parser.add_argument(
        "--force",
        metavar="FILE",
        help="with --jsonl and --input: file of translations to analyse, one for each line of "
        "the input (default: the model's own translations)",
    )
    parser.add_argument(
        "--every-layer",
        action="store_true",
        help="with --jsonl: add the links of every decoder layer",
    )
    parser.add_argument(
        "--alignment-layer",
        type=positive,
        help="with --alignments: number of the decoder layer, from 1, whose links are printed "
        "(default: the layer that the model aligns with)",
    )
    parser.add_argument(
        "--alignment-head",
        type=positive,
        help="with --alignments or --jsonl: number of the attention head, from 1, whose links "
        "are printed (default: the mean of all heads of the layer)",
    )
    parser.name_files(
        inputs=["input", "force", *(f"input_{kind}" for kind in _PARSES)],
        files=[lambda args: args.path.split(os.pathsep)],
    )
    parser.check = _check_options
    return parser


if __name__ == "__main__":
    sys.exit(main())
