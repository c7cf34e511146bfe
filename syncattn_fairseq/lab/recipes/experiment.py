"""From a binarised corpus to scored systems: a cell is a system with a seed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import naming
from ...base.user_dir import hash_user_dir
from .aligner import PROGRAM, WAYS
from .cell_results import REVERSED
from .corpus_facts import Corpus
from .known_options import check_options
from .launch import Machines, training
from .needs import MULTI_TASK, describe_model, needs_of
from .prepare import RAW, WORDS, folder, gold_alignments, read_by
from .row import DECODING, Row
from .stages import Stage, Step, new_step, options
from .systems import (
    IGNORED,
    System,
    check_places,
    check_system,
    generation_options,
    read_overrides,
)

if TYPE_CHECKING:
    from ...models.description import Description

#: Settings that only say when a training ends, if the learning rate does not depend on them.
LIMITS = (
    *("optimization.max_update", "optimization.max_epoch", "optimization.stop_time_hours"),
    "checkpoint.patience",
)
#: Schedules of the learning rate that do not depend on when the training ends.
ENDLESS = ("inverse_sqrt", "fixed")
#: BLEU on the validation set, with greedy search and subwords joined.
VALID_BLEU = {
    "task.eval_bleu": True,
    "task.eval_bleu_args": '{"beam": 1, "max_len_a": 1.2, "max_len_b": 10}',
    "task.eval_tokenized_bleu": True,
}


@dataclass(frozen=True, eq=False)
class Experiment:
    """What all cells of a table share.

    Attributes:
        corpus: what the systems translate.
        plugin: the folder ``syncattn_fairseq``.
        machines: where they are trained.
        overrides: values by ``SECTION.OPTION`` for all cells.
        valid_bleu: whether to measure BLEU on the validation set during training.
    """

    corpus: Corpus
    plugin: Path
    machines: Machines
    overrides: Mapping[str, Any] = field(default_factory=dict)
    valid_bleu: bool = False


@dataclass(frozen=True, eq=False)
class Cell:
    """A system with a seed.

    Attributes:
        experiment: the experiment it is part of.
        row: a config, perhaps with changes.
        given_seed: seed of the training; None: the config's.
    """

    experiment: Experiment
    row: Row
    given_seed: int | None = None

    @cached_property
    def base(self) -> System:
        """The system without changes."""
        return self.experiment.corpus.system(self.row.system)

    @cached_property
    def changes(self) -> dict[str, Any]:
        """The changes to its config, by ``SECTION.OPTION``."""
        experiment = self.experiment
        scheme = {"task.eval_bleu_remove_bpe": experiment.corpus.subwords.scheme}
        measured = VALID_BLEU | scheme if experiment.valid_bleu else {}
        return {**measured, **experiment.overrides, **self.own_changes}

    @cached_property
    def own_changes(self) -> dict[str, Any]:
        """The changes of this row alone."""
        return read_overrides(self.row.changes)

    @cached_property
    def config(self) -> dict[str, Any]:
        """All settings, except those that depend on the seed and the direction."""
        config = self.base.load(self.changes)
        check_system(config, self.base.path)
        check_places(config, self.base.path, self.experiment.overrides.keys())
        check_options(config, self.base.path, self._plugin(config), self.changes.keys())
        return config

    @cached_property
    def model(self) -> Description:
        """What its model reads and shows."""
        config = self.config
        with naming(self._source):
            return describe_model(config)

    @cached_property
    def needs(self) -> set[str]:
        """What it needs besides the texts."""
        config = self.config
        with naming(self._source):
            return needs_of(config)

    @property
    def _source(self) -> str:
        """Where the settings of model and losses are from, for messages."""
        given = {k: v for k, v in self.changes.items() if k.startswith(("model.", "criterion."))}
        changes = ", ".join(f"{name}={value}" for name, value in given.items())
        return f"{self.base.path}, with {changes}" if changes else str(self.base.path)

    @property
    def seed(self) -> int:
        """The seed of its training."""
        seed: int = self.config["common"]["seed"]
        return seed if self.given_seed is None else self.given_seed

    @property
    def name(self) -> str:
        """Its name on the terminal."""
        return f"{self.row.label}, seed {self.seed}"

    @property
    def plugin(self) -> Path:
        """The folder that fairseq loads: this package, or the user's own from ``user_dir``."""
        return self._plugin(self.config)

    def _plugin(self, config: Mapping[str, Any]) -> Path:
        ours = self.experiment.plugin
        named = Path(config["common"].get("user_dir", ours.name))
        return ours if str(named) == ours.name else named.resolve()

    @property
    def own_plugin(self) -> str:
        """A checksum of the user's own plugin; empty: there is none."""
        plugin = self.plugin
        return "" if plugin == self.experiment.plugin else hash_user_dir(plugin)

    @property
    def folder(self) -> Path:
        """The folder of its model, shared by systems that differ only in decoding."""
        made = Path(self.config["checkpoint"]["save_dir"])
        return made.with_name(self.row.model_folder(made.name)) / str(self.seed)

    @property
    def output(self) -> Path:
        """The folder of its translations and scores."""
        return self.folder / self.row.output_folder

    def checkpoint(self, below: Path = Path()) -> Path:
        """Return the file of the model that translates.

        Args:
            below: the folder of its direction, below the cell's.
        """
        kind = self.experiment.corpus.checkpoint
        kind = "average" if isinstance(kind, int) else kind
        return self.folder / below / f"checkpoint_{kind}.pt"

    def stages(self) -> list[Stage]:
        """Return its stages, from training to scores."""
        trainings = [self._training(*direction) for direction in self._directions()]
        trained = tuple(training.log for training in trainings)
        decoding = Stage("decode", self.output / "decode", self._decode(), after=trained)
        scoring = Stage("score", self.output / "score", self._score(), after=(decoding.log,))
        return [
            replace(
                stage,
                title=": ".join([self.name, stage.name, *stage.title.split()]),
                settings=self._settings(stage.name),
            )
            for stage in (*trainings, decoding, scoring)
        ]

    def _settings(self, stage: str) -> dict[str, Any]:
        """Return the settings that the result of a stage depends on."""
        corpus = self.experiment.corpus
        if stage == "score":
            return dict(corpus.score)
        if stage == "decode":
            return {"checkpoint": corpus.checkpoint, **self.config.get(DECODING, {})}
        sections = (name for name in self.config if name not in IGNORED)
        settings = {f"{s}.{name}": v for s in sections for name, v in self.config[s].items()}
        return settings | ({"plugin": plugin} if (plugin := self.own_plugin) else {})

    def _directions(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield each direction's folder below the cell's, and its changed settings."""
        corpus = self.experiment.corpus
        yield Path(), {}
        if corpus.gold_alignments:  # alignments are symmetrised
            languages = {"task.source_lang": corpus.target, "task.target_lang": corpus.source}
            yield Path(REVERSED), languages

    def _training(self, below: Path, direction: Mapping[str, Any]) -> Stage:
        """Return the training of one direction."""
        experiment, save_dir = self.experiment, self.folder / below
        settings = {"task.data": self.config["task"]["data"], **self.changes, **direction}
        settings["common.seed"] = self.seed
        settings["checkpoint.save_dir"] = str(save_dir)
        settings |= self._tracking(save_dir)
        settings = {k: v for k, v in settings.items() if not k.startswith(DECODING)}
        scheduler = self.config.get("lr_scheduler", {}).get("_name", "fixed")
        return Stage(
            "train",
            save_dir / "train",
            [
                new_step("mkdir", "-p", save_dir),
                training(self.base, self.plugin, experiment.machines, settings),
            ],
            title=below.name,
            after=read_by(experiment.corpus, self.needs),
            resumes="checkpoint*.pt",
            limits=LIMITS if scheduler in ENDLESS else (),
            updates=self.config["optimization"].get("max_update") or None,
        )

    def _tracking(self, save_dir: Path) -> dict[str, str]:
        """Give each training its own folder for TensorBoard, which would mix them."""
        logs = self.config["common"].get("tensorboard_logdir")
        made = Path(str(logs), *save_dir.parts[1:])
        return {"common.tensorboard_logdir": str(made)} if logs else {}

    def _decode(self) -> list[Step]:
        corpus = self.experiment.corpus
        steps = []
        for below, changes in self._directions():
            steps.append(new_step("mkdir", "-p", self.output / below))
            path = self.checkpoint(below)
            if isinstance(corpus.checkpoint, int):
                last = ("--last", corpus.checkpoint, "--dir", self.folder / below)
                steps.append(new_step("syncattn-average", *last, "--output", path))
            joined = ("--remove-bpe", corpus.subwords.scheme)
            beam = (*joined, *generation_options(self.config))
            steps.append(self._generate(path, below / "test.txt", changes, *beam))
            if self._reference:
                forced = ("--score-reference", *options(self._reference))
                steps.append(self._generate(path, below / "forced.txt", changes, *forced))
        return steps

    @property
    def _reference(self) -> dict[str, Any]:
        """What fairseq-generate prints when it scores the references; empty: it does not."""
        corpus = self.experiment.corpus
        if not self.model.layered or MULTI_TASK in self.needs:
            return {}  # no layers; a tag that is not a word
        printed = {
            "print_layer_alignments": bool(corpus.generated or corpus.gold_alignments),
            "print_alignment": bool(corpus.generated),
            "print_distances": bool(corpus.generated)
            and {"src_distances", "tgt_distances"} <= self.model.exposed.keys(),
            "print_parses": bool(self._parsed),
        }
        return printed if any(printed.values()) else {}

    @property
    def _parsed(self) -> list[str]:
        """The languages whose parses can be compared with those of the corpus."""
        corpus = self.experiment.corpus
        if not self.model.parses:
            return []
        return [
            name for name in corpus.languages if corpus.generated or f"heads.{name}" in self.needs
        ]

    def _generate(self, path: Path, output: Path, changes: dict[str, Any], *how: str) -> Step:
        machines = self.experiment.machines
        task = self.config["task"]
        source = changes.get("task.source_lang", task["source_lang"])
        target = changes.get("task.target_lang", task["target_lang"])
        step = new_step(
            *("fairseq-generate", task["data"], "--user-dir", self.plugin),
            *("--task", task["_name"], "-s", source, "-t", target, "--path", path),
            *("--batch-size", "100", *(["--cpu"] if machines.cpu else []), *how),
        )
        return replace(step, output=self.output / output, job=machines.job(1))

    @property
    def references(self) -> Path:
        """The file that its translations are compared with."""
        corpus = self.experiment.corpus
        part = WORDS if corpus.score.get("references") == WORDS else RAW
        return folder(corpus, part) / f"test.{corpus.target}"

    def _score(self) -> list[Step]:
        corpus, output = self.experiment.corpus, self.output
        words = folder(corpus, WORDS)
        how = {name: value for name, value in corpus.score.items() if name != "references"}
        reference = self._reference
        forced = [output / "forced.txt"] if reference else []
        gold: list[object] = []
        if corpus.generated and reference:
            gold += ["--alignments", words / "test.align"]
        for side, language in (("source", corpus.source), ("target", corpus.target)):
            if language in self._parsed:
                gold += [f"--{side}-heads", words / f"test.heads.{language}"]
        steps = [
            new_step(
                *("syncattn-score", "--references", self.references),
                *options(how),
                *("--system", self.row.label, output / "test.txt", *forced, *gold),
                *("--json", output / "scores.json", "--text", output / "translations.txt"),
            )
        ]
        if reference.get("print_layer_alignments"):
            links: list[object] = ["--forward", "cell", output / "forced.txt"]
            if corpus.gold_alignments:
                links += ["--one-based", "--backward", "cell", output / REVERSED / "forced.txt"]
                steps.append(self._score_reversed(how))
                if shutil.which(PROGRAM):
                    for way in WAYS:
                        links += [f"--{way}", PROGRAM, words / f"{PROGRAM}.{way}"]
            steps.append(
                new_step(
                    *("syncattn-align", "--gold", gold_alignments(corpus), *links),
                    *("--json", output / "align.json"),
                )
            )
        if corpus.generated and reference.get("print_distances"):
            steps += self._trees(words)
        return steps

    def _score_reversed(self, how: Mapping[str, Any]) -> Step:
        """Score the translations in the other direction."""
        folder = self.output / REVERSED
        references = self.references.with_name(f"test.{self.experiment.corpus.source}")
        outputs = (
            "--system",
            self.row.label,
            folder / "test.txt",
            "--json",
            folder / "scores.json",
        )
        return new_step("syncattn-score", "--references", references, *options(how), *outputs)

    def _trees(self, words: Path) -> list[Step]:
        """Induce trees of the target side from the distances of each gated layer."""
        target, output = self.experiment.corpus.target, self.output
        steps, systems = [], []
        for layer in self.model.exposed["tgt_distances"]:
            made = output / f"trees-{layer}.{target}"
            steps.append(
                new_step(
                    *("syncattn-trees", "induce", "--decoded", output / "forced.txt"),
                    *("--layer", layer, "--text", words / f"test.{target}", "--output", made),
                )
            )
            systems += ["--system", f"layer {layer}", made]
        score = ("syncattn-trees", "score", "--gold", words / f"test.trees.{target}", *systems)
        return [*steps, new_step(*score, "--json", output / "trees.json")]
