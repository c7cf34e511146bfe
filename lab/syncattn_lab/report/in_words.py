"""The first sentences of a report, a summary of the numbers in words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..evaluation.differences import compare
from ..evaluation.measures import BLEU, Verdict, decide, format_signed
from ..evaluation.scoring import SystemScore
from ..evaluation.table_rows import TableRow, index_rows, list_contrasts


@dataclass(frozen=True)
class Comparison:
    """The BLEU of a system and its baseline, over sentences or over seeds.

    Attributes:
        name: the system's.
        baseline: the baseline's.
        difference: how far the system is ahead.
        p: of the test, corrected for all comparisons; None if there is none.
    """

    name: str
    baseline: str
    difference: float
    p: float | None

    @property
    def verdict(self) -> Verdict:
        """The verdict of the test."""
        return decide(self.difference, self.p, BLEU.higher_is_better)


def compare_rows(rows: Sequence[TableRow]) -> list[Comparison]:
    """Compare all trainings of each system, over seeds, corrected by Holm's method."""
    differences = compare(list_contrasts(rows, groups={}), index_rows(rows), BLEU)
    known = [one for one in differences if one.is_complete]
    return [Comparison(*one.contrast.systems, one.mean, one.p) for one in known]


def compare_scores(scores: Mapping[str, SystemScore]) -> list[Comparison]:
    """Compare one training of each system, over sentences, corrected by Holm's method."""
    tests = {name: score.significance for name, score in scores.items()}
    return [
        Comparison(name, test.baseline, test.difference, test.corrected)
        for name, test in tests.items()
        if test and test.p is not None
    ]


def say_differences(comparisons: Sequence[Comparison], over_seeds: bool) -> list[str]:
    """Say how far systems are from their baselines in BLEU: a sentence for each baseline.

    ``over_seeds``: several trainings of each system are compared, not one.
    """
    sentences = []
    for baseline in dict.fromkeys(one.baseline for one in comparisons):
        alike = [one for one in comparisons if one.baseline == baseline]
        text = _one(alike[0]) if len(alike) == 1 else _several(alike)
        if not over_seeds and any(one.verdict != "not known" for one in alike):
            text += "; other seeds may differ"
        sentences.append(f"{text}.")
    return sentences


def say_structure(parents: Mapping[str, float], errors: Mapping[str, float]) -> str:
    """Say how many of the source's parents heads find, or else how well attention aligns words.

    Both arguments are in per cent, by system.
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
    """Say how many sentences systems translate differently; empty if there is only one system."""
    if not translations or len(translations[0]) < 2:
        return ""
    differ = sum(len({*texts}) > 1 for texts in translations)
    return f"The translations of {differ} of {len(translations)} sentences differ."


def say_changes(
    scores: Mapping[str, SystemScore], sentences: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Name each system's greatest gains and losses against its baseline, by length and by word.

    Sentences have ``reference`` and ``translations``, in the order of the systems.
    """
    by_name: dict[str, Counter[str]] = {}
    for number, name in enumerate(scores):
        right = by_name[name] = Counter()
        for each in sentences:
            right += _words(each["translations"][number]) & _words(each["reference"])
    changes = []
    for name, score in scores.items():
        test = score.significance
        if test is None or test.p is None:
            continue
        base = scores[test.baseline].bleu_by_length or {}
        gains = {
            f"{words} words ({format_signed(bucket.bleu - base[words].bleu, BLEU.digits)} BLEU)": (
                bucket.bleu - base[words].bleu
            )
            for words, bucket in (score.bleu_by_length or {}).items()
            if bucket.interval and not bucket.interval[0] <= 0 <= bucket.interval[1]
        }
        lengths = _most(gains, "gains in sentences of {}", "loses in sentences of {}")
        more = Counter(by_name[name])
        more.subtract(by_name[test.baseline])
        counts = {f"“{word}” ({format_signed(n, 0)})": n for word, n in more.items()}
        words = _most(counts, "{} more often", "{} less often")
        changes.append(
            f"{name} against {test.baseline}: "
            + (f"it {lengths}; " if lengths else "no length stands out; ")
            + (f"it has {words} where the reference has it." if words else "no word does.")
        )
    return changes


def _most(numbers: Mapping[str, float], gains: str, losses: str) -> str:
    """Name the three largest gains and the three largest losses."""
    ranked = sorted(numbers, key=lambda name: (-abs(numbers[name]), name))
    most = {gains: [name for name in ranked if numbers[name] > 0][:3]}
    most[losses] = [name for name in ranked if numbers[name] < 0][:3]
    return _list([text.format(_list(names)) for text, names in most.items() if names])


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


def _one(one: Comparison) -> str:
    where = "ahead of" if one.difference > 0 else "behind"
    text = f"{one.name} is {abs(one.difference):.1f} BLEU {where} {one.baseline}"
    if abs(one.difference) < 0.05:
        text = f"{one.name} has as much BLEU as {one.baseline}"
    if one.p is None:
        return f"{text}; two seeds of each would tell whether that is chance"
    if one.verdict != "not known":
        return f"{text}, which is more than chance ({_p(one.p)})"
    return f"{text}, which may be chance ({_p(one.p)})"


def _several(comparisons: Sequence[Comparison]) -> str:
    count, baseline = len(comparisons), comparisons[0].baseline
    ranked = sorted(comparisons, key=lambda one: -abs(one.difference))
    ahead = [one for one in ranked if one.verdict == "better"]
    behind = [one for one in ranked if one.verdict == "worse"]
    if not ahead and not behind:
        which = "Both" if count == 2 else f"All {count}"
        largest = f"the largest is {ranked[0].name}’s, {_signed(ranked[0])} BLEU"
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


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.0005 else f"p = {value:.2g}"
