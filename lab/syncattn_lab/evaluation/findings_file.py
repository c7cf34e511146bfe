"""The JSON file of a corpus with the faults that the doctor found in the corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json, replacing
from syncattn_fairseq.data.doctor import KINDS, Finding


def store_findings(path: Path, findings: Sequence[Finding]) -> None:
    """Write the faults found in a corpus into a JSON file."""
    with replacing(path) as temporary:
        lines = json.dumps([*map(asdict, findings)], indent=1, ensure_ascii=False)
        temporary.write_text(f"{lines}\n", encoding="utf-8")


def load_findings(path: Path) -> list[Finding]:
    """Read a JSON file of faults found in a corpus; raise `DataError` for any other content."""
    found = read_json(path)
    if not isinstance(found, list) or not all(map(_is_finding, found)):
        raise DataError(
            f"{path}: was not written by the stage examine of a recipe; run this stage again"
        )
    return [Finding(**each) for each in found]


def _is_finding(value: Any) -> bool:
    texts, counts = ("kind", "split", "example", "advice"), ("count", "total")
    return (
        isinstance(value, dict)
        and value.keys() == {*texts, *counts, "severe"}
        and all(isinstance(value[name], str) and value[name].isprintable() for name in texts)
        and all(type(value[name]) is int and 0 <= value[name] < 10**15 for name in counts)
        and type(value["severe"]) is bool
        and value["kind"] in KINDS
    )
