"""The settings of a row of a table, loaded and checked once for all of its seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import DataError, naming
from ...base.user_dir import hash_user_dir
from .corpus_facts import Corpus
from .known_options import check_known_options
from .needs import MULTI_TASK, describe_model, list_needs
from .prepare import RAW, WORDS, folder
from .row import Row
from .systems import Place, System, check_system, check_written_paths, read_overrides

if TYPE_CHECKING:
    from ...models.description import Description


@dataclass(frozen=True, eq=False)
class RowSettings:
    """What the seeds of a row share.

    Attributes:
        row: a config, perhaps with changes.
        corpus: what it translates.
        package: the folder ``syncattn_fairseq``.
        overrides: the user's values by ``SECTION.OPTION`` for all rows.
    """

    row: Row
    corpus: Corpus
    package: Path
    overrides: Mapping[str, Any]

    @cached_property
    def base(self) -> System:
        """The system without changes."""
        return self.corpus.system(self.row.system)

    @cached_property
    def own_changes(self) -> dict[str, Any]:
        """The changes of this row alone, by ``SECTION.OPTION``."""
        return read_overrides(self.row.changes)

    @cached_property
    def changes(self) -> dict[str, Any]:
        """All changes to its config."""
        return {**self.overrides, **self.own_changes}

    @cached_property
    def config(self) -> dict[str, Any]:
        """All settings, except those that depend on the seed and the direction."""
        config = self.base.load(self.changes)
        place = partial(self.base.place_of, changed=self.changes)
        check_system(config, place)
        check_written_paths(config, place, self.overrides)
        check_known_options(config, place, self._find_plugin(config), self.changes)
        self._check_kept(config, place)
        return config

    def _check_kept(self, config: Mapping[str, Any], place: Place) -> None:
        """Check that a training leaves the checkpoints that are decoded."""
        wanted = self.corpus.checkpoint
        lost: dict[str, Any] = {"checkpoint.no_save": True}
        if wanted == "best":
            lost["dataset.disable_validation"] = True
        elif wanted == "last":
            lost["checkpoint.no_last_checkpoints"] = True
        else:
            lost["checkpoint.no_epoch_checkpoints"] = True
            kept = config["checkpoint"].get("keep_last_epochs", -1)
            lost["checkpoint.keep_last_epochs"] = kept if 0 <= kept < int(wanted) else None
        for name, value in lost.items():
            section, _, option = name.partition(".")
            if value is not None and config[section].get(option) == value:
                raise DataError(
                    f"{place(name)}={value}: then there is no checkpoint to decode, for which "
                    f"_data.yaml says checkpoint: {wanted}; leave it out"
                )

    @cached_property
    def model(self) -> Description:
        """What its model reads and shows."""
        config = self.config
        with naming(self._origin):
            return describe_model(config)

    @cached_property
    def needs(self) -> set[str]:
        """What it needs besides the texts."""
        model = self.model
        with naming(self._origin):
            return list_needs(self.config, model)

    @property
    def _origin(self) -> str:
        """Where the settings of model and losses are from, for messages."""
        changes = ", ".join(
            f"{name}={value}"
            for name, value in self.changes.items()
            if name.startswith(("model.", "criterion."))
        )
        return f"{self.base.path}, with {changes}" if changes else str(self.base.path)

    @property
    def plugin(self) -> Path:
        """The folder that fairseq loads: this package, or the user's own from ``user_dir``."""
        return self._find_plugin(self.config)

    def _find_plugin(self, config: Mapping[str, Any]) -> Path:
        folder = Path(config["common"].get("user_dir", self.package.name))
        return self.package if str(folder) == self.package.name else folder.resolve()

    @cached_property
    def own_plugin(self) -> str:
        """A checksum of the user's own plugin; empty: there is none."""
        return "" if self.plugin == self.package else hash_user_dir(self.plugin)

    @property
    def references(self) -> Path:
        """The file that its translations are compared with."""
        part = WORDS if self.corpus.score.get("references") == WORDS else RAW
        return folder(self.corpus, part) / f"test.{self.corpus.target}"

    @cached_property
    def scored_reference(self) -> dict[str, Any]:
        """What fairseq-generate prints when it scores the references; empty: it does not."""
        corpus, model = self.corpus, self.model
        if not model.layered or MULTI_TASK in self.needs:
            return {}  # no layers; a tag that is not a word
        printed = {
            "print_layer_alignments": bool(corpus.generated or corpus.gold_alignments),
            "print_alignment": bool(corpus.generated),
            "print_distances": bool(corpus.generated)
            and {"src_distances", "tgt_distances"} <= model.exposed.keys(),
            "print_parses": bool(self.parsed_languages),
        }
        return printed if any(printed.values()) else {}

    @property
    def parsed_languages(self) -> list[str]:
        """The languages whose parses can be compared with those of the corpus."""
        corpus = self.corpus
        if not self.model.parses:
            return []
        return [x for x in corpus.languages if corpus.generated or f"heads.{x}" in self.needs]
