"""The settings of a row of a table, loaded and checked once for all of its seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.user_dir import hash_user_dir
from syncattn_fairseq.data.parses import LINKS
from syncattn_fairseq.registered_names import CRITERION

from .corpus_facts import Corpus
from .known_options import check_known_options
from .places import MULTI_TASK, RAW, WORDS, folder
from .request import Row
from .stages import options
from .start import OF_TRAININGS, locate_start
from .start_folder import CHECKPOINT
from .systems import PLUGIN, Place, System, check_system, check_written_paths, read_overrides

if TYPE_CHECKING:
    from syncattn_fairseq.models.description import Description


@dataclass(frozen=True, eq=False)
class RowSettings:
    """The settings of a row of a results table, which are the same for all seeds.

    ``overrides`` are changes to all rows of the table.
    """

    row: Row
    corpus: Corpus
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def base(self) -> System:
        """The system that the row trains, without the row's changes to its settings."""
        return self.corpus.system(self.row.system)

    @cached_property
    def own_changes(self) -> dict[str, Any]:
        """The settings that this row alone changes, by ``SECTION.OPTION``."""
        return read_overrides(self.row.changes)

    @cached_property
    def changes(self) -> dict[str, Any]:
        """All changes to the config, of this row and of all rows."""
        return {**self.overrides, **self.own_changes}

    @cached_property
    def start(self) -> dict[str, Any]:
        """The options of the model to start from, by ``SECTION.OPTION``; empty without one.

        Options that the system's own file sets are left out, such as other positions.
        """
        corpus = self.corpus
        if corpus.start is None:
            return {}
        assert corpus.start_options is not None
        if self.base.files[-1].parent.name != "transformer":
            raise DataError(
                f"{self.base.path}: a recurrent network cannot start from {corpus.start}; leave "
                "the system out"
            )
        own = self.base.list_own("model")
        changes = {
            f"model.{name}": value
            for name, value in corpus.start_options.items()
            if name not in own and name not in OF_TRAININGS
        }
        return {**changes, "checkpoint.finetune_from_model": str(locate_start(corpus) / CHECKPOINT)}

    @cached_property
    def config(self) -> dict[str, Any]:
        """All settings of the row's trainings, except those that depend on seed or direction."""
        config = self.base.load({**self.start, **self.changes})
        place = partial(self.base.place_of, changed=self.changes)
        check_system(config, place)
        check_written_paths(config, place, self.overrides)
        check_known_options(config, place, _find_plugin(config), self.changes)
        self._check_kept(config, place)
        return config

    def _check_kept(self, config: Mapping[str, Any], place: Place) -> None:
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
        """What the model reads of a batch, and which tensors its heads return to losses."""
        config = self.config
        with naming(self._origin):
            return describe_model(config)

    @cached_property
    def needs(self) -> set[str]:
        """The annotations that the row's trainings need, such as ``heads.en``.

        If both translation directions are trained, these are the annotations of both.
        """
        config, model = self.config, self.model
        directions = [config["task"]]
        if self.corpus.gold_alignments:
            languages = {"source_lang": self.corpus.target, "target_lang": self.corpus.source}
            directions.append({**config["task"], **languages})
        with naming(self._origin):
            found = [list_needs({**config, "task": task}, model) for task in directions]
            if self.corpus.start is not None and any(MULTI_TASK in needs for needs in found):
                raise DataError(
                    f"Multi-Task needs words that the model of {self.corpus.start} does not have; "
                    "leave it out"
                )
        return set().union(*found)

    def check_unparsed(self) -> None:
        """Raise `DataError` if the model needs each sentence's parse but some text has none."""
        model, ignoring = self.model, self.config["task"].get("missing_parses") == "ignore"
        reads = any(map(model.fields.reads, ("heads", "labels"))) and not ignoring
        if self.corpus.unparsed and (reads or MULTI_TASK in self.needs):
            raise DataError(
                f"{self.row.label}: it needs the parse of every training sentence, and _data.yaml "
                "names texts without parses, unparsed; leave the system out"
            )

    @property
    def _origin(self) -> str:
        parts = ("model.", "criterion.")
        changes = [f"{k}={v}" for k, v in self.changes.items() if k.startswith(parts)]
        return ", with ".join([str(self.base.path), *([", ".join(changes)] if changes else [])])

    @property
    def plugin(self) -> Path:
        """The folder of the fairseq plugin, this package or the user's own from ``user_dir``."""
        return _find_plugin(self.config)

    @cached_property
    def own_plugin(self) -> str:
        """A checksum of the user's own plugin, or ``""`` without one."""
        return "" if self.plugin == PLUGIN else hash_user_dir(self.plugin)

    @property
    def references(self) -> Path:
        """The file of the reference translations, tokenised or not as the corpus scores them."""
        part = WORDS if self.corpus.score.get("references") == WORDS else RAW
        return folder(self.corpus, part) / f"test.{self.corpus.target}"

    @cached_property
    def scored_analyses(self) -> frozenset[str]:
        """The kinds of analyses that are scored, of ``links``, ``distances`` and ``parses``.

        The model analyses the references. The set is empty if nothing can be scored.
        """
        corpus, model = self.corpus, self.model
        if not model.layered or MULTI_TASK in self.needs:
            return frozenset()  # no layers; a tag that is not a word
        shown = set()
        if corpus.generated or corpus.gold_alignments:
            shown.add("links")
        if corpus.generated and {"src_distances", "tgt_distances"} <= model.exposed.keys():
            shown.add("distances")
        if self.parsed_languages:
            shown.add("parses")
        return frozenset(shown)

    @property
    def parsed_languages(self) -> list[str]:
        """The languages in which the model's parses are compared with those of the corpus."""
        corpus = self.corpus
        if not self.model.parses:
            return []
        return [x for x in corpus.languages if corpus.generated or f"heads.{x}" in self.needs]


def _find_plugin(config: Mapping[str, Any]) -> Path:
    chosen = Path(config["common"].get("user_dir", PLUGIN.name))
    return PLUGIN if str(chosen) == PLUGIN.name else chosen.resolve()


def describe_model(config: dict[str, Any]) -> Description:
    """Return what a model reads of a batch, and which tensors its heads return to losses.

    `DataError`: options of the model contradict each other.
    """
    from syncattn_fairseq import plugin  # noqa: F401  (registers our models)
    from syncattn_fairseq.models.description import describe

    values = {name: value for name, value in config["model"].items() if name != "_name"}
    return describe(config["model"]["_name"], [*options(values)])


def list_needs(config: dict[str, Any], model: Description) -> set[str]:
    """Return the annotations that a system needs, or only `MULTI_TASK` for a Multi-Task system.

    Others are ``heads.LANG``, ``labels.LANG`` and `LINKS`.
    """
    task = config["task"]
    if task["data"].endswith(MULTI_TASK):
        return {MULTI_TASK}
    languages = {side: task[f"{side}_lang"] for side in ("source", "target")}
    needs = {f"{k}.{languages['source']}" for k in ("heads", "labels") if model.fields.reads(k)}
    sides = {side for term in _build_losses(config) for side in term.list_parses(model.exposed)}
    needs |= {LINKS} if task.get("load_alignments") else set()
    return needs | {f"heads.{languages[side]}" for side in sides}


def _build_losses(config: dict[str, Any]) -> list[Any]:
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
    from fairseq.data import Dictionary

    from syncattn_fairseq.criterions.terms import TERMS

    values = config["criterion"]
    if values["_name"] != CRITERION:
        return []
    cfg = SimpleNamespace(**{**vars(CRITERION_DATACLASS_REGISTRY[CRITERION]()), **values})
    words = Dictionary()
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    return [term(cfg, task) for term in TERMS.values()]
