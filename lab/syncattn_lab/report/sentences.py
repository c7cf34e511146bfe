"""The data that a report shows of each sentence: words, parses, trees and alignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sacrebleu.metrics.chrf import CHRF

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.inference.drawing import MOST_WORDS
from syncattn_fairseq.inference.record import name_layer
from syncattn_fairseq.trees.tree import Tree

from ..evaluation.bracketing import find_constituents
from ..evaluation.induction import induce_tree
from ..evaluation.scoring import Gold, Output, plain_text
from ..evaluation.word_alignment import align_words
from ..evaluation.word_groups import GroupedText
from ..printed.sentences import PrintedSide
from .marks import SentenceLinks, mark_translations, split_words

T = TypeVar("T")
_GOLD = ("heads", "labels", "trees")


@dataclass(frozen=True)
class ReportedSentence:
    """The data of one sentence of a report, ready for JSON.

    An entry is None or empty if it was not printed, or has no gold, or the words are unknown.
    Words are counted from 0, but heads from 1, with 0 for the root.
    """

    summary: dict[str, Any]
    """``source``, ``reference``, ``length`` in words of the source, ``words``, the number of the
    reference's, ``translations`` and their sentence-level ``chrf``, one for each system, and which
    of them ``differ``: ``translations``, ``parses``, ``alignments``, ``trees``. The ``counts`` of
    each system are those of `.marks`."""
    detail: dict[str, Any]
    """What the page shows of the sentence when it is opened, by name.

    ``source`` and ``target``, each with ``words`` (those of the reference), the ``text`` that they
    are of, their ``spans`` in it if known, ``heads``, ``labels`` and ``tree`` (gold); ``sure``
    and ``possible`` links, None without gold; and ``systems``, each with heads of ``source`` and
    ``target``, and ``links``, ``source_trees`` and ``target_trees`` by layer. Of a sentence with
    more than `MOST_WORDS`, only ``long``, their number. In any case ``marked``, for each system its
    translation in ``pieces``, None if there is nothing to mark or the sentence is too long, and the
    source words that are ``untranslated``."""


def describe(
    outputs: Mapping[str, Output],
    gold: Gold,
    moses_language: str | None = None,
    number: int | None = None,
    by_spaces: bool = True,
    text: GroupedText | None = None,
) -> Iterator[ReportedSentence]:
    """Yield the data of each sentence of a test set, for the page.

    Args:
        outputs: the output of each system, by name.
        gold: the references, and the source and gold annotation where they are known.
        moses_language: the language whose Moses tokenizer is undone in translations; None: none.
        number: the number of sentences, from the first; None: all.
        by_spaces: whether texts are words with spaces between them, for marks in translations.
        text: the same test set with links, which tell the source words that are not translated;
            None: unknown.
    """
    systems = [_System(output, moses_language) for output in outputs.values()]
    chrf = CHRF()
    for index, reference in enumerate(islice(gold.references, number)):
        source, target = (_find_side(systems, side, index) for side in ("source", "target"))
        if gold.source is not None and not source.words:
            source = PrintedSide(gold.source[index].split())
        sides = {
            side: _side(printed, index, *(getattr(gold, f"{side}_{x}") for x in _GOLD))
            for side, printed in (("source", source), ("target", target))
        }
        links = gold.alignments and [sorted(x[index]) for x in gold.alignments]
        sure, possible = links or (None, None)
        longest = max(len(side["words"]) for side in sides.values())
        analyses: list[dict[str, Any]] = []
        detail: dict[str, Any] = {"long": longest}
        if longest <= MOST_WORDS:
            analyses = [system.show(index, sides) for system in systems]
            detail = {**sides, "sure": sure, "possible": possible, "systems": analyses}
        texts = [system.texts[index] for system in systems]
        marked = mark_translations(texts, reference, by_spaces, _find_links(text, index))
        detail["marked"] = [
            [each.pieces if any(each.counts.values()) else None, each.untranslated]
            for each in marked
        ]
        yield ReportedSentence(
            {
                "source": str(source),
                "reference": reference,
                "length": len(source.words),
                "words": len(split_words(reference, by_spaces)),
                "translations": texts,
                "chrf": [round(chrf.sentence_score(each, [reference]).score, 1) for each in texts],
                "differ": list(_differences(systems, analyses, index)),
                "counts": [each.counts for each in marked],
            },
            detail,
        )


def _find_links(text: GroupedText | None, index: int) -> SentenceLinks | None:
    if text is None or text.source is None or text.links is None:
        return None
    links = text.links[index]
    return (
        None if links is None else SentenceLinks(text.source[index], text.references[index], links)
    )


class _System:
    def __init__(self, output: Output, moses_language: str | None) -> None:
        self.texts = plain_text(output.beam, moses_language)
        self.printed, self.is_forced = output.analysed, output.forced is not None

    def show(self, index: int, sides: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        sentence = self.printed[index]
        words = {side: known["words"] for side, known in sides.items()}
        analysis: dict[str, Any] = {
            "source": _fitting(sentence.source.heads, words["source"]),
            "target": None,
            "links": {},
            "source_trees": _induce_trees(sentence.source, sides["source"]),
            "target_trees": {},
        }
        if self.is_forced:
            analysis["target"] = _fitting(sentence.target.heads, words["target"])
            analysis["target_trees"] = _induce_trees(sentence.target, sides["target"])
            names: dict[tuple[int, int] | None, str] = {}
            if sentence.links is not None:
                names[None] = ""
            names |= {layer: name_layer(layer) for layer in sentence.layer_links}
            sizes = len(words["source"]), len(words["target"])
            for layer, name in names.items():
                alignment = align_words(sentence, layer, *sizes)
                if alignment and alignment.words == sizes:
                    analysis["links"][name] = sorted(alignment.links)
        return analysis


def _induce_trees(side: PrintedSide, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree induced by each layer's distances, by layer, in the form of `tree_nodes`.

    It is empty if the words of the distances are not those of the page.
    """
    gold = known["tree"] and {tuple(node[:2]) for node in known["tree"]["nodes"]}
    trees = {}
    for layer in side.distances:
        try:
            tree = induce_tree(side, layer, known["words"])
        except DataError:  # the page has other words
            return {}
        if tree:
            trees[str(layer)] = tree_nodes(tree, gold)
    return trees


def tree_nodes(tree: Tree, gold: set[tuple[int, ...]] | None = None) -> dict[str, Any]:
    """Return a tree as ``nodes``, its constituents of several words, and each word's node.

    ``parents`` has the index of the node above each word. A node is a list: its first word, the
    word after its last, its height, the index of the node above (None for the topmost), its label,
    and whether its span is in ``gold`` (1, 0, or None without a gold tree).
    """
    nodes: list[list[Any]] = []
    parents: list[int | None] = []
    agenda: list[tuple[Tree | str | None, int | None]] = [(tree, None)]  # None: close the node
    while agenda:
        node, parent = agenda.pop()
        if node is None:
            assert parent is not None
            nodes[parent][1] = len(parents)
        elif isinstance(node, str):
            parents.append(parent)
        elif len(node.children) == 1:
            agenda.append((node.children[0], parent))
        else:
            number = len(nodes)
            nodes.append([len(parents), 0, 1, parent, node.label])
            agenda.append((None, number))
            agenda += [(child, number) for child in reversed(node.children)]
    for laid in reversed(nodes):
        if laid[3] is not None:
            nodes[laid[3]][2] = max(nodes[laid[3]][2], laid[2] + 1)
    for laid in nodes:
        laid.append(None if gold is None else int((laid[0], laid[1]) in gold))
    return {"nodes": nodes, "parents": parents}


def _find_side(systems: Iterable[_System], name: str, index: int) -> PrintedSide:
    """Return a sentence's source or reference as printed by the first system with its words."""
    for system in systems:
        side: PrintedSide = getattr(system.printed[index], name)
        if side.words and (name == "source" or system.is_forced):
            return side
    return PrintedSide()


def _side(side: PrintedSide, index: int, heads: Any, labels: Any, trees: Any) -> dict[str, Any]:
    known_heads, known_labels, tree = (rows and rows[index] for rows in (heads, labels, trees))
    words, spans = side.words, side.spans
    leaves = tree and list(tree.leaves())
    if leaves and (not words or (len(leaves) == len(words) and "<unk>" in " ".join(words))):
        words, spans = leaves, None
    fits = _fitting(leaves, words)
    return {
        "words": words,
        "text": str(side),
        "spans": spans,
        "heads": _fitting(known_heads, words),
        "labels": _fitting(known_labels, words),
        "tree": tree_nodes(tree, {*find_constituents(tree)}) if fits else None,
    }


def _fitting(row: Sequence[T] | None, words: Sequence[str]) -> Sequence[T] | None:
    return row if row and len(row) == len(words) else None


def _differences(
    systems: Sequence[_System], analyses: Sequence[Mapping[str, Any]], index: int
) -> Iterator[str]:
    if len({system.texts[index] for system in systems}) > 1:
        yield "translations"
    for name, fields in (
        ("parses", ("source", "target")),
        ("alignments", ("links",)),
        ("trees", ("source_trees", "target_trees")),
    ):
        columns = ([system[field] for system in analyses if system[field]] for field in fields)
        if any(value != column[0] for column in columns for value in column):
            yield name
