"""The report of what a recipe has trained: a call of ``syncattn-report``, and what seeds tell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean

from ..evaluation.table_rows import TableRow
from .cell import Cell, make_cells
from .corpus_facts import Corpus
from .launch import Machines
from .prepare import PIECES, WORDS, data, folder, gold_alignments
from .request import Request, read_row
from .stages import Step, new_step, options

#: Options of ``syncattn-score`` that ``syncattn-report`` has, too.
_SCORING = ("tokenize", "detokenize", "subword_marks", "words_by")


@dataclass(frozen=True)
class TableReport:
    """What is shown of a table's rows; the first one's system is the baseline."""

    request: Request
    work: Path
    rows: Sequence[TableRow]

    @property
    def corpus(self) -> Corpus:
        """What they translate."""
        return self.request.corpus

    @cached_property
    def decoded(self) -> list[Cell]:
        """The trainings whose translations are here."""
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
        """The first training of each system, whose sentences are shown."""
        first: dict[str, Cell] = {}
        for cell in self.decoded:
            first.setdefault(cell.row.label, cell)
        return first

    def call(self, output: Path) -> Step:
        """Return the call that writes the page, from any folder."""
        words: list[object] = []
        for name, cell in self.shown.items():
            outputs = self.work / cell.output
            files = [
                outputs / file for file in ("test.txt", "forced.txt") if (outputs / file).exists()
            ]
            words += ["--system", name, *files]
        for cell in self.decoded:
            words += ["--log", cell.row.label, self.work / cell.folder / "train.log"]
        corpus = self.corpus
        references = self.work / next(iter(self.shown.values())).settings.references
        scoring = options({k: v for k, v in corpus.score.items() if k in _SCORING})
        return new_step(
            *("syncattn-report", "--output", output.absolute(), *words, *self._attention()),
            *("--title", f"{corpus.name}: {', '.join(self.shown)}"),
            *("--references", references, *scoring, *self._gold()),
        )

    def _gold(self) -> Iterator[object]:
        corpus = self.corpus
        words = self.work / folder(corpus, WORDS)
        yield from ("--source", words / f"test.{corpus.source}")
        for side, language in (("source", corpus.source), ("target", corpus.target)):
            for kind in ("heads", "labels", "trees"):
                path = words / f"test.{kind}.{language}"
                if path.exists():
                    yield from (f"--{side}-{kind}", path)
        links = self.work / gold_alignments(corpus)
        if links.exists():
            yield from ("--alignments", links, *(() if corpus.generated else ("--one-based",)))

    def _attention(self) -> list[object]:
        """Return the arguments that show the attention of models with heads that parse."""
        corpus = self.corpus
        names = ["bpe"] if corpus.subwords.joint else [f"bpe.{side}" for side in corpus.languages]
        models = [self.work / folder(corpus, PIECES) / f"{name}.model" for name in names]
        arguments: list[object] = []
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
                arguments += ["--attention", name, path]
        if not arguments or not all(model.exists() for model in models):
            return []
        return [*arguments, "--data-bin", self.work / data(corpus), "--subwords", *models]

    def say_shown(self) -> str:
        """Say which seeds are shown."""
        seeds = {name: cell.seed for name, cell in self.shown.items()}
        if len({*seeds.values()}) == 1:
            return f"From here on, all is of seed {next(iter(seeds.values()))}."
        return f"From here on, all is of seed {', '.join(f'{s} ({n})' for n, s in seeds.items())}."

    def means(self, measure: str) -> dict[str, float]:
        """Return the mean of a measure over the seeds of each row that has it."""
        scores = {row.name: row.list_numbers(measure) for row in self.rows}
        return {name: mean(numbers) for name, numbers in scores.items() if numbers}
