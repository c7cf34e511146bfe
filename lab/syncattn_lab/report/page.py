"""The report: a self-contained HTML file.

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
from itertools import cycle, islice
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.doctor import KINDS, Finding

from ..evaluation.measures import BLEU
from ..evaluation.score_table import (
    describe_scores,
    describe_tests,
    list_score_columns,
    list_test_columns,
)
from ..evaluation.scoring import SystemScore
from ..evaluation.tables import Tables
from ..printed.training_log import Point
from . import charts, in_words
from .curves import training_charts
from .overview import COLOURS, SHAPES, measured_charts
from .remembered import remember
from .sentences import ReportedSentence
from .viz import jinja2, markupsafe, vl_convert


@dataclass(frozen=True)
class Trainings:
    """The results of all seeds."""

    comparisons: Sequence[in_words.Comparison]
    results: Tables
    """Scores, differences and costs."""
    forest: Mapping[str, Any] | None
    """Vega-Lite with its data: the differences to the baselines; None if there are none."""
    parents: Mapping[str, float]
    """The share of the source's parents that the heads find, in per cent, by system."""
    errors: Mapping[str, float]
    """Alignment error rates, in per cent, by system."""
    shown: str
    """Says which trainings the rest of the page is about."""


def render(
    title: str,
    scores: Mapping[str, SystemScore],
    sentences: Iterable[ReportedSentence],
    logs: Mapping[str, Sequence[Sequence[Point]]],
    trainings: Trainings | None = None,
    findings: Sequence[Finding] | None = None,
) -> str:
    """Render the page of several systems on a test set.

    Args:
        title: the title of the page.
        scores: the scores by system, in the order of the page.
        sentences: the first sentences of the test set, with the systems in the same order.
        logs: the training logs of each seed, by system.
        trainings: the results over all seeds; None: unknown.
        findings: the faults of the corpus's text; None: unknown.
    """
    size = next(iter(scores.values())).sentences
    tests = [score.significance for score in scores.values() if score.significance]
    columns = list_score_columns(scores)
    measured, trained = measured_charts(scores), training_charts(logs, list(scores))
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
            *(chart.specification for chart in [*measured, *trained]),
            *([trainings.forest] if trainings and trainings.forest else []),
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
    return environment.from_string((folder / "report.html").read_text("utf-8")).render(
        title=title,
        scores=scores,
        columns={BLEU.name: columns[BLEU.name], **list_test_columns(tests), **columns},
        notes=[*describe_scores(scores), *(describe_tests(tests) if tests else [])],
        shown=f"{len(summaries):,}" + (f" of {size:,}" if len(summaries) < size else ""),
        measured=measured,
        trained=trained,
        trainings=trainings,
        lead=_lead(scores, [summary["translations"] for summary in summaries], trainings),
        changes=in_words.say_changes(scores, summaries),
        findings=None if findings is None else [*map(_list_cells, findings)],
        has_brackets=any(s.source_brackets or s.target_brackets for s in scores.values()),
        data=b64encode(packed).decode(),
        style=markupsafe.Markup((folder / "report.css").read_text("utf-8")),
        scripts=[*map(markupsafe.Markup, scripts)],
        hashes=" ".join(f"'sha256-{digest}'" for digest in digests),
    )


def _lead(
    scores: Mapping[str, SystemScore],
    translations: Sequence[Sequence[str]],
    trainings: Trainings | None,
) -> list[str]:
    if trainings:
        comparisons, parents, errors = trainings.comparisons, trainings.parents, trainings.errors
    else:
        comparisons = in_words.compare_scores(scores)
        parents, errors = _select(scores, "UAS source"), _select(scores, "AER")
    sentences = in_words.say_differences(comparisons, over_seeds=trainings is not None)
    structure = in_words.say_structure(parents, errors) or in_words.say_sameness(translations)
    return [*sentences, structure] if structure else sentences


def _select(scores: Mapping[str, SystemScore], measure: str) -> dict[str, float]:
    """Return a measure of each measured system."""
    numbers = {name: score.scores for name, score in scores.items()}
    return {name: row[measure] for name, row in numbers.items() if measure in row}


def _list_cells(finding: Finding) -> list[str]:
    """Return the cells of a finding in a table."""
    sizes = [f"{finding.count:,}", f"{finding.total:,}", f"{100 * finding.share:.3g} %"]
    return [KINDS[finding.kind].about, finding.split, *sizes, finding.example]


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise DataError("a score is not a finite number; score these systems again") from None


def _inside_script(script: str) -> str:
    """Escape anything that looks like the end of the script."""
    return script.replace("</script", "<\\/script").replace("<!--", "\\x3C!--")
