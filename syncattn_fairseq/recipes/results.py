"""The results of all experiments with a corpus: one JSON file, and the tables made from it.

::

    {"corpus": "builtin_en_de",
     "cells": [{"system": "pascal",       a config's name, with its own changes after colons
                "seed": 1,
                "overrides": {},          settings that were changed for all systems
                "scores": {"BLEU": 80.4, "UAS source": 96.1, ...},      all from 0 to 100
                "signatures": {"BLEU": "nrefs:1|..."},
                "ngrams": "QlpoO...",     what BLEU counts in each sentence, for the bootstrap
                "valid": {"loss": 2.81},  where its loss is lowest
                "updates": 850, "seconds": 231.0, "updates_per_second": 4.1,     of the training
                "commit": "1a2b3c4", "hardware": "AMD EPYC 7B13, 1 thread"}],
     "comparisons": [{"system": "pascal", "baseline": "transformer",
                      "seeds": [1, 2, 3], those that were tested
                      "difference": 0.4,  in BLEU, all seeds together
                      "p_bootstrap": 0.03}]}
"""

from __future__ import annotations

import base64
import bz2
import json
import re
import statistics
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import DataError
from ..base.fairseq_log import read_fairseq_log
from ..base.files import replacing
from .run import locked

if TYPE_CHECKING:
    import numpy as np

#: Measures of ``syncattn-score``: the column's name, and where its number is.
_SCORES: dict[str, Callable[[Any], float]] = {
    "BLEU": lambda scores: scores["bleu"]["score"],
    "BLEU, compounds split": lambda scores: scores["compound_split_bleu"]["score"],
    "chrF": lambda scores: scores["chrf"]["score"],
    "RIBES": lambda scores: scores["ribes"]["score"],
    "UAS source": lambda scores: 100 * scores["source_attachment"]["uas"],
    "UAS target": lambda scores: 100 * scores["target_attachment"]["uas"],
    "AER": lambda scores: 100 * scores["alignment"]["aer"],
}
#: Marks packed counts that need four bytes; no base64.
_LONG = "long:"
_TRANSLATION = ("BLEU", "chrF", "RIBES")
_SIGNED = {"BLEU": "bleu", "chrF": "chrf", "RIBES": "ribes"}
#: Columns of p values, and what they are.
_P = {
    "p seeds": "of the difference in BLEU to the baseline, by Welch's test over seeds",
    "p bootstrap": "the same, by paired bootstrap over the sentences of all seeds together",
    "p valid loss": "of the difference in the lowest validation loss, by Welch's test over seeds",
    "p Holm": "the p to its left, corrected by Holm's method for all comparisons in the column",
}

#: The folder, below the cell's, of a model in the other direction.
REVERSED = "reversed"
_TRAINS_REVERSED = re.compile(rf"checkpoint\.save_dir=\S*/{REVERSED}(?=['\s]|$)")
_DONE = re.compile(r"done training in ([\d.]+) seconds")


def read_scores(folder: Path) -> dict[str, Any]:
    """Return a cell's scores and their signatures.

    Args:
        folder: folder of ``scores.json``, and perhaps ``align.json`` and ``trees.json``.
    """
    [found] = _read(folder / "scores.json")["systems"].values()
    scores = {}
    for name, number in _SCORES.items():
        try:
            scores[name] = number(found)
        except (KeyError, TypeError):  # not measured
            continue
    for part, number in (found.get("bleu_by_part") or {}).items():
        scores[f"BLEU {part}"] = number
    other = folder / REVERSED / "scores.json"
    if other.exists():
        [found_there] = _read(other)["systems"].values()
        scores["BLEU reversed"] = found_there["bleu"]["score"]
    signatures = {name: found[key]["signature"] for name, key in _SIGNED.items() if name in scores}
    if (folder / "align.json").exists():
        for layer, ways in _read(folder / "align.json")["systems"].items():
            layer = layer.removeprefix("cell ")
            if layer == "cell":  # the links that syncattn-score scored
                continue
            for way, score in ways.items():
                name = f"AER {layer}" + (f" {way}" if len(ways) > 1 else "")
                scores[name] = 100 * score["aer"]
    if (folder / "trees.json").exists():
        for layer, score in _read(folder / "trees.json")["systems"].items():
            scores[f"trees {layer}"] = 100 * score["sentence"]["f1"]
    return {"scores": {k: round(v, 4) for k, v in scores.items()}, "signatures": signatures}


def read_training(log: Path) -> dict[str, Any]:
    """Return updates, times and the validation with the lowest loss from the log of a training.

    In the log of a corpus with gold alignments, a training in the other direction follows.
    """
    epochs: dict[float, Mapping[str, float]] = {}
    best: Mapping[str, float] = {}
    walls: list[float] = []

    def watch(lines: Iterable[str]) -> Iterator[str]:
        """Pass on the lines of the cell's own direction.

        A training that continues a finished one logs 0 as its time until it is done.
        """
        ours = True
        for line in lines:
            if line.startswith("$ "):
                ours = not _TRAINS_REVERSED.search(line)
            if not ours:
                continue
            if walls and (done := _DONE.search(line)):
                walls[-1] = max(walls[-1], float(done[1]))
            yield line

    with log.open(encoding="utf-8", errors="replace") as file:
        for logged in read_fairseq_log(watch(file)):
            numbers = logged.numbers
            if logged.kind == "valid":
                best = min(numbers, best, key=lambda valid: valid.get("loss", inf))
                continue
            if "wall" in numbers:
                if walls and walls[-1] <= numbers["wall"]:
                    walls.pop()
                walls.append(numbers["wall"])  # of each process: a resumed training starts at 0
            if logged.kind == "train" and {"epoch", "num_updates", "wall"} <= numbers.keys():
                epochs[numbers["epoch"]] = numbers
    last = list(epochs.values())[-1] if epochs else {}
    found: dict[str, Any] = {
        "valid": {k: best[k] for k in ("loss", "nll_loss", "bleu") if k in best}
    }
    if last:
        seconds = sum(numbers.get("train_wall", 0) for numbers in epochs.values())
        found |= {"updates": int(last["num_updates"]), "seconds": sum(walls)}
        if seconds:
            found["updates_per_second"] = round(last["num_updates"] / seconds, 3)
    return found


def pack_counts(counts: np.ndarray) -> str:
    """Return the integers of `count_ngrams` as text of some 3 bytes for each sentence."""
    long = bool(counts.max(initial=0) >= 2**16)  # words of a sentence
    # The last four columns, how many n-grams there are, follow from the first, the length.
    packed = bz2.compress(counts[:, :6].astype("<u4" if long else "<u2").tobytes())
    return _LONG * long + base64.b64encode(packed).decode()


def unpack_counts(text: str) -> np.ndarray:
    """Return the integers of `pack_counts`."""
    import numpy as np

    packed = bz2.decompress(base64.b64decode(text.removeprefix(_LONG)))
    kept = np.frombuffer(packed, "<u4" if text.startswith(_LONG) else "<u2").reshape(-1, 6)
    kept = kept.astype(int)
    return np.concatenate([kept, (kept[:, :1] - np.arange(4)).clip(0)], axis=1)


def load_results(path: Path) -> dict[str, Any]:
    """Read a file of results.

    Raises:
        DataError: the file is missing, or has no results.
    """
    found = _read(path)
    if not isinstance(found, dict) or not {"corpus", "cells", "comparisons"} <= found.keys():
        raise DataError(f"{path}: not a results file of syncattn-recipe")
    return found


def record(
    path: Path,
    corpus: str,
    cells: Sequence[Mapping[str, Any]] = (),
    comparisons: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Add cells and comparisons to a results file.

    A cell replaces an older one of its system and seed; a comparison, one of the same two systems.

    Args:
        path: the file; created if missing. Several recipes may write to it at a time.
        corpus: its name.
        cells: see the module.
        comparisons: see the module.

    Raises:
        DataError: the file has results of another corpus.
    """
    with locked(path.with_name(f".{path.name}.lock"), lambda: None):
        found: dict[str, Any] = {"corpus": corpus, "cells": [], "comparisons": []}
        if path.exists():
            found = load_results(path)
        if found["corpus"] != corpus:
            raise DataError(f"{path}: has results of {found['corpus']}, not of {corpus}")
        made: list[tuple[str, Sequence[Mapping[str, Any]], list[str]]] = [
            ("cells", cells, ["system", "seed"]),
            ("comparisons", comparisons, ["system", "baseline"]),
        ]
        for name, new, keys in made:
            every = [*found[name], *new]
            found[name] = list({tuple(one[key] for key in keys): one for one in every}.values())
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from None


# ---- tables


def tables(
    results: Mapping[str, Any],
    systems: Sequence[str],
    seeds: Iterable[int] | None,
    baseline: Callable[[str], str],
    table: Callable[[Sequence[Sequence[str]]], str],
    bullet: str = "",
) -> str:
    """Return tables of translation scores, structure scores and costs, and notes.

    Args:
        results: from `load_results`.
        systems: those to show, in this order.
        seeds: those to include; None: all.
        baseline: returns the system that a system is compared with.
        table: formats rows as a table.
        bullet: what each note begins with.

    Raises:
        DataError: there are no results of these systems and seeds.
    """
    wanted = None if seeds is None else {*seeds}
    rows = {
        system: [
            cell
            for cell in results["cells"]
            if cell["system"] == system and (wanted is None or cell["seed"] in wanted)
        ]
        for system in systems
    }
    rows = {system: cells for system, cells in rows.items() if cells}
    if not rows:
        raise DataError("there are no results of these systems and seeds yet")
    measures = list(dict.fromkeys(n for cells in rows.values() for c in cells for n in c["scores"]))
    translation = [name for name in measures if name.startswith(_TRANSLATION)]
    structure = _structure([name for name in measures if name not in translation])
    pooled = {
        name: found
        for name, cells in rows.items()
        for found in results["comparisons"]
        if (found["system"], found["baseline"]) == (name, baseline(name))
        and {*found["seeds"]} <= {cell["seed"] for cell in cells}
    }
    made = [_translation(rows, translation, pooled, baseline)]
    if structure:
        made.append(_measured(rows, structure))
    made.append(_training(rows, baseline))
    notes = _notes(rows, {column for one in made for column in one[0]})
    return "\n\n".join([*map(table, made), "\n".join(bullet + note for note in notes)])


def _structure(names: Sequence[str]) -> list[str]:
    """Keep only one of the seven symmetrisations of each layer."""
    shown = [
        n
        for n in names
        if not re.match(r"AER (layer \d+|fast_align) .", n) or n.endswith(" grow-diag-lilt")
    ]
    return shown


def _translation(
    rows: Mapping[str, Sequence[Any]],
    measures: Sequence[str],
    pooled: Mapping[str, Any],
    baseline: Callable[[str], str],
) -> list[list[str]]:
    p = _compare(rows, _score("BLEU"), baseline)
    made = [["system", "seeds", *measures, "p seeds", "p Holm", "p bootstrap"]]
    for name, cells in rows.items():
        shown = (spread(_values(cells, _score(measure))) for measure in measures)
        p_bootstrap = "–"
        if name in pooled:
            p_bootstrap = _p(pooled[name]["p_bootstrap"])
            if len(seeds := pooled[name]["seeds"]) < len(cells):
                p_bootstrap += f" (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})"
        made.append([name, str(len(cells)), *shown, *p[name], p_bootstrap])
    return _without_empty_columns(made)


def _compare(
    rows: Mapping[str, Sequence[Any]],
    number: Callable[[Any], Any],
    baseline: Callable[[str], str],
) -> dict[str, list[str]]:
    """Return each system's p, by Welch's test over seeds against its baseline, and its Holm's p."""
    from ..evaluation.significance import holm, welch

    values = {name: _values(cells, number) for name, cells in rows.items()}
    others = {name: baseline(name) for name in rows}
    p = {
        name: welch(values[name], values[other]) if other in values and other != name else None
        for name, other in others.items()
    }
    tested = {name: value for name, value in p.items() if value is not None}
    corrected = dict(zip(tested, holm([*tested.values()]), strict=True)) if len(tested) > 1 else {}
    return {name: [_p(value), _p(corrected.get(name))] for name, value in p.items()}


def _measured(rows: Mapping[str, Sequence[Any]], measures: Sequence[str]) -> list[list[str]]:
    made = [["system", *measures]]
    for name, cells in rows.items():
        values = [spread(_values(cells, _score(measure))) for measure in measures]
        if {*values} != {"–"}:
            made.append([name, *values])
    return made


def _training(rows: Mapping[str, Sequence[Any]], baseline: Callable[[str], str]) -> list[list[str]]:
    columns: dict[str, tuple[Callable[[Any], Any], int]] = {
        "updates": (lambda cell: cell.get("updates"), 0),
        "minutes": (lambda cell: cell["seconds"] / 60 if "seconds" in cell else None, 1),
        "updates/s": (lambda cell: cell.get("updates_per_second"), 2),
        "valid BLEU": (lambda cell: cell["valid"].get("bleu"), 1),
        "valid loss": (lambda cell: cell["valid"].get("loss"), 3),
    }
    p = _compare(rows, columns["valid loss"][0], baseline)
    made = [["system", *columns, "p valid loss", "p Holm"]]
    for name, cells in rows.items():
        values = (spread(_values(cells, number), digits) for number, digits in columns.values())
        made.append([name, *values, *p[name]])
    return _without_empty_columns(made)


def _without_empty_columns(table: Sequence[Sequence[str]]) -> list[list[str]]:
    empty = {i for i, column in enumerate(zip(*table[1:], strict=True)) if {*column} == {"–"}}
    return [[cell for i, cell in enumerate(row) if i not in empty] for row in table]


def _notes(rows: Mapping[str, Sequence[Any]], columns: Container[str]) -> list[str]:
    cells = [cell for found in rows.values() for cell in found]
    notes = []
    if any(len(found) > 1 for found in rows.values()):
        notes.append("mean ± standard deviation (lowest–highest) over seeds")
    notes += [f"{column}: {note}" for column, note in _P.items() if column in columns]
    for name in _SIGNED:
        signatures = sorted({c["signatures"][name] for c in cells if name in c["signatures"]})
        notes += [f"{name} {signature}" for signature in signatures]
    if any(name.startswith("trees ") for cell in cells for name in cell["scores"]):
        notes.append("trees: sentence F1 of the target's constituents, as in syncattn-trees")
    changed = {f"{name}={value}" for cell in cells for name, value in cell["overrides"].items()}
    if changed:
        notes.append(f"changed settings: {', '.join(sorted(changed))}")
    notes += [f"hardware: {one}" for one in sorted({cell["hardware"] for cell in cells})]
    notes.append(f"commit: {', '.join(sorted({cell['commit'] for cell in cells}))}")
    return notes


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return mean, standard deviation, lowest and highest; of one value, the value."""
    if not values:
        return "–"
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) == 1 or len({*values}) == 1:
        return mean
    deviation = f"{statistics.stdev(values):.{digits}f}"
    return f"{mean} ± {deviation} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def _score(name: str) -> Callable[[Any], Any]:
    return lambda cell: cell["scores"].get(name)


def _values(cells: Sequence[Any], number: Callable[[Any], Any]) -> list[float]:
    found = (number(cell) for cell in cells)
    return [value for value in found if value is not None]


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.0005 else f"{value:.3f}"
