"""Render the report that compares systems, a self-contained HTML file.

Content from texts and models is stored as compressed data; the page's script inserts it as text,
never as HTML. Jinja2 escapes the tables. In addition, the page's content security policy lets the
browser run no script but the page's own and fetch nothing at all.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from inspect import getsource
from itertools import count, cycle, islice
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.doctor import KINDS, Finding

from ..evaluation.group_scores import GroupScore
from ..evaluation.measures import BLEU, NONE
from ..evaluation.score_table import (
    describe_scores,
    describe_tests,
    list_score_columns,
    list_test_columns,
)
from ..evaluation.scoring import SystemScore
from ..evaluation.significance import Significance
from ..evaluation.tables import Tables
from ..evaluation.word_groups import LINK
from ..printed.training_log import Point
from . import charts, in_words
from .curves import training_charts
from .overview import COLOURS, SHAPES, Chart, group_charts, measured_charts
from .remembered import remember
from .sentences import ReportedSentence
from .viz import jinja2, markupsafe, vl_convert
from .where import RECALL, say_where_it_is_weak, say_where_they_differ


@dataclass(frozen=True)
class Trainings:
    """The results of systems over all seeds, for a page about a single seed of each system."""

    comparisons: Sequence[in_words.Comparison]
    results: Tables
    """Tables of scores, differences to the baselines, and costs."""
    forest: Mapping[str, Any] | None
    """The forest plot of differences to the baselines, as Vega-Lite with its data, or None."""
    parents: Mapping[str, float]
    """The share of the source's dependency heads that the model finds, in per cent, by system."""
    errors: Mapping[str, float]
    """The alignment error rate of each system's attention, in per cent."""
    shown: str
    """A sentence on which trainings the rest of the page is about."""


@dataclass(frozen=True)
class Groups:
    """The recall and precision of words in groups, as scores and as tables.

    Attributes:
        scores: the scores of each group and system.
        tables: the same scores as tables, with notes.
    """

    scores: Sequence[GroupScore]
    tables: Tables


@dataclass(frozen=True)
class Page:
    """A rendered report: the HTML, and the answers that it begins with.

    Attributes:
        html: the content of the HTML file.
        answers: the answers that the page begins with, by their questions.
    """

    html: str
    answers: Mapping[str, str]


def render(
    title: str,
    scores: Mapping[str, SystemScore],
    sentences: Iterable[ReportedSentence],
    logs: Mapping[str, Sequence[Sequence[Point]]],
    trainings: Trainings | None = None,
    findings: Sequence[Finding] | None = None,
    groups: Groups | None = None,
    trivial: Mapping[str, SystemScore] | None = None,
) -> Page:
    """Render the page that shows several systems on a test set.

    Args:
        title: the title of the page.
        scores: the scores of each system by name, in the order of the page.
        sentences: the first sentences of the test set, with the systems in the same order.
        logs: the training logs of each seed, by system.
        trainings: the results over all seeds; None: unknown.
        findings: the faults of the corpus's text; None: unknown.
        groups: recall and precision of groups of words; None: unknown.
        trivial: the scores of translations by no model, such as a copy of the source, by name; for
            a page of a single system.
    """
    trivial = trivial or {}
    size = next(iter(scores.values())).sentences
    tests = [score.significance for score in scores.values() if score.significance]
    charts_of = {
        "groups": group_charts(groups.scores if groups else (), [*scores]),
        "measured": measured_charts(scores),
        "trained": training_charts(logs, [*scores]),
    }
    summaries, details = [], []
    for sentence in sentences:
        summaries.append(sentence.summary)
        details.append(_dump(sentence.detail))
    head = {
        "systems": list(scores),
        "colours": [*islice(cycle(COLOURS), len(scores))],
        "shapes": [*islice(cycle(SHAPES.items()), len(scores))],
        "scores": {name: score.as_dict() for name, score in scores.items()},
        "sentences": summaries,
        "charts": remember("charts", charts.describe_kinds, getsource(charts)),
        "overview": [
            *([trainings.forest] if trainings and trainings.forest else []),
            *(chart.specification for some in charts_of.values() for chart in some),
        ],
    }
    # One line per sentence: the page parses only those that it shows.
    packed = gzip.compress("\n".join([_dump(head), *details]).encode(), mtime=0)
    folder = files(__package__) / "page"
    bundle: Any = vl_convert.javascript_bundle  # its type hints wrongly require an argument
    vega = remember("vega", bundle)
    scripts = [*map(_inside_script, [vega, (folder / "report.js").read_text("utf-8")])]
    digests = [b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    answers = _answer(scores, summaries, trainings, groups, trivial, findings)
    html = environment.from_string((folder / "report.html").read_text("utf-8")).render(
        title=title,
        scores=scores,
        names=[*scores, *trivial],
        columns=_list_columns(scores, tests, trivial),
        notes=[*describe_scores(scores), *(describe_tests(tests) if tests else [])],
        shown=f"{len(summaries):,}" + (f" of {size:,}" if len(summaries) < size else ""),
        charts=_number(charts_of, first=1 if trainings and trainings.forest else 0),
        trainings=trainings,
        answers=answers,
        groups=groups,
        unlinked=_count_unlinked(groups),
        findings=None if findings is None else [*map(_list_cells, findings)],
        has_brackets=any(s.source_brackets or s.target_brackets for s in scores.values()),
        data=b64encode(packed).decode(),
        style=markupsafe.Markup((folder / "report.css").read_text("utf-8")),
        scripts=[*map(markupsafe.Markup, scripts)],
        hashes=" ".join(f"'sha256-{digest}'" for digest in digests),
    )
    return Page(html, answers)


def _count_unlinked(groups: Groups | None) -> str:
    """Return how many words of the references have no link; empty if none or unknown."""
    scores = groups.scores if groups else ()
    return next((f"{s.total:,}" for s in scores if (s.kind, s.measure) == (LINK, RECALL)), "")


def _number(
    charts_of: Mapping[str, Sequence[Chart]], first: int
) -> dict[str, list[tuple[int, Chart]]]:
    """Number the charts of all sections as in the page's data, counted from ``first``."""
    numbers = count(first)
    return {name: [(next(numbers), chart) for chart in some] for name, some in charts_of.items()}


def _list_columns(
    scores: Mapping[str, SystemScore],
    tests: Sequence[Significance],
    trivial: Mapping[str, SystemScore],
) -> dict[str, list[str]]:
    """Return the columns of the table of scores by heading, with a row for each system.

    Rows of translations by no model have no tests.
    """
    columns = list_score_columns({**scores, **trivial})
    no_tests = [NONE] * len(trivial)
    tested = {name: [*cells, *no_tests] for name, cells in list_test_columns(tests).items()}
    return {BLEU.name: columns[BLEU.name], **tested, **columns}


def _answer(
    scores: Mapping[str, SystemScore],
    sentences: Sequence[Mapping[str, Any]],
    trainings: Trainings | None,
    groups: Groups | None,
    trivial: Mapping[str, SystemScore],
    findings: Sequence[Finding] | None,
) -> dict[str, str]:
    """Return the answers that the page begins with, by question, without unanswered questions.

    ``sentences`` are the summaries of the shown sentences.
    """
    names, in_groups = [*scores], groups.scores if groups else ()
    target_parents: dict[str, float] = {}
    coverage = None
    if trainings:
        comparisons, parents, errors = trainings.comparisons, trainings.parents, trainings.errors
    else:
        target_parents = _select(scores, "UAS target")
        if target_parents:
            attachment = scores[next(iter(target_parents))].target_attachment
            coverage = 100 * attachment.coverage if attachment else None
        comparisons = in_words.compare_scores(scores)
        parents, errors = _select(scores, "UAS source"), _select(scores, "AER")
    if len(names) > 1 or comparisons:
        size = next(iter(scores.values())).sentences
        where = say_where_they_differ(in_groups)
        if trainings and where:
            where.append("These are words of one training of each system.")
        same = in_words.say_sameness([each["translations"] for each in sentences])
        ranks = "" if trainings else in_words.say_ranks(scores)
        said = [*in_words.say_differences(comparisons), ranks, same]
        answers = {
            "Which is better?": " ".join(filter(None, said)),
            "Where?": " ".join(where),
            "How sure?": in_words.say_certainty(comparisons, trainings is not None, size),
        }
    else:
        answers = {
            "Is it good?": in_words.say_quality(scores[names[0]], trivial),
            "Where is it weak?": say_where_it_is_weak(in_groups),
        }
    answers["What is missing?"] = in_words.say_missing(names, sentences)
    answers["Do they parse?" if len(names) > 1 else "Does it parse?"] = in_words.say_structure(
        parents, errors, target_parents, coverage
    )
    if findings is not None:
        answers["Is the corpus sound?"] = in_words.say_findings(findings)
    return {question: answer for question, answer in answers.items() if answer}


def _select(scores: Mapping[str, SystemScore], measure: str) -> dict[str, float]:
    """Return a measure's score by system, for the systems with a score."""
    numbers = {name: score.scores for name, score in scores.items()}
    return {name: row[measure] for name, row in numbers.items() if measure in row}


def _list_cells(finding: Finding) -> list[str]:
    """Return the row of a finding in the table of faults."""
    sizes = [f"{finding.count:,}", f"{finding.total:,}", f"{100 * finding.share:.3g} %"]
    return [KINDS[finding.kind].about, finding.split, *sizes, finding.example]


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise DataError("a score is not a finite number; score these systems again") from None


def _inside_script(script: str) -> str:
    """Escape the end tags and comment signs in a script for its HTML element."""
    return script.replace("</script", "<\\/script").replace("<!--", "\\x3C!--")
