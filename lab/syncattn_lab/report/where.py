"""Write in which groups of words systems differ, or a single system is weak."""

from collections.abc import Iterable, Sequence

from ..evaluation.group_scores import ALL, GroupScore
from ..evaluation.measures import say_p
from ..evaluation.word_groups import LINK

#: Names for the dependents of each relation of Universal Dependencies.
_LABELS = {
    "acl": "clauses that modify nouns",
    "acl:relcl": "heads of relative clauses",
    "advcl": "heads of adverbial clauses",
    "advmod": "adverbs",
    "amod": "adjectives",
    "appos": "appositions",
    "aux": "auxiliaries",
    "aux:pass": "passive auxiliaries",
    "case": "prepositions",
    "cc": "conjunctions",
    "ccomp": "heads of complement clauses",
    "compound": "parts of compounds",
    "compound:prt": "verb particles",
    "conj": "conjuncts",
    "cop": "copulas",
    "det": "determiners",
    "iobj": "indirect objects",
    "mark": "subordinators",
    "nmod": "nouns that modify nouns",
    "nmod:poss": "possessors",
    "nsubj": "subjects",
    "nsubj:pass": "passive subjects",
    "nummod": "numbers",
    "obj": "objects",
    "obl": "obliques",
    "punct": "punctuation",
    "root": "roots",
    "xcomp": "open complements",
}
_ARCS = {"root": "roots", "1": "words next to their parent"}
_SEEN = {"seen": "words that training had", "unseen": "words that training lacked"}
#: The most groups that a sentence names.
_MOST = 3
RECALL = "recall"


def format_percent(fraction: float) -> str:
    """Return a fraction as a percentage with one decimal, without the % sign."""
    return f"{100 * fraction:.1f}"


def name_group(kind: str, group: str) -> str:
    """Return the name of a group of words, for use in a sentence."""
    if kind == LINK:
        return "words without a link"
    if kind == "label":
        return f"{_LABELS[group]} ({group})" if group in _LABELS else f"words labelled {group}"
    if kind == "arc":
        farther = f"words on arcs of {group.replace('5+', '5 and more')}"
        side = f"words with their {group}" if group.startswith("parent") else farther
        return _ARCS.get(group, side)
    return {
        "pos": f"words tagged {group}",
        "depth": "roots" if group == "root" else f"words {group} below the root",
        "frequency": f"words that training {f'had {group} times' if group != '0' else 'never had'}",
        "length": f"words in sentences of {group} words",
        "unseen": _SEEN.get(group, group),
    }.get(kind, group)


def say_where_they_differ(scores: Sequence[GroupScore]) -> list[str]:
    """Return sentences on the groups in which each system is significantly better or worse.

    If there is none, the group with the smallest p-value is named.
    """
    recalls = [score for score in scores if score.measure == RECALL and score.kind != ALL]
    recalls = [score for score in recalls if score.same_as is None]
    tested = [score for score in recalls if score.p is not None]
    systems: dict[str, list[GroupScore]] = {}
    for score in tested:
        systems.setdefault(score.system, []).append(score)
    theirs = {(score.kind, score.group): score for score in recalls if score.system not in systems}

    def name(score: GroupScore) -> str:
        baseline = theirs[score.kind, score.group]
        return (
            f"{name_group(score.kind, score.group)} ({format_percent(score.fraction)} %, "
            f"{baseline.system} {format_percent(baseline.fraction)} %)"
        )

    sentences = []
    for system, own in systems.items():
        parts = []
        for verdict, word in (("better", "more"), ("worse", "fewer")):
            sure = _rank(score for score in own if score.verdict == verdict)
            if sure:
                rest = f" and {len(sure) - _MOST} other groups" if len(sure) > _MOST else ""
                parts.append(f"{word} of the {', '.join(map(name, sure[:_MOST]))}{rest}")
        if parts:
            sentences.append(f"{system} finds {'; '.join(parts)}: more than chance.")
    if tested and not sentences:
        tests = sum(score.p is not None and score.same_as is None for score in scores)
        clearest = min(tested, key=lambda score: score.p or 0.0)
        group = clearest.kind, clearest.group
        alike = [
            score
            for score in tested
            if (score.kind, score.group) == group
            and format_percent(score.fraction) == format_percent(clearest.fraction)
        ]
        names = _list([score.system for score in alike])
        ps = _list([say_p(score.corrected) for score in alike])
        baseline = theirs[group]
        sentences.append(
            f"In none of {len({*theirs})} groups of words is a difference certain. The clearest is "
            f"in {name_group(*group)}: {names} {format_percent(clearest.fraction)} % of "
            f"{clearest.total:,} words, {baseline.system} {format_percent(baseline.fraction)} %, "
            f"which may be chance ({ps}, corrected for all {tests} tests of words)."
        )
    return sentences


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _rank(scores: Iterable[GroupScore]) -> list[GroupScore]:
    """Sort the scores of groups by the size of their difference to the baseline, largest first."""
    return sorted(scores, key=lambda one: -abs(one.difference.difference if one.difference else 0))


def say_where_it_is_weak(scores: Sequence[GroupScore]) -> str:
    """Return a sentence on the groups of words with significantly low recall, for one system."""
    recalls = [s for s in scores if s.measure == RECALL and s.same_as is None]
    every = next((score.fraction for score in recalls if score.kind == ALL), None)
    if every is None:
        return ""
    weak = [s for s in recalls if s.interval is not None and s.interval[1] < every]
    if not weak:
        return "No group of words is found more rarely than others by more than chance."
    weak.sort(key=lambda score: score.fraction)
    named = [
        f"{name_group(s.kind, s.group)} ({format_percent(s.fraction)} %)" for s in weak[:_MOST]
    ]
    return f"Fewest are found of the {_list(named)}; of all words, {format_percent(every)} %."
