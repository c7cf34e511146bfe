"""``syncattn-score``: score translations, parses and alignments, and test their significance."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.loggers import hushed
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import add_subword_marks, announce, command, new_parser, publish
from syncattn_fairseq.data.moses import check_language
from syncattn_fairseq.data.parses import parse_spans, read_heads, read_labels
from syncattn_fairseq.data.spans import find_runs
from syncattn_fairseq.data.words import RAW, choose_scheme, count_subwords, split_units
from syncattn_fairseq.trees.brackets import read_trees

from ..evaluation.alignment import read_alignments, say_one_based
from . import score_contrast, score_heads, score_links, score_trees, score_words

if TYPE_CHECKING:
    from ..evaluation.attachment_baselines import OffsetTable
    from ..evaluation.scoring import Gold, Output, ScoringOptions
    from ..evaluation.sentence_scores import SentenceScores


#: The module that scores each kind of output, by the first word of the command line; without such a
#: word, translations and their analyses are scored.
KINDS = {
    "contrast": score_contrast,
    "heads": score_heads,
    "links": score_links,
    "trees": score_trees,
}


@command
@hushed("sacrebleu")  # importing fairseq makes every logger talk
def main(argv: Sequence[str] | None = None) -> None:
    """Score translations, or another kind of output named by the first argument (`KINDS`)."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] in KINDS:
        KINDS[words[0]].run(words[1:])
    else:
        _score_translations(make_parser().parse_args(words))


def _score_translations(args: argparse.Namespace) -> None:
    from ..evaluation.score_table import make_latex, tabulate_scores
    from ..evaluation.scoring import say_unused, score_systems
    from ..evaluation.sentence_scores import tabulate_sentence_scores

    outputs, gold = read_input(args)
    options = replace(
        scoring_options(args),
        by_length=args.by_length,
        compound_split=args.compound_split,
        parts=args.parts,
        tables=_count_offsets(args),
    )
    scores = score_systems(outputs, gold, options, warn)
    numbers = {name: score.as_dict() for name, score in scores.items()}
    tables = tabulate_scores(scores)
    for measure, by_system in _compare_measures(args, outputs, len(gold.references)).items():
        tables.append(tabulate_sentence_scores(measure, by_system))
        for name, one in by_system.items():
            numbers[name].setdefault("sentence_scores", {})[measure] = asdict(one)
    document: dict[str, Any] = {"systems": numbers}
    if args.by:
        groups = score_words.read_word_groups(args, outputs, gold, options)
        tables.append(groups.tabulate())
        document["words"] = groups.as_dict()
    say_unused(gold, scores, warn, ("source_heads", "alignments") if args.by else ())
    with ExitStack() as stack:
        if args.text:
            _write_text(stack.enter_context(replacing(args.text)), args, outputs)
        if args.latex:
            table = stack.enter_context(replacing(args.latex))
            table.write_text(make_latex(scores), encoding="utf-8")
        shown = "\n\n".join(table.format(args.markdown) for table in tables)
        publish(document, shown, args.json)
    if args.text:
        announce(args.text, "the translations", sys.stderr)
    if args.latex:
        announce(args.latex, "a table for LaTeX", sys.stderr)


def _count_offsets(args: argparse.Namespace) -> dict[str, OffsetTable]:
    """Count how far heads are from their words in ``--source-counts`` and ``--target-counts``.

    The result has a table for ``source``, ``target`` or both.
    """
    from ..evaluation.attachment_baselines import OffsetTable

    tables = {}
    for side in ("source", "target"):
        files = getattr(args, f"{side}_counts")
        if files is None:
            continue
        if getattr(args, f"{side}_heads") is None:
            raise DataError(
                f"--{side}-counts needs --{side}-heads, with which the table of counts is compared"
            )
        if len(files) not in (2, 4):
            raise DataError(f"--{side}-counts: give PIECES HEADS, or PIECES HEADS SPANS TEXT")
        sees_word = side == "source" or args.target_rows == "input"
        table = tables[side] = OffsetTable(sees_word, left_only=side == "target")
        for number, subwords, lengths, heads in _read_parsed(args, files):
            with naming(f"{files[1]}:{number}"):
                table.add(subwords, lengths, heads)
    return tables


def _read_parsed(
    args: argparse.Namespace, files: Sequence[str]
) -> Iterator[tuple[int, list[str], list[int], list[int]]]:
    """Yield the number, subwords, subwords per word and heads of each sentence with a parse."""
    from ..evaluation.translation import read_text

    texts = [read_text(path) for path in files]
    for path, text in zip(files, texts, strict=True):
        if len(text) != len(texts[0]):
            raise DataError(
                f"{path}: has {len(text)} lines, but {files[0]} has {len(texts[0])}; both files "
                "need one line for each sentence"
            )
    scheme = args.subword_marks or choose_scheme(texts[0])
    parses = zip(_gold_heads(files[1]), *texts, strict=True)
    for number, (heads, line, _, *other) in enumerate(parses, 1):
        subwords = line.split()
        if heads and other:
            spans = parse_spans(other[0], files[2], number)
            with naming(f"{files[2]}:{number}"):
                units = split_units(subwords, RAW, spans, other[1])
                heads = units.map_heads(heads)
            yield number, subwords, [end - begin for begin, end in find_runs(units.starts)], heads
        elif heads:
            yield number, subwords, count_subwords(subwords, scheme), heads


def _compare_measures(
    args: argparse.Namespace, systems: Collection[str], size: int
) -> dict[str, dict[str, SentenceScores]]:
    from ..evaluation.sentence_scores import compare_sentence_scores, read_sentence_scores

    measured: dict[str, dict[str, list[float]]] = {}
    for measure, name, path in args.sentence_scores:
        if name not in systems:
            raise DataError(f"--sentence-scores {name}: no --system has this name")
        numbers = read_sentence_scores(path)
        if len(numbers) != size:
            raise DataError(
                f"{path}: has {len(numbers)} scores, but there are {size} references; give one "
                "score for each sentence"
            )
        if measured.setdefault(measure, {}).setdefault(name, numbers) is not numbers:
            raise DataError(
                f"--sentence-scores {measure} {name}: is given twice; give each measure of a "
                "system once"
            )
    baseline = args.baseline or ""
    return {m: compare_sentence_scores(numbers, baseline) for m, numbers in measured.items()}


def read_input(args: argparse.Namespace) -> tuple[dict[str, Output], Gold]:
    """Read the outputs of systems and the gold files named by the arguments of `add_arguments`.

    `DataError`: a file is damaged or does not fit the others, or a system is named twice.
    """
    from ..evaluation.scoring import Gold, Output
    from ..evaluation.translation import check_tokenizer, read_text
    from ..printed.output import read_output

    check_tokenizer(args.tokenize)

    def read(reader: Callable[[str], Iterable[Any]], path: str | None) -> Sequence[Any] | None:
        return Packed(reader(path)) if path else None

    gold = Gold(
        references=read_text(args.references),
        source_heads=read(_gold_heads, args.source_heads),
        target_heads=read(_gold_heads, args.target_heads),
        alignments=read_alignments(args.alignments, args.one_based) if args.alignments else None,
        source=read(read_text, args.source),
        source_labels=read(read_labels, args.source_labels),
        target_labels=read(read_labels, args.target_labels),
        source_trees=list(read_trees(args.source_trees)) if args.source_trees else None,
        target_trees=list(read_trees(args.target_trees)) if args.target_trees else None,
    )
    outputs: dict[str, Output] = {}
    for name, *files in args.system:
        if len(files) not in (1, 2) or name in outputs:
            raise DataError(f"--system {name}: give each name once, with one or two files")
        if any(category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
            raise DataError(
                f"--system {name!r}: the name has characters that a line cannot show; choose "
                "another name"
            )
        printed = [read_output(file, args.subword_marks, warn) for file in files]
        outputs[name] = Output(*printed)
    _warn_of_same_files(args)
    outputs, gold = _group_words(args, outputs, gold)
    if gold.alignments:
        analysed = (sentence for output in outputs.values() for sentence in output.analysed)
        links = (each for s in analysed for each in (s.links or (), *s.layer_links.values()))
        if warning := say_one_based(gold.alignments, links):
            warn(f"{args.alignments}: {warning}")
    return outputs, gold


def _group_words(
    args: argparse.Namespace, outputs: dict[str, Output], gold: Gold
) -> tuple[dict[str, Output], Gold]:
    """Regroup gold annotation and analyses to the same words, if gold words have spans.

    Models of raw sentences may split them into other words than the gold files.
    """
    from ..evaluation.gold_groups import group_words
    from ..evaluation.gold_words import read_gold_words
    from ..evaluation.scoring import check_numbers

    texts = {"source": gold.source, "target": gold.references}
    words = {}
    for side, text in texts.items():
        if spans := getattr(args, f"{side}_spans"):
            if text is None:
                raise DataError(
                    "--source-spans needs --source, the text that the spans count characters of"
                )
            words[side] = read_gold_words(text, spans)
    if not words:
        return outputs, gold
    check_numbers(outputs, gold)
    return group_words(outputs, gold, words)


def _warn_of_same_files(args: argparse.Namespace) -> None:
    """Print a warning if two options name the same file."""
    named = {"--references": args.references, "--source": args.source}
    named |= {f"--system {name}": files[0] for name, *files in args.system}
    given = [(name, path) for name, path in named.items() if path and os.path.isfile(path)]
    for number, (name, path) in enumerate(given):
        for other, earlier in given[:number]:
            if os.path.samefile(path, earlier):
                warn(f"{path}: the same file is given as {other} and as {name}")


def warn(message: str) -> None:
    """Print a warning, such as why scores may mislead, to standard error."""
    print(f"warning: {message}", file=sys.stderr)


def scoring_options(args: argparse.Namespace) -> ScoringOptions:
    """Return the options for `score_systems` from the arguments of `add_arguments`."""
    from ..evaluation.scoring import ScoringOptions

    return ScoringOptions(
        moses_language=args.detokenize,
        tokenize=args.tokenize,
        baseline=args.baseline,
        words=args.words_by,
    )


def _write_text(path: Path, args: argparse.Namespace, outputs: Mapping[str, Output]) -> None:
    from ..evaluation.scoring import plain_text

    if len(outputs) > 1:
        raise DataError("--text needs exactly one --system")
    [output] = outputs.values()
    with path.open("w", encoding="utf-8") as file:
        for text in plain_text(output.beam, args.detokenize):
            file.write(text + "\n")


def _gold_heads(path: str) -> Iterator[list[int] | None]:
    """Yield the dependency heads of each line of a file; they need not form a tree.

    `DataError`: a head is not 0 or the number of a word.
    """
    for number, heads in enumerate(read_heads(path), 1):
        if heads and not 0 <= min(heads) <= max(heads) <= len(heads):
            raise DataError(
                f"{path}:{number}: a head is out of range; write 0 for the root, and k for the "
                f"k-th of the {len(heads)} words"
            )
        yield heads


def _moses_language(value: str) -> str | None:
    if value == "none":
        return None
    tool, _, language = value.partition(":")
    if tool != "moses" or not language:
        raise argparse.ArgumentTypeError(f"{value!r}; choose none or moses:LANGUAGE")
    try:
        check_language(language)
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return language


def _tokenizer(value: str) -> str:
    from sacrebleu.metrics.bleu import BLEU

    if value not in BLEU.TOKENIZERS:
        raise argparse.ArgumentTypeError(f"{value!r}; choose one of {', '.join(BLEU.TOKENIZERS)}")
    return value


def _parts(value: str) -> dict[str, int]:
    pairs = [part.rpartition(":") for part in value.split(",")]
    if not all(name and count.isdecimal() and int(count) for name, _, count in pairs):
        raise argparse.ArgumentTypeError(f"{value!r}: write NAME:SENTENCES,NAME:SENTENCES")
    return {name: int(count) for name, _, count in pairs}


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-score",
        "Score translations, and the parses, links and distances printed with them.",
        example="syncattn-score --references words/test.de --tokenize none \\\n"
        "--system SyncAttn translations.txt",
        epilog="syncattn-score links scores and symmetrises word alignments, trees phrase "
        "structure, heads every self-attention head of a model, and contrast says whether models "
        "prefer right translations to wrong ones; each has a --help of its own.",
    )
    add_arguments(parser)
    parser.add_argument(
        "--by-length",
        action="store_true",
        help="add the BLEU of sentences grouped by the number of words in the source",
    )
    parser.add_argument(
        "--compound-split",
        metavar="LANGUAGE",
        help="add BLEU as papers on WMT14 English-German report it: on the words of the Moses "
        "tokenizer for LANGUAGE, with A-B as three words",
    )
    parser.add_argument(
        "--parts",
        type=_parts,
        metavar="NAME:N,...",
        help="NAME and number N of sentences of each test set that the references consist of, in "
        "order; adds the BLEU of each set, and the mean of these",
    )
    parser.add_argument(
        "--sentence-scores",
        action="append",
        nargs=3,
        default=[],
        metavar=("MEASURE", "NAME", "FILE"),
        help="FILE with a score of every sentence of the system NAME from another program, the "
        "output of comet-score or a number on each line, higher is better; the mean is shown as "
        "MEASURE, and tested against that of --baseline like BLEU",
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-counts",
            nargs="+",
            metavar=("PIECES", "HEADS"),
            help=f"with --{side}-heads: training text of the {side} in subwords (PIECES), and its "
            "heads (HEADS); for raw sentences also spans and text; adds the UAS of a table of "
            "counts, which knows "
            + ("the word and what is before it" if side == "source" else "what is before a word"),
        )
    parser.add_argument(
        "--target-rows",
        choices=("predicted", "input"),
        default="predicted",
        help="what the target's heads were trained with, as --tgt-dependency-rows says: decoder "
        "states that predict a word, or that read it; the target's table of counts then knows the "
        "word, too (default: predicted)",
    )
    score_words.add_word_arguments(parser)
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="JSON file to write with all numbers; '-' prints them in place of the table",
    )
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument(
        "--latex",
        type=Path,
        help="LaTeX file to write with the table of scores, for the package booktabs",
    )
    parser.add_argument(
        "--text",
        type=Path,
        help="text file to write with the translations of the only --system, detokenised as "
        "--detokenize says",
    )
    parser.name_files(
        inputs=["sentence_scores", "source_counts", "target_counts"],
        outputs=["json", "latex", "text"],
    )
    return parser


def add_arguments(command: CommandLine, group: Any = None, required: bool = True) -> None:
    """Add the options for systems, references, gold annotation, and how to score.

    Args:
        command: the parser that checks the files.
        group: the group of arguments that they are added to; None: the parser itself.
        required: whether systems and references have to be given.
    """
    parser = command if group is None else group
    parser.add_argument(
        "--system",
        required=required,
        default=None if required else [],
        action="append",
        nargs="+",
        metavar=("NAME", "FILE"),
        help="NAME of a system, FILE with its translations, and perhaps another FILE with its "
        "analyses; give the option once for each system. Translations: plain text, or output of "
        "syncattn-translate, fairseq-generate, fairseq-interactive, Marian, Moses or Sockeye. "
        "Analyses, for scores of parses and links: output of syncattn-translate --jsonl --force "
        "REFERENCES, or of fairseq-generate --score-reference --print-alignment without "
        "--remove-bpe",
    )
    parser.add_argument(
        "--references",
        required=required,
        help="the reference translations, one on each line; untokenised, unless --tokenize is none",
    )
    for kind, what, use in (
        ("heads", "dependency heads", "UAS"),
        ("labels", "dependency labels", "UAS by label (in --json and in reports)"),
        ("trees", "phrase structure trees", "scores of the trees that distances induce"),
    ):
        parser.add_argument(f"--source-{kind}", help=f"gold {what} of the source, for {use}")
        parser.add_argument(f"--target-{kind}", help=f"gold {what} of the references, for {use}")
    for side, text in (("source", "--source"), ("target", "--references")):
        parser.add_argument(
            f"--{side}-spans",
            metavar="FILE",
            help="for models of raw sentences, which may split words otherwise: character spans "
            f"of the gold words in the sentences of {text}, as syncattn-parse --spans writes them",
        )
    parser.add_argument(
        "--alignments",
        help="gold links of words, source-target from 0, for AER: i-j is a sure link, i?j a "
        "possible one",
    )
    parser.add_argument(
        "--one-based",
        action="store_true",
        help="with --alignments: words are counted from 1 there (default: from 0)",
    )
    add_subword_marks(parser)
    parser.add_argument(
        "--detokenize",
        type=_moses_language,
        default="none",
        metavar="none|moses:LANGUAGE",
        help="undo the Moses tokenizer of LANGUAGE in the translations before they are scored; "
        "none: undo nothing (default: none)",
    )
    parser.add_argument(
        "--tokenize",
        type=_tokenizer,
        default="13a",
        metavar="NAME",
        help="tokenizer of sacreBLEU for BLEU, such as 13a, zh, ja-mecab or none (default: 13a)",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        help="NAME of the system that the BLEU of all others is compared with, by a test of "
        "significance (default: no test)",
    )
    parser.add_argument(
        "--source",
        help="text of the source, for BLEU by length (default: that of the first output that has "
        "it)",
    )
    parser.add_argument(
        "--words-by",
        metavar="COMMAND",
        help="with --tokenize none: command that splits translations and references into words "
        "after their spaces were removed, such as 'kytea -notags -out tok' (default: words are "
        "separated by spaces)",
    )
    command.name_files(
        inputs=[
            *("system", "references", "source", "alignments"),
            *("source_heads", "source_labels", "source_trees", "source_spans"),
            *("target_heads", "target_labels", "target_trees", "target_spans"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
