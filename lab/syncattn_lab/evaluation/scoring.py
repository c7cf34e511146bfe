"""Compute all measures of systems: of translations, and of any printed parses and links."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from operator import eq
from typing import Any, cast

import numpy as np

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.option_fields import flag
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.data.parallel_text import simplify
from syncattn_fairseq.data.text_profile import PROFILED, Profile
from syncattn_fairseq.data.words import Link
from syncattn_fairseq.inference.record import name_layer
from syncattn_fairseq.trees.tree import Tree

from ..printed.sentences import PrintedSentence, PrintedSide
from .alignment import AlignmentScore, count_links, score_counts
from .attachment import AttachmentScore, Heads, score_attachment
from .attachment_baselines import OffsetTable, score_baselines
from .bracketing import BracketingScore, score_trees
from .induction import induce_tree
from .length import BucketScore, count_source_words, score_by_length
from .measures import MEASURES
from .significance import Significance, compare_with_baseline
from .translation import (
    BleuScore,
    TranslationScore,
    bleu_by_part,
    count_ngrams,
    detokenize_moses,
    looks_tokenised,
    score_compound_split_bleu,
    score_round_trip,
    sum_bleu,
    words_by,
)
from .word_alignment import align_words

#: Texts that have nothing to do with each other score less; captions of other pictures do, with 0.6
#: BLEU and 20 chrF. Good translations of a few short sentences have no BLEU either, but more chrF.
_UNRELATED_BLEU, _UNRELATED_CHRF = 2, 30
#: So many translations are not the same as another text by chance.
_FEWEST_SAME = 20
#: Translations that are longer, in % of the references, are likely to be something else, too.
_LONGEST = 150
#: The BLEU of references after tokenizer and detokeniser that is not worth a word.
_LOSSLESS = 99.9


#: The sides of a pair.
_SIDES = ("source", "target")


@dataclass(frozen=True)
class Output:
    """The output of a system for a test set: translations, and analyses of the references.

    Attributes:
        beam: the system's own translations, which are scored. Without ``forced``, its parses of the
            sources are scored, too.
        forced: the system's analyses of the references (forced decoding), whose parses of both
            sides, links and distances are scored.
    """

    beam: Sequence[PrintedSentence]
    forced: Sequence[PrintedSentence] | None = None

    @property
    def analysed(self) -> Sequence[PrintedSentence]:
        """The sentences whose parses and links are scored, of forced decoding if it was run."""
        return self.beam if self.forced is None else self.forced


@dataclass(frozen=True)
class Gold:
    """The gold data of a test set, an entry for each sentence; None where annotation is missing."""

    references: Sequence[str]
    source_heads: Sequence[Heads | None] | None = None
    target_heads: Sequence[Heads | None] | None = None
    alignments: tuple[Sequence[set[Link]], Sequence[set[Link]]] | None = None
    """Sure links and possible links of each sentence."""
    source: Sequence[str] | None = None
    """The source sentences, for BLEU by the number of their words."""
    source_labels: Sequence[Sequence[str] | None] | None = None
    """Dependency labels of the source's words, for attachment by label."""
    target_labels: Sequence[Sequence[str] | None] | None = None
    source_trees: Sequence[Tree | None] | None = None
    """Phrase structure of the source, to compare with the trees that a model induces."""
    target_trees: Sequence[Tree | None] | None = None


@dataclass(frozen=True)
class SystemScore:
    """All measures of a system; None where the output or the gold data is missing."""

    sentences: int
    texts: dict[str, TranslationScore]
    """BLEU and other scores of the translations, by the first part of their measures' keys."""
    source_attachment: AttachmentScore | None = None
    target_attachment: AttachmentScore | None = None
    source_baselines: dict[str, AttachmentScore] = field(default_factory=dict)
    """Attachment scores of parses made without syntax, such as random trees, by their names."""
    target_baselines: dict[str, AttachmentScore] = field(default_factory=dict)
    alignment: AlignmentScore | None = None
    left_out: int = 0
    """Sentences not scored by attachment or alignment, as an unknown subword hides the words."""
    layer_alignment: dict[str, AlignmentScore] = field(default_factory=dict)
    """Alignment of each decoder layer or attention head (``2.3``) that printed its links."""
    source_brackets: dict[int, BracketingScore] = field(default_factory=dict)
    """Bracketing scores of the trees that each gated layer induces, by layer."""
    target_brackets: dict[int, BracketingScore] = field(default_factory=dict)
    significance: Significance | None = None
    """Tests against the baseline, None without one; what follows is None unless asked for."""
    bleu_by_length: dict[str, BucketScore] | None = None
    compound_split_bleu: BleuScore | None = None
    bleu_by_part: dict[str, float] | None = None

    @property
    def bleu(self) -> BleuScore:
        """BLEU of the translations, and their length in per cent of the references'."""
        return cast(BleuScore, self.texts["bleu"])

    @property
    def scores(self) -> dict[str, float]:
        """The values of all computed measures, in the units of tables, by the measure's name."""
        parts = {k: v for k, v in vars(self).items() if getattr(v, "counted", True)}
        numbers = {measure.name: measure.number(self.texts | parts) for measure in MEASURES}
        return {name: number for name, number in numbers.items() if number is not None}

    @property
    def signatures(self) -> dict[str, str]:
        """The signatures with the settings of translation scores, by the measure's name."""
        parts = self.texts | vars(self)
        known = {m.name: parts.get(m.key.partition(".")[0]) for m in MEASURES}
        return {n: p.signature for n, p in known.items() if isinstance(p, TranslationScore)}

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers for JSON: BLEU, chrF and RIBES from 0 to 100, all others as fractions.

        ``scores`` has those of tables, by the names of the measures.
        """
        bare = replace(self, source_brackets={}, target_brackets={})  # they hold every sentence
        bare = replace(bare, source_attachment=None, target_attachment=None)
        numbers = asdict(replace(bare, source_baselines={}, target_baselines={}))
        numbers |= numbers.pop("texts") | {"scores": self.scores, "signatures": self.signatures}
        for side in _SIDES:
            attachment: AttachmentScore | None = getattr(self, f"{side}_attachment")
            numbers[f"{side}_attachment"] = attachment and attachment.as_dict()
            numbers[f"{side}_detail"] = attachment and {
                f"by_{kind}": {name: score.as_dict() for name, score in scores.items()} or None
                for kind, scores in attachment.parts.items()
            }
            baselines: dict[str, AttachmentScore] = getattr(self, f"{side}_baselines")
            numbers[f"{side}_baselines"] = {n: score.as_dict() for n, score in baselines.items()}
            brackets: dict[int, BracketingScore] = getattr(self, f"{side}_brackets")
            numbers[f"{side}_brackets"] = {n: score.as_dict() for n, score in brackets.items()}
        return numbers


@dataclass(frozen=True)
class ScoringOptions:
    """Options of scoring: tokenizers, the baseline, and which extra measures to compute.

    Attributes:
        moses_language: undo the Moses tokenizer of this language in the translations.
        tokenize: sacreBLEU's tokenizer.
        baseline: the system that the others' BLEU is tested against.
        by_length: also measure BLEU by the length of the source; if gold has no source, its words
            come from the first output that has them.
        compound_split: also measure `score_compound_split_bleu` in this language.
        words: a command that splits translations and references into words, after their spaces are
            removed (`words_by`).
        parts: names and sizes of the test sets that make up the references, for BLEU of each.
        tables: counts of heads in other text, by side, to be compared with attachment.
    """

    moses_language: str | None = None
    tokenize: str = "13a"
    baseline: str | None = None
    by_length: bool = False
    compound_split: str | None = None
    words: str | None = None
    parts: Mapping[str, int] | None = None
    tables: Mapping[str, OffsetTable] = field(default_factory=dict)


def score_systems(
    outputs: Mapping[str, Output],
    gold: Gold,
    options: ScoringOptions = ScoringOptions(),
    warn: Callable[[str], None] = lambda message: None,
) -> dict[str, SystemScore]:
    """Compute all measures of each system, and test the systems against the baseline.

    Args:
        outputs: the output of each system, by its name.
        gold: the gold data that outputs are compared with.
        options: what is measured, and how texts are prepared for it.
        warn: called with a reason why scores may mislead.

    Raises:
        DataError: the numbers of sentences, words or subwords differ, no system is the baseline,
            or the length of the source is unknown.
    """
    check_numbers(outputs, gold)
    lengths = _count_lengths(outputs, gold) if options.by_length else None
    gold = replace(gold, references=_prepare_references(gold.references, options, warn))
    tokenised = looks_tokenised(gold.references)
    counts: dict[str, np.ndarray] = {}
    scores: dict[str, SystemScore] = {}
    for name, output in outputs.items():
        with naming(f"system {name}"):
            texts = prepare_texts(output, options)
            if tokenised and looks_tokenised(texts) is False:
                warn(
                    f"system {name}: its text is not tokenised, but the references look as if they "
                    "were, which costs BLEU; give the references without tokenisation"
                )
            counts[name] = count_ngrams(texts, gold.references, options.tokenize, warn=True)
            scores[name] = _score_texts(texts, counts[name], gold.references, options)
            analyses = _score_analyses(output, gold, options.tables)
            scores[name] = replace(scores[name], **analyses)
            _warn_of_mixed_up_files(name, output, scores[name], warn)
            if not all(sentence.forced for sentence in output.beam):
                _warn_of_other_texts(name, texts, output, gold, warn)
    return _compare_systems(scores, counts, lengths, options)


def _count_lengths(outputs: Mapping[str, Output], gold: Gold) -> list[int]:
    """Return the number of words of each source sentence."""
    if gold.source is not None:
        return [len(text.split()) for text in gold.source]
    printed = (part for output in outputs.values() for part in (output.beam, output.forced or ()))
    return count_source_words(printed)


def _prepare_references(
    references: Sequence[str], options: ScoringOptions, warn: Callable[[str], None]
) -> Sequence[str]:
    """Split references into words if asked; warn if undoing a tokenizer changes them."""
    if options.words is not None:
        return Packed(words_by(options.words, references))
    if options.moses_language is not None:
        limit = score_round_trip(references, options.moses_language, options.tokenize)
        if limit < _LOSSLESS:
            warn(
                f"the references themselves score {limit:.2f} BLEU after the Moses tokenizer of "
                f"{options.moses_language} and its detokeniser: no system gets more"
            )
    return references


def prepare_texts(output: Output, options: ScoringOptions) -> Sequence[str]:
    """Return a system's translations as they are scored: detokenised or split into words."""
    texts = plain_text(output.beam, options.moses_language)
    return texts if options.words is None else Packed(words_by(options.words, texts))


def _score_texts(
    texts: Sequence[str], counts: np.ndarray, references: Sequence[str], options: ScoringOptions
) -> SystemScore:
    """Compute the scores of translations; `count_ngrams` made the counts."""
    scores: dict[str, TranslationScore] = {"bleu": sum_bleu(counts, options.tokenize)}
    for measure in MEASURES:
        if measure.compute:
            part = measure.key.partition(".")[0]
            scores[part] = measure.compute(texts, references, options.tokenize)
    split = None
    if options.compound_split:
        split = score_compound_split_bleu(texts, references, options.compound_split)
    by_part = bleu_by_part(counts, options.parts) if options.parts else None
    return SystemScore(len(texts), scores, compound_split_bleu=split, bleu_by_part=by_part)


def _warn_of_mixed_up_files(
    name: str, output: Output, score: SystemScore, warn: Callable[[str], None]
) -> None:
    """Warn if translations look like forced output, or references like those of another text."""
    if all(sentence.forced for sentence in output.beam):
        warn(
            f"system {name}: the translations are the references, as in forced output (--force, "
            "--score-reference); give forced output in second place: --system NAME BEAM FORCED"
        )
    length = score.bleu.length
    if length >= _LONGEST:
        warn(
            f"system {name}: the translations have {length:.0f} % of the words of the "
            "references; check that the file has only translations, split into words as the "
            "references are"
        )
    bleu, chrf = score.bleu.score, score.texts["chrf"].score
    if bleu < _UNRELATED_BLEU and chrf < _UNRELATED_CHRF:
        warn(
            f"system {name}: BLEU is {bleu:.2f}, as low as for a wrong text; check that "
            "translations and references are in the same order and language"
        )


def _warn_of_other_texts(
    name: str,
    texts: Sequence[str],
    output: Output,
    gold: Gold,
    warn: Callable[[str], None],
) -> None:
    """Warn if translations are the references or the source, or in the source's language."""
    source: Sequence[str] = gold.source or ()
    if not source:
        source = Packed(" ".join(sentence.source.words) for sentence in output.beam)
    for what, others in (("references", gold.references), ("source", source)):
        if len(texts) >= _FEWEST_SAME and any(others) and _are_same(texts, others):
            warn(
                f"system {name}: the translations are the same as the {what}; check that no file "
                "was given twice"
            )
            return
    profiles = [Profile() for _ in range(3)]
    for profile, lines in zip(profiles, (texts, gold.references, source), strict=True):
        for line in islice(lines, PROFILED):
            profile.add(line)
    written, right, wrong = profiles
    if wrong.resembles(written, more_than=right):
        warn(
            f"system {name}: the translations read like the source, and not like the references; "
            "check that source and target are not swapped"
        )


def _are_same(texts: Iterable[str], others: Iterable[str]) -> bool:
    return all(map(eq, map(simplify, texts), map(simplify, others)))


def _compare_systems(
    scores: Mapping[str, SystemScore],
    counts: Mapping[str, np.ndarray],
    lengths: Sequence[int] | None,
    options: ScoringOptions,
) -> dict[str, SystemScore]:
    """Add tests against the baseline, if there is one, and BLEU by length, with known lengths."""
    baseline = options.baseline
    compared = dict(scores)
    if baseline is not None:
        tests = compare_with_baseline(counts, baseline, options.tokenize)
        for name, significance in tests.items():
            compared[name] = replace(compared[name], significance=significance)
    if lengths is not None:
        for name in compared:
            theirs = None if baseline in (None, name) else counts[baseline]
            buckets = score_by_length(counts[name], lengths, theirs)
            compared[name] = replace(compared[name], bleu_by_length=buckets)
    return compared


#: What each gold measures, and what must be printed for it.
_USES = {
    "source_heads": (("source_attachment",), "parses"),
    "target_heads": (("target_attachment",), "parses in forced output"),
    "source_trees": (("source_brackets",), "distances"),
    "target_trees": (("target_brackets",), "distances in forced output"),
    "alignments": (("alignment", "layer_alignment"), "links in forced output"),
}


def say_unused(
    gold: Gold,
    scores: Mapping[str, SystemScore],
    warn: Callable[[str], None],
    others: Collection[str] = (),
) -> None:
    """Warn of gold data that is not used for some system; `DataError` if none is used at all.

    Args:
        gold: the gold data.
        scores: of each system, by its name.
        warn: called with the line.
        others: the names of gold that something else uses, too.
    """
    messages, used = [], False
    for name, (parts, what) in _USES.items():
        if getattr(gold, name) is None or name in others:
            continue
        unused = [n for n, score in scores.items() if not any(getattr(score, p) for p in parts)]
        used |= len(unused) < len(scores)
        if unused:
            messages.append(f"{flag(name)} is not used for {', '.join(unused)}: printed no {what}")
    if messages and not used:
        raise DataError("; ".join(messages) + "; see --system in syncattn-score --help")
    if messages:
        warn("; ".join(messages))


def check_numbers(outputs: Mapping[str, Output], gold: Gold) -> None:
    """Raise `DataError` unless gold and outputs have as many sentences as the references."""
    size = len(gold.references)
    for name, entries in vars(gold).items():
        lines = entries[0] if entries and name == "alignments" else entries
        if lines is not None and len(lines) != size:
            raise DataError(
                f"{flag(name)}: has {len(lines)} lines, but there are {size} references; both "
                "files need one line for each sentence, empty lines included"
            )
    for name, output in outputs.items():
        if len(output.beam) != size:
            raise DataError(
                f"system {name}: {len(output.beam)} translations, but {size} references; give "
                "one translation for each sentence"
            )
        if output.forced is not None and len(output.forced) != size:
            raise DataError(
                f"system {name}: the forced output has {len(output.forced)} sentences, but there "
                f"are {size} references"
            )


def plain_text(
    printed: Sequence[PrintedSentence], moses_language: str | None = None
) -> Sequence[str]:
    """Return the texts of translations; with a language, undo the Moses tokenizer in them."""
    texts = Packed(sentence.translation for sentence in printed)
    return detokenize_moses(texts, moses_language) if moses_language else texts


def _score_analyses(
    output: Output, gold: Gold, tables: Mapping[str, OffsetTable]
) -> dict[str, Any]:
    """Return the fields of a `SystemScore` for parses, trees and links."""
    printed, forced = output.analysed, output.forced is not None
    left_out: set[int] = set()
    fields: dict[str, Any] = {}
    for side in _SIDES if forced else ("source",):
        with naming(side):
            fields |= _score_heads(printed, side, gold, left_out, tables.get(side))
            trees = getattr(gold, f"{side}_trees")
            fields[f"{side}_brackets"] = _score_trees(printed, side, trees, left_out)
    if forced:
        fields["alignment"] = _score_alignment(printed, None, gold, left_out)
        layers = fields["layer_alignment"] = {}
        for layer in sorted({layer for sentence in printed for layer in sentence.layer_links}):
            of_layer = _score_alignment(printed, layer, gold, left_out)
            if of_layer is not None:
                layers[name_layer(layer)] = of_layer
    return fields | {"left_out": len(left_out)}


def _score_heads(
    printed: Sequence[PrintedSentence],
    name: str,
    gold: Gold,
    left_out: set[int],
    table: OffsetTable | None,
) -> dict[str, Any]:
    """Return attachment and its baselines; nothing if gold or a sentence has no heads."""
    truths: Sequence[Heads | None] | None = getattr(gold, f"{name}_heads")
    if truths is None:
        return {}
    predicted: Packed[Heads] = Packed()
    usable: Packed[Heads | None] = Packed()
    for index, (sentence, truth) in enumerate(zip(printed, truths, strict=True)):
        side: PrintedSide = getattr(sentence, name)
        if side.heads is None:
            return {}
        if truth and side.lacks_words(len(truth)):
            left_out.add(index)
            truth = None
        predicted.append(side.heads)
        usable.append(truth)
    # A causal decoder cannot attend to a head that it has yet to produce.
    left_only = name == "target"
    score = score_attachment(predicted, usable, left_only, getattr(gold, f"{name}_labels"))
    if not score.counted:
        return {f"{name}_attachment": score}
    sides: Iterable[PrintedSide] = (getattr(sentence, name) for sentence in printed)
    pieces = ((side.subwords, side.lengths) for side in sides)
    baselines = score_baselines(usable, left_only, table, pieces)
    return {f"{name}_attachment": score, f"{name}_baselines": baselines}


def _score_trees(
    printed: Sequence[PrintedSentence],
    name: str,
    gold: Sequence[Tree | None] | None,
    left_out: set[int],
) -> dict[int, BracketingScore]:
    """Return the score of the trees of each layer; empty without gold or distances."""
    if gold is None:
        return {}
    sides: list[PrintedSide] = [getattr(sentence, name) for sentence in printed]
    scores = {}
    for layer in sorted({layer for side in sides for layer in side.distances}):
        trees = []
        usable = list(gold)
        for index, (side, truth) in enumerate(zip(sides, gold, strict=True)):
            tree = None
            if truth:
                with naming(f"sentence {index + 1}"):
                    tree = induce_tree(side, layer, [*truth.leaves()])
                if tree is None:
                    left_out.add(index)
                    usable[index] = None
            trees.append(tree)
        scores[layer] = score_trees(trees, usable)
    return scores


def _score_alignment(
    printed: Iterable[PrintedSentence],
    layer: tuple[int, int] | None,
    gold: Gold,
    left_out: set[int],
) -> AlignmentScore | None:
    """Return the score of the links of a decoder layer; None without gold or links."""
    if gold.alignments is None:
        return None
    unknown = [None] * len(gold.references)
    truths = zip(
        *gold.alignments,
        gold.source_heads or unknown,
        gold.target_heads or unknown,
        strict=True,
    )
    counts: Packed[tuple[int, int, int, int]] = Packed()
    for index, (sentence, truth) in enumerate(zip(printed, truths, strict=True)):
        sure, possible, source_heads, target_heads = truth
        links = sentence.links if layer is None else sentence.layer_links.get(layer)
        if links is None:
            return None
        sizes = [len(heads) if heads else None for heads in (source_heads, target_heads)]
        with naming(f"sentence {index + 1}"):
            words = align_words(sentence, layer, *sizes)
            if words is None:
                left_out.add(index)
                continue
            words.check_gold(sure | possible)
            counts.append(count_links(sure, possible, words.links))
    return score_counts(counts) if counts else None
