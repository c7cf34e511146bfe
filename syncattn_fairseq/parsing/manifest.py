"""A record of the text, parser and settings that parses were made with, to detect stale parses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..base.files import hash_file, read_json, replacing
from .parser import ParserSource
from .shards import Shard
from .writer import ParseReport


@dataclass(frozen=True)
class Manifest:
    """Record of a parsing run: its text, models, settings and results, stored beside the parses.

    People may edit the file. The text, models and outputs, by kind, are checksums; without outputs,
    nothing is finished.
    """

    text: str
    settings: Mapping[str, Any]
    models: Mapping[str, str]
    shards: list[Shard]
    outputs: Mapping[str, str]
    report: ParseReport

    @classmethod
    def describe(
        cls, text: str, shards: list[Shard], source: ParserSource, **options: Any
    ) -> Manifest:
        """Return the record of a parsing run that begins; `DataError` if the parser lacks files."""
        settings = {**source.describe(), "syncattn-fairseq": __version__, **options}
        paths = source.files()
        if options.get("splitter"):
            paths += source.splitting_files() or []
        models = {str(path): hash_file(path) for path in paths}
        return cls(text, settings, models, shards, {}, ParseReport())

    def list_differences(self, earlier: Manifest) -> list[str]:
        """List, as texts, how settings and models differ from those of an earlier parsing run."""
        names = dict.fromkeys([*self.settings, *earlier.settings])
        changes = [
            f"{name} was {earlier.settings.get(name)}, is {self.settings.get(name)}"
            for name in names
            if self.settings.get(name) != earlier.settings.get(name)
        ]
        same = sorted(self.models.values()) == sorted(earlier.models.values())
        return changes if same else [*changes, "the parser's files have changed"]

    def write(self, path: Path) -> None:
        """Write the record of a parsing run as a JSON file."""
        document = {**vars(self), "report": vars(self.report)}
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def read(cls, path: Path) -> Manifest | None:
        """Return the record of a parsing run in a file; None if it is missing or invalid."""
        try:
            document = read_json(path)
            shards = [Shard(*values) for values in document.pop("shards")]
            report = ParseReport.from_json(document.pop("report"))
            manifest = cls(shards=shards, report=report, **document)
            return manifest if manifest.is_sound() else None
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def is_sound(self) -> bool:
        """Return whether every value of the record has the right type; people may edit the file."""
        strings = [self.text, *self.models.values(), *self.outputs.values()]
        strings += [shard.sha256 for shard in self.shards]
        numbers = [self.report.sentences, self.report.words, *self.report.empty.values()]
        numbers += [number for shard in self.shards for number in shard[:-1]]
        return (
            isinstance(self.settings, dict)
            and all(isinstance(value, str) for value in strings)
            and all(type(number) is int and number >= 0 for number in numbers)
        )
