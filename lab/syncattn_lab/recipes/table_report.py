"""The report of a recipe: the call of ``syncattn-show --html`` that makes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from syncattn_fairseq.data.parses import SPANS

from ..evaluation.table_rows import TableRow
from .cell import Cell, make_cells
from .cell_results import ANALYSES
from .corpus_facts import Corpus
from .launch import Machines
from .places import WORDS, data, examined, folder, gold_alignments, subword_models
from .request import Request, read_row
from .stages import Step, command

#: Scoring options that ``syncattn-score`` and ``syncattn-show --html`` share.
_SCORING = ("tokenize", "detokenize", "subword_marks", "words_by")


@dataclass(frozen=True)
class TableReport:
    """The contents of the page about a results table; its first row is the baseline."""

    request: Request
    work: Path
    rows: Sequence[TableRow]

    @property
    def corpus(self) -> Corpus:
        """The corpus that the systems are trained on."""
        return self.request.corpus

    @cached_property
    def decoded(self) -> list[Cell]:
        """The trainings whose translations and scores are on this machine."""
        given = {row.label: row for row in self.request.rows}
        configs, overrides = self.corpus.known_systems(), self.request.overrides
        chosen = [
            (done["seed"], given.get(row.system) or read_row(row.system))
            for row in self.rows
            if row.system in given or row.system in configs
            for done in row.cells
            if done["overrides"] == overrides
        ]
        cells = make_cells(self.corpus, Machines(), overrides, chosen)
        return [c for c in cells if (self.work / c.output / "score.done").exists()]

    @cached_property
    def shown(self) -> dict[str, Cell]:
        """The first training of each row that has translations, by the row's label.

        Its sentences are shown.
        """
        first: dict[str, Cell] = {}
        for cell in self.decoded:
            first.setdefault(cell.row.label, cell)
        return first

    def call(self, output: Path) -> Step:
        """Return the ``syncattn-show`` command that writes the page, with absolute paths."""
        systems = []
        for name, cell in self.shown.items():
            paths = [self.work / cell.output / file for file in ("test.txt", ANALYSES)]
            systems.append([name, *(path for path in paths if path.exists())])
        logs = [[c.row.label, self.work / c.folder / "train.log"] for c in self.decoded]
        corpus = self.corpus
        found = self.work / examined(corpus)
        return command(
            "syncattn-show",
            html=output.absolute(),
            system=systems,
            log=logs,
            **self._attention(),
            title=f"{corpus.name}: {', '.join(self.shown)}",
            references=self.work / next(iter(self.shown.values())).settings.references,
            **{name: value for name, value in corpus.score.items() if name in _SCORING},
            examined=found if found.exists() else None,
            **self._gold(),
        )

    def _gold(self) -> dict[str, Any]:
        """Return the options that name the source text and the gold annotation of both texts."""
        corpus = self.corpus
        words = self.work / folder(corpus, WORDS)
        given: dict[str, Any] = {"source": words / f"test.{corpus.source}"}
        for side, language in (("source", corpus.source), ("target", corpus.target)):
            for kind in ("heads", "labels", "trees", SPANS):
                path = words / f"test.{kind}.{language}"
                if path.exists():
                    given[f"{side}_{kind}"] = path
        parses = words / f"test.{corpus.source}.conllu"
        if parses.exists():
            given["source_parses"] = parses
        links = self.work / gold_alignments(corpus)
        if links.exists() and not corpus.subwords.raw:  # whose gold is of other words
            given |= {"alignments": links, "one_based": not corpus.generated}
        return given

    def _attention(self) -> dict[str, Any]:
        """Return the options that show the attention of models with dependency heads."""
        corpus = self.corpus
        models = [self.work / path for path in subword_models(corpus)]
        shown = []
        for name, cell in self.shown.items():
            path = self.work / cell.checkpoint()
            # A model that reads a parse would need a parser here.
            reads = any(map(cell.settings.model.fields.reads, ("heads", "labels")))
            if (
                cell.settings.model.parses
                and not reads
                and not cell.settings.own_plugin
                and path.exists()
            ):
                shown.append([name, path])
        if not shown or not all(model.exists() for model in models):
            return {}
        return {"attention": shown, "data_bin": self.work / data(corpus), "subwords": models}

    def say_shown(self) -> str:
        """Return a sentence for the page on the seed of each system in all that follows."""
        seeds = {name: cell.seed for name, cell in self.shown.items()}
        if len({*seeds.values()}) == 1:
            return f"From here on, all is of seed {next(iter(seeds.values()))}."
        return f"From here on, all is of seed {', '.join(f'{s} ({n})' for n, s in seeds.items())}."

    def means(self, measure: str) -> dict[str, float]:
        """Return the mean of a measure over the seeds of each row with this measure, by row."""
        scores = {row.name: row.list_numbers(measure) for row in self.rows}
        return {name: mean(numbers) for name, numbers in scores.items() if numbers}
