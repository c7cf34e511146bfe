"""The results of all experiments with a corpus: a single JSON file.

::

    {"corpus": "builtin_en_de",
     "cells": [{"system": "wide_pascal",  the row's name; without one, as on the command line
                "config": "pascal",
                "changes": {"model.pascal_std": 2},      settings that were changed in this row
                "seed": 1,
                "overrides": {},          settings that were changed for all systems
                "scores": {"BLEU": 80.4, "UAS source": 96.1, ...},      all from 0 to 100
                "signatures": {"BLEU": "nrefs:1|..."},
                "ngrams": "QlpoO...",     what BLEU counts in each sentence, to test them
                "valid": {"loss": 2.81},  where its loss is lowest
                "subwords_per_word": 1.4, of the validation text, sentence ends counted as subwords
                "updates": 850, "seconds": 231.0, "updates_per_second": 4.1,     of the training
                "plugin": "9f86d081...",  a checksum of the user's own plugin, if there was one
                "test": {"nll_loss": 2.9},                      of the test text, under that model
                "nll_by_update": {"425": 3.4, "850": 2.81},     of the validation text, in bits
                "commit": "1a2b3c4", "hardware": "AMD EPYC 7B13, 1 thread",
                "precision": "single"}]}                        or half, in training
"""

from __future__ import annotations

import base64
import bz2
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.files import read_json, replacing
from syncattn_fairseq.base.locks import locked

if TYPE_CHECKING:
    import numpy as np

#: Marks packed counts that need four bytes; no base64.
_LONG = "long:"
#: In bytes, 12 for each sentence: more would fill the memory.
_MOST_COUNTS = 12 * 10**7


def pack_counts(counts: np.ndarray) -> str:
    """Pack the n-gram counts of sentences (`count_ngrams`) into text, about 3 bytes for each."""
    long = bool(counts.max(initial=0) >= 2**16)  # words of a sentence
    # The last four columns, how many n-grams there are, follow from the first, the length.
    packed = bz2.compress(counts[:, :6].astype("<u4" if long else "<u2").tobytes())
    return _LONG * long + base64.b64encode(packed).decode()


def unpack_counts(text: str) -> np.ndarray:
    """Unpack n-gram counts from the text of `pack_counts`; `DataError` if it is damaged."""
    import numpy as np

    unpacker = bz2.BZ2Decompressor()
    try:
        packed = base64.b64decode(text.removeprefix(_LONG))
        counts = unpacker.decompress(packed, max_length=_MOST_COUNTS)
        columns = np.frombuffer(counts, "<u4" if text.startswith(_LONG) else "<u2").reshape(-1, 6)
    except (ValueError, OSError):
        raise DataError("ngrams: the counts are damaged; score this training again") from None
    if not unpacker.eof:
        raise DataError(f"ngrams: of more than {_MOST_COUNTS // 12:,} sentences, or cut off")
    if not len(columns):
        raise DataError("ngrams: there is no sentence; score this training again")
    columns = columns.astype(int)
    return np.concatenate([columns, (columns[:, :1] - np.arange(4)).clip(0)], axis=1)


def load_results(path: Path) -> dict[str, Any]:
    """Read and check a results file; raise `DataError` if it is none or is damaged."""
    results = read_json(path)
    if not isinstance(results, dict) or not {"corpus", "cells"} <= results.keys():
        raise DataError(f"{path}: is not a results file of syncattn-recipe")
    if not _is_text(results["corpus"]) or not isinstance(results["cells"], list):
        raise DataError(f"{path}: expected the name of a corpus, and a list of cells")
    known: dict[tuple[str, int], int] = {}
    for number, cell in enumerate(results["cells"], 1):
        with naming(f"{path}: cell {number}"):
            _check(cell)
            first = known.setdefault((cell["system"], cell["seed"]), number)
            if first != number:
                raise DataError(
                    f"has the same system and seed as cell {first}; remove one of the two"
                )
    return results


def _check(cell: Any) -> None:
    if not isinstance(cell, dict):
        raise DataError(f"expected a JSON object with names and values, not {str(cell)[:60]!r}")
    for name, kind in (_REQUIRED | _OPTIONAL).items():
        if name in cell:
            if not _KINDS[kind](cell[name]):
                raise DataError(f"{name}: {str(cell[name])[:60]!r}; expected {kind}")
        elif name in _REQUIRED:
            raise DataError(f"has no {name}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_number(value: Any) -> bool:
    # Also of a float that is not a number, the comparison is false.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _maps_to(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, dict) and all(_is_text(k) and fits(v) for k, v in value.items())
    )


_KINDS: dict[str, Callable[[Any], bool]] = {
    "a name": _is_text,
    "text": _is_text,
    "a number": _is_number,
    "a whole number": lambda value: type(value) is int,
    "settings": _maps_to(lambda value: _is_text(str(value))),
    "finite numbers with names": _maps_to(_is_number),
    "texts with names": _maps_to(_is_text),
}
_REQUIRED = {
    **{"system": "a name", "seed": "a whole number", "overrides": "settings"},
    **dict.fromkeys(("scores", "valid"), "finite numbers with names"),
    **{"signatures": "texts with names", "commit": "text", "hardware": "text"},
}
_OPTIONAL = {
    **{"config": "a name", "changes": "settings"},
    **dict.fromkeys(("plugin", "ngrams", "precision"), "text"),
    **dict.fromkeys(("updates", "seconds", "updates_per_second", "subwords_per_word"), "a number"),
    **dict.fromkeys(("test", "nll_by_update"), "finite numbers with names"),
}


def list_differing(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """List what differs between trainings: the machine, the precision (if known), the commit."""
    facts = {
        (cell["hardware"].partition(",")[0], cell.get("precision"), cell["commit"])
        for cell in cells
    }
    columns = zip(*facts, strict=True)
    names = ("machine", "precision", "commit")
    return [name for name, one in zip(names, columns, strict=False) if len({*one} - {None}) > 1]


def list_provenance(cells: Collection[Mapping[str, Any]]) -> list[str]:
    """Return notes on the trainings' hardware and on the commits of this package."""
    hardware = sorted({cell["hardware"] for cell in cells})
    commits = ", ".join(sorted({cell["commit"] for cell in cells}))
    return [*(f"hardware: {one}" for one in hardware), *([f"commit: {commits}"] if commits else [])]


def record(path: Path, corpus: str, cells: Sequence[Mapping[str, Any]]) -> None:
    """Add trainings to a results file; replace older trainings of the same system and seed.

    The file is made if missing; several recipes may write to it, all of the same corpus.
    """
    with locked(path.with_name(f".{path.name}.lock"), lambda: None):
        results: dict[str, Any] = {"corpus": corpus, "cells": []}
        if path.exists():
            results = load_results(path)
        if results["corpus"] != corpus:
            raise DataError(
                f"{path}: has results of the corpus {results['corpus']}, not of {corpus}; choose "
                "another file with --results"
            )
        every = [*results["cells"], *cells]
        by_training = {(cell["system"], cell["seed"]): cell for cell in every}
        document = {"corpus": corpus, "cells": [*by_training.values()]}
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
