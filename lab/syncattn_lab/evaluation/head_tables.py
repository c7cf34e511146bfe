"""Tables of attention heads: each head beside the controls, and the strongest by label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from syncattn_fairseq.base.errors import printable, shorten
from syncattn_fairseq.base.text_tables import escape_html
from syncattn_fairseq.inference.attention_heads import HeadName

from .attachment import AttachmentScore
from .head_probe import ProbedModel, Spread
from .head_scores import LEAST, OFFSET, Strongest, View, correct, find_strongest
from .measures import LEVEL, NONE, format_p
from .tables import Column, Table, Tables, list_meanings, list_tables

#: How many labels have a column.
_LABELS = 6
#: What all words together are called among labels.
ALL = "all words"
_UAS = "words that look at their parent most, in %; a column of a label: of the words with it"
_ENTROPY = "of a subword's attention, in nats, on average; 0: to a single token"
_DISTANCE = "between a subword and those of its side that it attends to, in subwords, on average"
_END = (
    "attention to the end of sentence, where a head looks that has nothing to say, in %; in the "
    "decoder, to the </s> that it reads first"
)
_RECALL = (
    "of the strongest head; it is the one with most right words among every second sentence, and "
    "all numbers of this table are of the other sentences"
)
_CONFIDENCE = "half the width of the 95 % interval of the recall, by bootstrap over sentences"
_OFFSETS = "the best fixed offset to the parent for this label, on the sentences that choose"
_DIFFERENCE = (
    "to the best control on the sentences that choose, which is named; 95 % interval by bootstrap"
)
_P = "by paired approximate randomisation over sentences, corrected for all rows of a model"


def format_models(
    models: Mapping[str, tuple[ProbedModel, Sequence[Sequence[Strongest]]]], markdown: bool = False
) -> str:
    """Format each model's tables below its path, and once, at the end, the notes on columns.

    Args:
        models: what the heads of each do, and what `choose_strongest` returned, by path.
        markdown: whether to write Markdown.
    """
    parts: list[str] = []
    notes: list[str] = []
    for path, (model, strongest) in models.items():
        found = _tabulate(model, strongest)
        title = f"## {escape_html(path)}" if markdown else path
        parts += [title, _say_how(model), Tables(found.tables, []).format(markdown).rstrip()]
        notes += found.notes
    return "\n\n".join([*parts, Tables([], [*dict.fromkeys(notes)]).format(markdown)])


def _tabulate(model: ProbedModel, strongest: Sequence[Sequence[Strongest]]) -> Tables:
    tables: list[Table] = []
    notes: list[str] = []
    groups = []
    for view, chosen in zip(model.views, strongest, strict=True):
        groups += [_list_heads(view, model.spreads), _list_strongest(view, chosen)]
    groups.append(_list_others(model))
    for columns in groups:
        tables += list_tables(columns)
        notes += list_meanings(columns)
    if any(view.words.labels is not None for view in model.views):
        notes.append(f"a label with fewer than {LEAST} words in either half has no row")
    return Tables(tables, notes)


def choose_strongest(model: ProbedModel) -> list[list[Strongest]]:
    """Find a model's strongest attention heads for each label, with corrected p and verdicts.

    Args:
        model: what its heads do.
    """
    return correct([find_strongest(view) for view in model.views])


def describe_heads(model: ProbedModel, strongest: Sequence[Sequence[Strongest]]) -> dict[str, Any]:
    """Return all numbers on a model's attention heads as plain values for JSON.

    Args:
        model: what its heads do.
        strongest: of each view, what `choose_strongest` returned.
    """
    views = []
    for view, chosen in zip(model.views, strongest, strict=True):
        heads = [
            {"head": str(name), "kind": kind, **_describe(view, view.right[:, number])}
            for number, (name, kind) in enumerate(zip(view.names, view.kinds, strict=True))
        ]
        views.append(
            {
                "part": view.part,
                "rows": view.rows,
                "heads": heads,
                "controls": {name: _describe(view, x) for name, x in view.controls.items()},
                "strongest": [_describe_strongest(view, each) for each in chosen],
            }
        )
    spreads = {str(name): vars(spread) for name, spread in model.spreads.items()}
    kinds = {str(name): kind for name, kind in model.kinds.items()}
    counts = {"sentences": model.sentences, "left_out": model.left_out}
    return {"views": views, "spreads": spreads, "kinds": kinds, **counts}


def _describe(view: View, right: np.ndarray) -> dict[str, Any]:
    every = {label: view.score(right, label) for label in (None, *view.words.list_labels())}
    parts = {
        label: {"correct": score.correct, "counted": score.counted, "recall": score.uas}
        for label, score in every.items()
        if label is not None
    }
    whole = every[None]
    numbers = {"correct": whole.correct, "counted": whole.counted, "uas": whole.uas}
    return numbers | ({"labels": parts} if parts else {})


def _describe_strongest(view: View, each: Strongest) -> dict[str, Any]:
    interval = each.difference
    return {
        "label": each.label,
        "head": str(view.names[each.head]),
        "words": each.words,
        "recall": each.recall,
        "confidence": each.confidence,
        "controls": dict(each.controls),
        "offset": each.offset,
        "control": each.control,
        "difference": interval.difference,
        "interval": [interval.low, interval.high],
        "p": each.p,
        "p_holm": each.corrected,
        "verdict": each.verdict,
    }


def _title(view: View) -> str:
    """Return the name of a view's heads in tables."""
    if view.part == "encoder":
        return "encoder"
    return f"decoder, {view.rows}"


def _note_title(view: View) -> str:
    if view.part == "encoder":
        return ""
    what = "reads" if view.rows == "input" else "predicts"
    return (
        f"a row stands for the word whose last subword its state {what}; only words whose parent "
        "is the root or to their left count"
    )


def _list_heads(view: View, spreads: Mapping[HeadName, Spread]) -> list[Column]:
    """Return the columns of all heads of a view, and of the controls below them."""
    labels = view.words.list_labels()[:_LABELS]
    every = [*view.right.T, *view.controls.values()]
    blank = [NONE] * len(view.controls)
    own = [spreads[name] for name in view.names]
    columns = [
        Column(_title(view), [*map(str, view.names), *view.controls], _note_title(view)),
        Column("kind", [*view.kinds, *blank]),
        Column("UAS", [_percent(view.score(right)) for right in every], _UAS),
    ]
    for label in labels:
        columns.append(Column(_say(label), [_percent(view.score(right, label)) for right in every]))
    ends = [f"{100 * spread.end:.1f}" for spread in own]
    distances = [_format(spread.distance) for spread in own]
    return [
        *columns,
        Column("entropy", [*(_format(spread.entropy) for spread in own), *blank], _ENTROPY),
        Column("distance", [*distances, *blank], _DISTANCE),
        Column("end", [*ends, *blank], _END),
    ]


def _list_others(model: ProbedModel) -> list[Column]:
    """Return the columns of heads that are in no view: cross-attention, or a side without heads."""
    seen = {name for view in model.views for name in view.names}
    names = [name for name in model.kinds if name not in seen]
    own = [model.spreads[name] for name in names]
    return [
        Column("other heads", [*map(str, names)]),
        Column("kind", [model.kinds[name] for name in names]),
        Column("entropy", [_format(spread.entropy) for spread in own], _ENTROPY),
        Column("distance", [_format(spread.distance) for spread in own], _DISTANCE),
        Column("end", [f"{100 * spread.end:.1f}" for spread in own], _END),
    ]


def _list_strongest(view: View, chosen: Sequence[Strongest]) -> list[Column]:
    """Return the columns of the strongest head for each label."""
    names = [name for name in view.controls if not name.startswith(OFFSET)]
    columns = [
        Column(_title(view), [_say(each.label or ALL) for each in chosen], _note_title(view)),
        Column("words", [str(each.words) for each in chosen]),
        Column("strongest", [str(view.names[each.head]) for each in chosen]),
        Column("recall", [f"{100 * each.recall:.1f}" for each in chosen], _RECALL),
        Column("± 95 %", [f"{100 * each.confidence:.1f}" for each in chosen], _CONFIDENCE),
        Column(
            OFFSET,
            [f"{100 * each.controls[OFFSET]:.1f} ({each.offset})" for each in chosen],
            _OFFSETS,
        ),
    ]
    for name in names:
        columns.append(Column(name, [f"{100 * each.controls[name]:.1f}" for each in chosen]))
    return [
        *columns,
        Column("difference to", [each.control for each in chosen]),
        Column(
            "difference", [each.difference.scale(100).format(1) for each in chosen], _DIFFERENCE
        ),
        Column("p Holm", [format_p(each.corrected) for each in chosen], _P),
        Column(
            "verdict",
            [each.verdict for each in chosen],
            f"better, worse: p Holm < {LEVEL}, for this trained model and such sentences",
        ),
    ]


def _say_how(model: ProbedModel) -> str:
    said = f"{model.sentences} sentences"
    if model.left_out:
        said += f"; {model.left_out} left out, since they are longer than the model reads"
    if any("counts" not in view.controls for view in model.views):
        said += "; no table of counts, since the training text is not here or has no heads"
    return said


def _say(label: str) -> str:
    return printable(shorten(label, 30))


def _percent(score: AttachmentScore) -> str:
    return f"{100 * score.uas:.1f}" if score.counted else NONE


def _format(number: float | None) -> str:
    return NONE if number is None else f"{number:.2f}"
