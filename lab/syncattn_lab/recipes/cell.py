"""A cell of a table: the training of a system with a seed, from binarised corpus to scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from syncattn_fairseq.data.parses import SPANS

from .binary_steps import list_read, list_record
from .cell_results import ANALYSES, REVERSED
from .corpus_facts import Corpus
from .launch import Machines, make_training
from .places import PIECES, WORDS, data, folder, gold_alignments, list_texts
from .prepare import list_preparation
from .request import Row, read_row
from .row_settings import RowSettings
from .stages import Stage, Step, command, link_stages, split_commands
from .start import locate_start
from .start_folder import CHECKPOINT
from .systems import GENERATION, IGNORED, LIMITS, generation_options

#: Schedules of the learning rate that do not depend on when the training ends.
ENDLESS = ("inverse_sqrt", "fixed")
#: The setting that says what rows of the decoder parse.
_ROWS = "tgt_dependency_rows"
#: Names of the checkpoints that a training saves: after an epoch, after some updates, the best and
#: the last.
_OF_EPOCHS = "checkpoint[0-9]*.pt"
_CHECKPOINTS = (
    _OF_EPOCHS,
    "checkpoint_[0-9]*.pt",
    "checkpoint_best*.pt",
    "checkpoint.best_*.pt",
    "checkpoint_last*.pt",
)


def make_cells(
    corpus: Corpus,
    machines: Machines,
    overrides: Mapping[str, Any],
    chosen: Iterable[tuple[int | None, Row]],
) -> list[Cell]:
    """Return a `Cell`, which is one training, for each pair of seed and table row.

    Cells of the same row share its settings.

    Args:
        corpus: the corpus of all cells.
        machines: the processes and the kind of device of each training.
        overrides: changes of settings for all cells, by ``SECTION.OPTION``.
        chosen: pairs of seed and row; a seed of None stands for the seed of the config.

    Raises:
        DataError: a model needs parses, but the corpus has training text without parses.
    """
    rows: dict[Row, RowSettings] = {}
    cells = [
        Cell(rows.setdefault(row, RowSettings(row, corpus, overrides)), machines, seed)
        for seed, row in chosen
    ]
    for settings in rows.values() if corpus.unparsed else ():
        settings.check_unparsed()
    return cells


def list_needs(corpus: Corpus, cells: Iterable[Cell]) -> set[str]:
    """Return the annotations that trainings need, such as ``heads.en``.

    If there are no cells, they are those that all systems of the corpus need.
    """
    rows = [cell.settings for cell in cells] or [
        RowSettings(read_row(name), corpus) for name in corpus.members("@all")
    ]
    return set().union(*(row.needs for row in rows))


def list_stages(
    corpus: Corpus, cells: Sequence[Cell], cores: int, parsing: int
) -> tuple[list[Stage], dict[Cell, list[Stage]]]:
    """Return the stages to prepare a corpus, and the stages of each training and its scoring.

    Args:
        corpus: the corpus to prepare.
        cells: the cells; if there are none, the corpus is prepared for all of its systems.
        cores: the number of processes of the preparation.
        parsing: the number of parsing processes.
    """
    preparation = list_preparation(corpus, cores, parsing, list_needs(corpus, cells))
    return preparation, {cell: link_stages(cell.stages(), preparation) for cell in cells}


@dataclass(frozen=True, eq=False)
class Cell:
    """The training of a system with a seed, by default the seed of its config."""

    settings: RowSettings
    machines: Machines
    given_seed: int | None = None

    @property
    def row(self) -> Row:
        """The row of the results table that the training belongs to."""
        return self.settings.row

    @property
    def corpus(self) -> Corpus:
        """The corpus that the system is trained on."""
        return self.settings.corpus

    @property
    def seed(self) -> int:
        """The random seed of the training."""
        seed: int = self.settings.config["common"]["seed"]
        return seed if self.given_seed is None else self.given_seed

    @property
    def name(self) -> str:
        """The name of the training on the terminal, made of the row's label and the seed."""
        return f"{self.row.label}, seed {self.seed}"

    @property
    def folder(self) -> Path:
        """The folder of the model, shared by rows that differ only in settings of decoding."""
        folder = Path(self.settings.config["checkpoint"]["save_dir"])
        return folder.with_name(self.row.model_folder(folder.name)) / str(self.seed)

    @property
    def output(self) -> Path:
        """The folder of the translations and scores of the trained model."""
        return self.folder / self.row.output_folder

    def checkpoint(self, below: Path = Path()) -> Path:
        """Return the path of the checkpoint to decode with.

        ``below`` is the subfolder of a translation direction, if each direction has a model of its
        own.
        """
        kind = self.corpus.checkpoint
        kind = "average" if isinstance(kind, int) else kind
        return self.folder / below / f"checkpoint_{kind}.pt"

    def stages(self) -> list[Stage]:
        """Return the stages to train the system with this seed, to decode, and to score."""
        trainings = [self._training(*direction) for direction in self._directions()]
        decoding = Stage("decode", self.output / "decode", self._decode())
        words_by = split_commands(self.corpus.score.get("words_by", "cat"))
        programs = tuple(words[0] for words in words_by)
        scoring = Stage("score", self.output / "score", self._score(), programs=programs)
        return [
            replace(
                stage,
                title=": ".join([self.name, stage.name, *stage.title.split()]),
                settings=self._settings(stage.name),
            )
            for stage in (*trainings, decoding, scoring)
        ]

    def _settings(self, stage: str) -> dict[str, Any]:
        corpus, config = self.corpus, self.settings.config
        if stage == "score":
            return dict(corpus.score)
        if stage == "decode":
            return {"checkpoint": corpus.checkpoint, **config[GENERATION]}
        sections = (name for name in config if name not in IGNORED)
        settings = {f"{s}.{name}": v for s in sections for name, v in config[s].items()}
        return settings | ({"plugin": plugin} if (plugin := self.settings.own_plugin) else {})

    def _directions(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        corpus = self.corpus
        yield Path(), {}
        if corpus.gold_alignments:  # alignments are symmetrised
            languages = {"task.source_lang": corpus.target, "task.target_lang": corpus.source}
            yield Path(REVERSED), languages

    def _training(self, below: Path, direction: Mapping[str, Any]) -> Stage:
        row, save_dir = self.settings, self.folder / below
        binarised = row.config["task"]["data"]
        changes = {"task.data": binarised, **row.start, **row.changes, **direction}
        changes |= {"common.seed": self.seed, "checkpoint.save_dir": str(save_dir)}
        changes |= self._tracking(save_dir)
        changes = {k: v for k, v in changes.items() if not k.startswith(GENERATION)}
        changes["common.user_dir"] = str(row.plugin)
        scheduler = row.config["lr_scheduler"].get("_name", "fixed")
        step = make_training(row.base, row.config, self.machines, changes)
        made = [save_dir / name for name in _CHECKPOINTS]
        if self._data == data(self.corpus):  # a checkpoint is beside what is known of its text
            made += list_record(self.corpus, save_dir)
        started = [locate_start(self.corpus) / CHECKPOINT] if row.start else []
        return Stage(
            "train",
            save_dir / "train",
            [
                command("mkdir -p", save_dir),
                step.declare([*started, *self._list_data("train", "valid")], made),
            ],
            title=below.name,
            resumes=True,
            limits=LIMITS if scheduler in ENDLESS else (),
            updates=row.config["optimization"].get("max_update") or None,
        )

    @property
    def _data(self) -> Path:
        """The folder of the binarised corpus that the cell reads."""
        return Path(self.settings.config["task"]["data"])

    def _list_data(self, *splits: str) -> list[Path]:
        """List the files of the binarised corpus that the cell reads for the given splits."""
        return list_read(self.corpus, self._data, self.settings.needs, splits)

    def _tracking(self, save_dir: Path) -> dict[str, str]:
        """Return the setting of this training's own TensorBoard folder; empty without logs."""
        logs = self.settings.config["common"].get("tensorboard_logdir")
        folder = Path(str(logs), *save_dir.parts[1:])
        return {"common.tensorboard_logdir": str(folder)} if logs else {}

    def _decode(self) -> list[Step]:
        corpus = self.corpus
        steps = []
        for below, changes in self._directions():
            steps.append(command("mkdir -p", self.output / below))
            path = self.checkpoint(below)
            if isinstance(corpus.checkpoint, int):
                trained = self.folder / below
                mean = command("syncattn-average", last=corpus.checkpoint, dir=trained, output=path)
                steps.append(mean.declare([trained / _OF_EPOCHS], [path]))
            search = generation_options(self.settings.config)
            scheme = corpus.subwords.scheme
            beam = self._generate(path, changes, *search, remove_bpe=scheme)
            steps.append(beam.into(self.output / below / "test.txt"))
            if self.settings.scored_analyses:
                analyses = self._analyse(path, changes)
                steps.append(analyses.into(self.output / below / ANALYSES))
        return [*steps, self._validate()]

    def _validate(self) -> Step:
        """Return the step to measure the NLL of the test text.

        Unlike the validation text, it had no part in the choice of the checkpoint.
        """
        task = self.settings.config["task"]
        return command(
            "fairseq-validate",
            task["data"],
            user_dir=self.settings.plugin,
            task=task["_name"],
            path=self.checkpoint(),
            valid_subset="test",
            model_overrides="{'eval_bleu': False}",  # BLEU is that of the translations
            log_format="simple",
            batch_size=100,
            cpu=self.machines.cpu,
        ).declare([self.checkpoint(), *self._list_data("test")])

    def _generate(self, path: Path, changes: dict[str, Any], *words: str, **how: Any) -> Step:
        """Return the step to translate the test text with a checkpoint.

        The direction is that of the languages in ``changes``, by default the corpus's.
        """
        task = self.settings.config["task"]
        return command(
            "fairseq-generate",
            task["data"],
            *words,
            user_dir=self.settings.plugin,
            task=task["_name"],
            source_lang=changes.get("task.source_lang", task["source_lang"]),
            target_lang=changes.get("task.target_lang", task["target_lang"]),
            path=path,
            batch_size=100,
            cpu=self.machines.cpu,
            **how,
        ).declare([path, *self._list_data("test")])

    def _analyse(self, path: Path, changes: dict[str, Any]) -> Step:
        """Return the step that writes a checkpoint's parses and links of the references.

        The direction is that of the languages in ``changes``, by default the corpus's.
        """
        row, task = self.settings, self.settings.config["task"]
        source = changes.get("task.source_lang", task["source_lang"])
        target = changes.get("task.target_lang", task["target_lang"])
        pieces, words = folder(self.corpus, PIECES), folder(self.corpus, WORDS)
        parses = {}
        if any(map(row.model.fields.reads, ("heads", "labels"))):
            parses["input_heads"] = words / f"test.heads.{source}"
        if row.model.fields.reads("labels"):
            parses["input_labels"] = words / f"test.labels.{source}"
        if parses and self.corpus.subwords.raw:
            parses["input_spans"] = words / f"test.{SPANS}.{source}"
        texts = [pieces / f"test.{language}" for language in (source, target)]
        step = command(
            "syncattn-translate",
            path=path,
            data_bin=self._data,
            user_dir=row.plugin if row.own_plugin else None,
            in_subwords=True,
            input=texts[0],
            force=texts[1],
            **parses,
            jsonl=True,
            every_layer="links" in row.scored_analyses,
            batch_size=100,
            device="cpu" if self.machines.cpu else None,
        )
        dictionaries = [self._data / f"dict.{language}.txt" for language in (source, target)]
        return step.declare([path, *texts, *parses.values(), *dictionaries])

    def _score(self) -> list[Step]:
        corpus, output = self.corpus, self.output
        words = folder(corpus, WORDS)
        how = {name: value for name, value in corpus.score.items() if name != "references"}
        shown = self.settings.scored_analyses
        analyses = [output / ANALYSES] if shown else []
        gold: dict[str, Path] = {}
        counted: dict[str, Any] = {}
        if corpus.generated and "links" in shown:
            gold["alignments"] = words / "test.align"
        for side, language in (("source", corpus.source), ("target", corpus.target)):
            if shown and language in self.settings.parsed_languages:
                gold[f"{side}_heads"] = words / f"test.heads.{language}"
                pieces = folder(corpus, PIECES) / f"train.{language}"
                counted[f"{side}_counts"] = [pieces, words / f"train.heads.{language}"]
                if corpus.subwords.raw:  # the parser's words, others than those of analyses
                    gold[f"{side}_spans"] = words / f"test.{SPANS}.{language}"
                    texts = [words / f"train.{SPANS}.{language}", words / f"train.{language}"]
                    counted[f"{side}_counts"] += texts
        if "target_counts" in counted and self.settings.config["model"].get(_ROWS) == "input":
            counted["target_rows"] = "input"
        if "source_spans" in gold:
            gold["source"] = words / f"test.{corpus.source}"
        if "distances" in shown:
            gold["target_trees"] = words / f"test.trees.{corpus.target}"
        made = [output / "scores.json", output / "translations.txt"]
        scoring = command(
            "syncattn-score",
            references=self.settings.references,
            **how,
            system=[self.row.label, output / "test.txt", *analyses],
            **gold,
            json=made[0],
            **counted,
            text=made[1],
        )
        read = [self.settings.references, output / "test.txt", *analyses, *gold.values()]
        for side in ("source", "target"):
            read += counted.get(f"{side}_counts", [])
        steps = [scoring.declare(read, made)]
        if corpus.gold_alignments and "links" in shown:
            steps += [self._score_reversed(how), self._score_links()]
        return steps

    def _score_reversed(self, how: Mapping[str, Any]) -> Step:
        output = self.output / REVERSED
        references = self.settings.references.with_name(f"test.{self.corpus.source}")
        step = command(
            "syncattn-score",
            references=references,
            **how,
            system=[self.row.label, output / "test.txt"],
            json=output / "scores.json",
        )
        return step.declare([references, output / "test.txt"], [output / "scores.json"])

    def _score_links(self) -> Step:
        """Return the step that scores the word alignment of every layer.

        Alignments are scored in both directions and symmetrised. Gold alignments of raw sentences
        count the words between spaces of the test text.
        """
        gold, made = gold_alignments(self.corpus), self.output / "links.json"
        forward, backward = self.output / ANALYSES, self.output / REVERSED / ANALYSES
        texts = {}
        if self.corpus.subwords.raw:
            sides = list_texts(self.corpus, WORDS, ["test"])
            texts = dict(zip(("source", "target"), sides, strict=True))
        step = command(
            "syncattn-score links",
            gold=gold,
            one_based=True,
            forward=["cell", forward],
            backward=["cell", backward],
            **texts,
            json=made,
        )
        return step.declare([gold, forward, backward, *texts.values()], [made])
