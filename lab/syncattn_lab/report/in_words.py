"""Write the summary at the beginning of a report: its numbers in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncattn_fairseq.data.doctor import Finding

from ..evaluation.differences import compare
from ..evaluation.intervals import Interval
from ..evaluation.measures import BLEU, CHRF, MEASURES, Verdict, decide, format_signed, say_p
from ..evaluation.scoring import SystemScore
from ..evaluation.table_rows import TableRow, index_rows, list_contrasts

#: How many systems a sentence names.
_MOST = 3


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
        tests = sum(one.p is not None for one in comparisons)
        corrected = f", corrected for {'both' if tests == 2 else f'all {tests}'} tests"
        note = corrected if tests > 1 else ""
        one = len(alike) == 1
        sentences.append(f"{_one(alike[0], note) if one else _several(alike, note)}.")
        if 1 < len(alike) <= _MOST:
            names = _list([one.name for one in alike])
            sentences.append(f"{names} were not compared with each other.")
    return sentences


def say_ranks(scores: Mapping[str, SystemScore]) -> str:
    """Return a sentence on the best system by each measure; empty if all agree with BLEU."""
    first: dict[str, list[str]] = {}
    for measure in MEASURES:
        known = {n: s.scores[measure.name] for n, s in scores.items() if measure.name in s.scores}
        if len({*known.values()}) > 1:
            choose = max if measure.higher_is_better else min
            first.setdefault(choose(known, key=known.__getitem__), []).append(measure.name)
    if len(first) < 2:
        return ""
    named = [f"by {_list(measures)}, {name} is first" for name, measures in first.items()]
    text = f"{'; '.join(named)}."
    return text[0].upper() + text[1:]


def say_structure(
    parents: Mapping[str, float],
    errors: Mapping[str, float],
    target_parents: Mapping[str, float] | None = None,
    coverage: float | None = None,
) -> str:
    """Return a text on how many parents attention heads find, or how well attention aligns words.

    Args:
        parents: how many of the source's words get the right parent, in per cent, by system.
        errors: the alignment error rates, in per cent, by system.
        target_parents: the same as ``parents`` of the reference's words.
        coverage: the share of the reference's words whose parent is asked for, in per cent.
    """
    if parents or target_parents:
        texts = [f"{_rank(parents)} of the source’s words"] if parents else []
        if target_parents:
            asked = "" if coverage is None else f" ({coverage:.0f} % of all)"
            text = f"{_rank(target_parents)} of those words of the reference{asked} whose parent "
            texts.append(f"{text}is before them or the root")
        return f"Attention finds the parents of {'; '.join(texts)}."
    if errors:
        return f"Attention aligns words with an error rate (AER) of {_rank(errors)}."
    return ""


def _rank(numbers: Mapping[str, float]) -> str:
    """Return some percentages with their systems, or of many the highest and the lowest."""
    names = sorted(numbers, key=numbers.__getitem__, reverse=True)
    shown = names if len(names) <= _MOST else [names[0], names[-1]]
    named = [f"{numbers[name]:.0f} % ({name})" for name in shown]
    return _list(named) if len(names) <= _MOST else " to ".join(named)


def say_sameness(translations: Sequence[Sequence[str]]) -> str:
    """Return a text on how many sentences systems translate differently; empty for one system."""
    if not translations or len(translations[0]) < 2:
        return ""
    differ = sum(len({*texts}) > 1 for texts in translations)
    return f"The translations of {differ} of {len(translations)} sentences differ."


def say_missing(names: Sequence[str], sentences: Sequence[Mapping[str, Any]]) -> str:
    """Return a text on translations that equal the reference, and on missing words, by system.

    ``sentences`` are the summaries of `.sentences.ReportedSentence`.
    """
    counted = [each for each in sentences if all(each["counts"])]
    same, missing, lost, where = ([0] * len(names) for _ in range(4))
    for each in counted:
        for n in range(len(names)):
            counts = each["counts"][n]
            same[n] += each["translations"][n] == each["reference"]
            missing[n] += counts["missing"]
            lost[n] += counts["untranslated"]
            where[n] += counts["untranslated"] > 0
    said = []
    if counted:
        words = sum(each["words"] for each in counted)
        text = f"Exactly as the reference: {_by_system(same, names)} of {len(counted):,} "
        text += f"translations. Reference words missing: {_by_system(missing)} of {words:,}."
        said.append(text)
    if any(lost):
        text = f"Source words left untranslated: {_by_system(lost)}, in {_by_system(where)} "
        said.append(f"{text}sentences.")
    if said and len(names) > 1:
        said.append("These counts are not tested.")
    return " ".join(said)


def _by_system(numbers: Sequence[int], names: Sequence[str] = ()) -> str:
    """Return the numbers of systems, with their names if given; of a single one without."""
    if len(numbers) == 1 or not names:
        return ", ".join(f"{number:,}" for number in numbers)
    return ", ".join(f"{number:,} ({name})" for number, name in zip(numbers, names, strict=True))


def say_certainty(comparisons: Sequence[Comparison], over_seeds: bool, sentences: int) -> str:
    """Return a text on confidence intervals of differences in BLEU, and on what was compared."""
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
    """Return a text on the scores of a single system, beside those of trivial translations.

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


def _one(one: Comparison, note: str) -> str:
    where = "ahead of" if one.difference > 0 else "behind"
    text = f"{one.name} is {abs(one.difference):.1f} BLEU {where} {one.baseline}"
    if abs(one.difference) < 0.05:
        text = f"{one.name} has as much BLEU as {one.baseline}"
    if one.p is None:
        return f"{text}; two seeds of each would tell whether that is chance"
    if one.verdict != "not known":
        return f"{text}, which is more than chance ({say_p(one.p)}{note})"
    return f"{text}, which may be chance ({say_p(one.p)}{note})"


def _several(comparisons: Sequence[Comparison], note: str) -> str:
    count, baseline = len(comparisons), comparisons[0].baseline
    ranked = sorted(comparisons, key=lambda one: -abs(one.difference))
    ahead = [one for one in ranked if one.verdict == "better"]
    behind = [one for one in ranked if one.verdict == "worse"]
    if not ahead and not behind:
        which = "Both" if count == 2 else f"All {count}"
        shown = ranked if count <= _MOST else ranked[:1]
        named = []
        for one in shown:
            text = f"{one.name} {_signed(one)}"
            named.append(text if one.p is None else f"{text} ({say_p(one.p)}{note})")
            note = ""
        about = f"in BLEU, {_list(named)}" if count <= _MOST else f"the largest in BLEU, {named[0]}"
        return f"{which} differences to the baseline, {baseline}, may be chance: {about}"
    parts = []
    for some, where in ((ahead, "ahead"), (behind, "behind")):
        if some:
            names = _list([f"{one.name} ({_signed(one)})" for one in some])
            parts.append(f"{names} {'is' if len(some) == 1 else 'are'} {where}")
    text = f"Against the baseline, {baseline}, {' and '.join(parts)} in BLEU by more than chance"
    left = count - len(ahead) - len(behind)
    others = "difference" if left == 1 else f"{left} differences"
    return text + (f"; the other {others} may be chance" if left else "")


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _signed(one: Comparison) -> str:
    return format_signed(one.difference, BLEU.digits)
