"""Write the summary at the beginning of a report: its numbers in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncattn_fairseq.data.doctor import Finding

from ..evaluation.differences import compare
from ..evaluation.intervals import Interval
from ..evaluation.measures import BLEU, CHRF, Verdict, decide, format_signed, say_p
from ..evaluation.scoring import SystemScore
from ..evaluation.table_rows import TableRow, index_rows, list_contrasts


@dataclass(frozen=True)
class Comparison:
    """The difference in BLEU between a system and its baseline, tested over sentences or seeds.

    Attributes:
        name: the name of the system.
        baseline: the name of the baseline.
        difference: the BLEU of the system minus that of the baseline.
        p: the p-value of the test, corrected for all comparisons; None without a test.
        interval: the 95 % confidence interval of the difference; None if it is not known.
    """

    name: str
    baseline: str
    difference: float
    p: float | None
    interval: tuple[float, float] | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict of the test on the difference, such as ``better`` or ``not known``."""
        return decide(self.difference, self.p, BLEU.higher_is_better)


def compare_rows(rows: Sequence[TableRow]) -> list[Comparison]:
    """Compare the BLEU of each system with its baseline's over seeds, with Holm's correction."""
    differences = compare(list_contrasts(rows, groups={}), index_rows(rows), BLEU)
    known = [one for one in differences if one.is_complete]
    return [
        Comparison(
            *one.contrast.systems,
            one.mean,
            one.p,
            (one.interval.low, one.interval.high) if one.interval else None,
        )
        for one in known
    ]


def compare_scores(scores: Mapping[str, SystemScore]) -> list[Comparison]:
    """Return the comparison in BLEU of each tested system with its baseline, over sentences.

    Each system was trained once; p-values are corrected by Holm's method.
    """
    tests = {name: score.significance for name, score in scores.items()}
    return [
        Comparison(name, test.baseline, test.difference, test.corrected, test.interval)
        for name, test in tests.items()
        if test and test.p is not None
    ]


def say_differences(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a sentence for each baseline on how far systems are from it in BLEU.

    If no difference is more than chance, a first sentence says that the better one is not known.
    """
    sentences = []
    if comparisons and all(one.verdict == "not known" for one in comparisons):
        sentences.append("It is not known which is better.")
    for baseline in dict.fromkeys(one.baseline for one in comparisons):
        alike = [one for one in comparisons if one.baseline == baseline]
        sentences.append(f"{_one(alike[0]) if len(alike) == 1 else _several(alike)}.")
    return sentences


def say_structure(parents: Mapping[str, float], errors: Mapping[str, float]) -> str:
    """Return a sentence on how well heads parse the source, or else how well attention aligns.

    ``parents`` are the shares of dependency heads of the source that attention heads find, and
    ``errors`` are alignment error rates, both in per cent, by system.
    """
    for numbers, order, text in (
        (parents, (max, min), "heads find the parents of {:.0f} % of the source’s words"),
        (errors, (min, max), "attention aligns words with an error rate of {:.0f} %"),
    ):
        if numbers:
            best, worst = (choose(numbers, key=numbers.__getitem__) for choose in order)
            text = f"{best}’s {text.format(numbers[best])}"
            return text + (f", {worst}’s {numbers[worst]:.0f} %." if worst != best else ".")
    return ""


def say_sameness(translations: Sequence[Sequence[str]]) -> str:
    """Return a text on how many sentences systems translate differently; empty for one system."""
    if not translations or len(translations[0]) < 2:
        return ""
    differ = sum(len({*texts}) > 1 for texts in translations)
    return f"The translations of {differ} of {len(translations)} sentences differ."


def say_missing(names: Sequence[str], sentences: Sequence[Mapping[str, Any]]) -> str:
    """Return a text on how many translations lack reference words or skip source words, by system.

    ``sentences`` are the summaries of `.sentences.ReportedSentence`.
    """
    counted = [each["counts"] for each in sentences if all(each["counts"])]
    said = []
    for key, text in (
        ("missing", "Words of the reference are missing in"),
        ("untranslated", "Source words are not translated in"),
    ):
        sizes = [sum(row[n][key] > 0 for row in counted) for n in range(len(names))]
        if any(sizes):
            named = [f"{size:,} ({name})" for name, size in zip(names, sizes, strict=True)]
            shown = _list(named) if len(names) > 1 else f"{sizes[0]:,}"
            said.append(f"{text} {shown} of {len(counted):,} sentences.")
    return " ".join(said)


def say_certainty(comparisons: Sequence[Comparison], over_seeds: bool, sentences: int) -> str:
    """Return a text with the confidence intervals of differences in BLEU, and what was compared."""
    texts = []
    for one in comparisons:
        if one.interval:
            ends = Interval(one.difference, *one.interval).format_ends(BLEU.digits)
            texts.append(f"{one.name} {ends} to {one.baseline}")
    said = f"95 % intervals of the differences in BLEU: {', '.join(texts)}" if texts else ""
    if over_seeds:
        return f"{said}, over the seeds of both." if said else ""
    compared = f"{sentences:,} sentences and one training of each system were compared"
    return f"{said + '. ' if said else ''}{compared}; other seeds may differ."


def say_quality(score: SystemScore, trivial: Mapping[str, SystemScore]) -> str:
    """Return a text on the scores of a single system, beside those of translations by no model.

    ``trivial`` has the latter by name, such as "the source itself".
    """
    margin = f" ± {score.significance.confidence:.{BLEU.digits}f}" if score.significance else ""
    chrf = score.scores[CHRF.name]
    said = f"{BLEU.name} is {score.bleu.score:.{BLEU.digits}f}{margin}, and "
    said += f"{CHRF.name} {chrf:.{CHRF.digits}f}."
    named = [f"{name} has {one.bleu.score:.{BLEU.digits}f} BLEU" for name, one in trivial.items()]
    return f"{said} For comparison, {_list(named)}." if named else said


def say_findings(findings: Sequence[Finding]) -> str:
    """Return a sentence on how many faults were found in the texts of the corpus."""
    if not findings:
        return "No fault was found in the texts that systems learn from and are tested on."
    severe = sum(finding.severe for finding in findings)
    kinds = f"{len(findings)} kind{'s' if len(findings) > 1 else ''} of faults"
    return f"{kinds} in the texts, {severe or 'none'} severe; the first: {findings[0]}."


def _one(one: Comparison) -> str:
    where = "ahead of" if one.difference > 0 else "behind"
    text = f"{one.name} is {abs(one.difference):.1f} BLEU {where} {one.baseline}"
    if abs(one.difference) < 0.05:
        text = f"{one.name} has as much BLEU as {one.baseline}"
    if one.p is None:
        return f"{text}; two seeds of each would tell whether that is chance"
    if one.verdict != "not known":
        return f"{text}, which is more than chance ({say_p(one.p)})"
    return f"{text}, which may be chance ({say_p(one.p)})"


def _several(comparisons: Sequence[Comparison]) -> str:
    count, baseline = len(comparisons), comparisons[0].baseline
    ranked = sorted(comparisons, key=lambda one: -abs(one.difference))
    ahead = [one for one in ranked if one.verdict == "better"]
    behind = [one for one in ranked if one.verdict == "worse"]
    if not ahead and not behind:
        which = "Both" if count == 2 else f"All {count}"
        largest = f"the largest is {ranked[0].name}’s, {_signed(ranked[0])} BLEU"
        if ranked[0].p is not None:
            largest += f" ({say_p(ranked[0].p)})"
        return f"{which} differences to {baseline} may be chance; {largest}"
    parts = []
    for some, where in ((ahead, "ahead"), (behind, "behind")):
        if some:
            names = _list([f"{one.name} ({_signed(one)})" for one in some])
            parts.append(f"{names} {'is' if len(some) == 1 else 'are'} {where}")
    text = f"Against {baseline}, {' and '.join(parts)} in BLEU by more than chance"
    left = count - len(ahead) - len(behind)
    others = "difference" if left == 1 else f"{left} differences"
    return text + (f"; the other {others} may be chance" if left else "")


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _signed(one: Comparison) -> str:
    return format_signed(one.difference, BLEU.digits)
