"""Group the words of a test set by syntax, frequency and length, for ``syncattn-score --by``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli.command_line import CommandLine

from ..evaluation.group_kinds import KINDS, OF_SOURCE

if TYPE_CHECKING:
    from syncattn_fairseq.parsing.formats import Analysis

    from ..evaluation.group_scores import GroupScore
    from ..evaluation.grouped_text import LinkedWords
    from ..evaluation.scoring import Gold, Output, ScoringOptions
    from ..evaluation.tables import Tables
    from ..evaluation.word_groups import GroupedText, Links, Words

#: The value of ``--by`` for every kind of groups that the given files allow.
_EVERY = "all"


@dataclass(frozen=True)
class WordGroups:
    """The recall and precision of groups of words in a test set.

    Attributes:
        text: the words of the test set and their annotation.
        scores: recall and precision of each group and system.
        alignment: the name of the word alignment that puts target words into groups of source
            words; empty: there is none.
        left_out: the number of sentences whose words differ from those of the links.
        baseline: the system that the others are compared with.
    """

    text: GroupedText
    scores: Sequence[GroupScore]
    alignment: str
    left_out: int
    baseline: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers as a dictionary for JSON; recall and precision are from 0 to 1."""
        groups = [asdict(score) for score in self.scores]
        return {"alignment": self.alignment, "left_out": self.left_out, "groups": groups}

    def tabulate(self) -> Tables:
        """Return a table for each kind of groups, such as labels, with notes on the numbers."""
        from ..evaluation.group_tables import describe_groups, tabulate_groups
        from ..evaluation.tables import Tables

        notes = [
            "recall, precision: of the words of the references and of the translations, in %, "
            "those that the other text has, counted as BLEU counts words; a word there twice and "
            "found once counts one half each time",
            *describe_groups(self.scores, self.baseline),
        ]
        kinds = {score.kind for score in self.scores}
        named = [f"{kind} ({about})" for kind, about in OF_SOURCE.items() if kind in kinds]
        if self.alignment and named:
            notes.append(
                f"{', '.join(named)}: of the source words that a word is linked with, by "
                f"{self.alignment}; a word with several is in the group of each; no link: with none"
            )
        if self.left_out:
            notes.append(
                f"{self.left_out} sentences are left out of these groups, since the words of "
                "their links or parses differ from those of the text"
            )
        return Tables(tabulate_groups(self.scores, "words"), notes)


def read_word_groups(
    args: argparse.Namespace,
    outputs: Mapping[str, Output],
    gold: Gold,
    options: ScoringOptions,
) -> WordGroups:
    """Measure recall and precision of words, in groups of the kinds in ``--by`` or of all kinds.

    Args:
        args: the arguments of `add_word_arguments`, and of ``syncattn-score``.
        outputs: the translations, by the name of the system.
        gold: the references and, if they are known, the source, its dependency heads and labels,
            and word alignments.
        options: how texts are split into words, and the baseline.

    Raises:
        DataError: a file is missing or damaged, or does not fit the others.
    """
    from ..evaluation.grouped_text import Fitting
    from ..evaluation.scoring import prepare_texts
    from ..evaluation.translation import split_words, words_by
    from ..evaluation.word_groups import SystemWords, list_kinds, score_word_groups

    linked = _choose_links(args, outputs, gold)
    parses = _read_parses(args, len(gold.references))
    source = _choose_source(parses, gold, linked, outputs)
    prepared = gold.references
    if options.words is not None:
        prepared = words_by(options.words, prepared)
    references = [*split_words(prepared, options.tokenize)]
    fitting = Fitting()
    links = fitting.fit(linked, source, references) if linked and source else None
    text = _describe_text(args, gold, parses, source, references, links)
    kinds = list_kinds(text) if args.by in (None, [_EVERY]) else args.by
    if args.by and not kinds:
        raise DataError(
            "--by all: nothing is given to group words by; give --source, --source-parses or "
            "--target-training"
        )
    own = _read_own_links(args, outputs)
    systems = {}
    for name, output in outputs.items():
        words = [*split_words(prepare_texts(output, options), options.tokenize)]
        theirs = fitting.fit(own[name], source, words) if name in own and source else None
        systems[name] = SystemWords(words, theirs)
    return WordGroups(
        text,
        score_word_groups(text, systems, kinds, options.baseline),
        _name_alignment(args, linked) if linked and links else "",
        len(fitting.left_out),
        options.baseline,
    )


def _choose_links(
    args: argparse.Namespace, outputs: Mapping[str, Output], gold: Gold
) -> LinkedWords | None:
    """Return the links of source and references, or None if no file has any.

    They are those of ``--links``, or else the gold links, or else those of the first system.
    """
    from ..evaluation.grouped_text import LinkedWords, collect_links, read_linked_words

    words = _split(gold.source), _split(gold.references)
    if args.links:
        linked = read_linked_words(args.links, args.subword_marks)
        return linked if linked.target else replace(linked, source=words[0], target=words[1])
    if gold.alignments:
        sure = gold.alignments[0]
        return LinkedWords(f"{args.alignments}, sure links", sure, *words)
    for name, output in outputs.items():
        if output.forced and any(sentence.links for sentence in output.forced):
            return collect_links(f"the attention of {name}", output.forced)
    return None


def _name_alignment(args: argparse.Namespace, linked: LinkedWords) -> str:
    """Return the name of the links of `_choose_links` in tables, without a file's folder."""
    return Path(linked.name).name if args.links or args.alignments else linked.name


def _split(texts: Sequence[str] | None) -> Words | None:
    return None if texts is None else [text.split() for text in texts]


def _read_parses(args: argparse.Namespace, size: int) -> Sequence[Analysis] | None:
    from ..evaluation.grouped_text import read_parses

    if not args.source_parses:
        return None
    parses = read_parses(args.source_parses)
    if len(parses) != size:
        raise DataError(
            f"{args.source_parses}: has {len(parses)} sentences, but there are {size} references"
        )
    return parses


def _choose_source(
    parses: Sequence[Analysis] | None,
    gold: Gold,
    linked: LinkedWords | None,
    outputs: Mapping[str, Output],
) -> Words | None:
    """Return the words of the source, or None if no file has them.

    They are those of the parses, or else of the source text, of the links, or of an output.
    """
    if parses is not None:
        return [parse.words for parse in parses]
    if gold.source is not None:
        return _split(gold.source)
    if linked and linked.source:
        return linked.source
    for output in outputs.values():
        if any(sentence.source.words for sentence in output.analysed):
            return [sentence.source.words for sentence in output.analysed]
    return None


def _describe_text(
    args: argparse.Namespace,
    gold: Gold,
    parses: Sequence[Analysis] | None,
    source: Words | None,
    references: Words,
    links: Links | None,
) -> GroupedText:
    from ..evaluation.grouped_text import count_training
    from ..evaluation.word_groups import GroupedText

    seen = frequent = None
    if args.source_training:
        if source is None:
            raise DataError(
                "--source-training needs --source, whose words are looked up in the training text"
            )
        seen = count_training(args.source_training, source, args.tokenize)
    if args.target_training:
        frequent = count_training(args.target_training, references, args.tokenize)
    text = GroupedText(
        references,
        source,
        links,
        gold.source_heads,
        gold.source_labels,
        source_training=seen,
        target_training=frequent,
    )
    if parses is None:
        return text
    return replace(
        text,
        source_heads=[parse.heads for parse in parses],
        source_labels=[parse.labels for parse in parses],
        source_tags=[parse.tags for parse in parses],
    )


def _read_own_links(
    args: argparse.Namespace, outputs: Mapping[str, Output]
) -> dict[str, LinkedWords]:
    """Return the links of source and translations by system, given or printed with translations."""
    from ..evaluation.grouped_text import collect_links, read_linked_words

    own = {
        name: collect_links(f"system {name}", output.beam)
        for name, output in outputs.items()
        if any(sentence.links for sentence in output.beam)
    }
    for name, path in args.translation_links:
        if name not in outputs:
            raise DataError(f"--translation-links {name}: no --system has this name")
        own[name] = read_linked_words(path, args.subword_marks)
    return own


def _kinds(value: str) -> list[str]:
    kinds = value.split(",")
    if kinds != [_EVERY] and not {*kinds} <= {*KINDS}:
        raise argparse.ArgumentTypeError(
            f"{value!r}; choose {_EVERY}, or some of {', '.join(KINDS)}, separated by commas"
        )
    return [*dict.fromkeys(kinds)]


def add_word_arguments(command: CommandLine, group: Any = None) -> None:
    """Add the options for scores of words in groups.

    Args:
        command: the parser that checks the files.
        group: the group of arguments that they are added to; None: the parser itself.
    """
    parser = command if group is None else group
    parser.add_argument(
        "--by",
        type=_kinds,
        metavar="KIND,...",
        help="add recall and precision of words in groups of each KIND: by dependency label "
        "(label), part of speech (pos), length and direction of the arc to the parent (arc), "
        "depth in the tree (depth), frequency in training (frequency), length of the sentence "
        "(length), and whether training lacked the source word (unseen); all: every kind that "
        "the given files allow",
    )
    parser.add_argument(
        "--source-parses",
        metavar="FILE",
        help="with --by label, pos, arc or depth: parses of the source in CoNLL-U (default: "
        "--source-heads and --source-labels)",
    )
    parser.add_argument(
        "--links",
        metavar="FILE",
        help="with --by: word links of source and references; a reference's word counts in the "
        "group of the source word that it is linked to. Output of syncattn-translate --jsonl "
        "--force REFERENCES, or a Pharaoh file, i-j, from 0 (default: the sure links of "
        "--alignments, or those of the first system whose JSON lines have links)",
    )
    parser.add_argument(
        "--translation-links",
        action="append",
        nargs=2,
        default=[],
        metavar=("NAME", "FILE"),
        help="with --by label, pos, arc, depth or unseen, for the precision of translated words: "
        "FILE with links of the source and the translations of the system NAME (default: those "
        "that are printed with the translations)",
    )
    for side, kind in (("source", "unseen"), ("target", "frequency")):
        parser.add_argument(
            f"--{side}-training",
            metavar="FILE",
            help=f"with --by {kind}: training text of the {side}, split into words as the {side} "
            "is",
        )
    command.name_files(
        inputs=[
            *("source_parses", "links", "translation_links", "source_training", "target_training")
        ]
    )
