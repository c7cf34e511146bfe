"""What a call of ``syncattn-recipe`` is about: rows of a corpus's table, and their seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ...base.errors import DataError
from .corpus_facts import Corpus
from .plan import Plan, load_plan
from .row import Row, is_row, read_row


@dataclass(frozen=True)
class Request:
    """The arguments of a call, read.

    Attributes:
        corpus: what is translated.
        words: systems, groups and settings as they were written.
        rows: the systems to train, those of groups among them.
        overrides: values by ``SECTION.OPTION`` for all rows.
        seeds: one training each for every row; None: the config's.
        plan: the corpus's plan, if rows and seeds are from there.
    """

    corpus: Corpus
    words: Sequence[str]
    rows: Sequence[Row]
    overrides: Mapping[str, Any]
    seeds: Sequence[int] | None
    plan: Plan | None

    def list_cells(self) -> list[tuple[int | None, Row]]:
        """List seeds and rows, all rows of a seed together; None: the config's seed.

        Raises:
            DataError: none of the seeds is planned.
        """
        seeds: list[int | None] = [*dict.fromkeys(self.seeds or ())] or [None]
        if not self.plan:
            return list(product(seeds, self.rows))
        planned = self.plan.list_trainings()
        every = sorted({seed for row in self.rows for seed in planned[row.label]})
        seeds = seeds if self.seeds else list(every)
        cells: list[tuple[int | None, Row]] = [
            (seed, row) for seed in seeds for row in self.rows if seed in planned[row.label]
        ]
        if not cells:
            raise DataError(f"--seeds {seeds[0]}: planned are {', '.join(map(str, every))}")
        return cells

    def list_groups(self) -> dict[str, Sequence[str]]:
        """Return the systems of the groups that were asked for, by name."""
        names = [word for word in self.words if word.startswith("@") and word != "@all"]
        return {name[1:]: self.corpus.members(name) for name in names}


def read_request(
    corpus: Corpus, words: Sequence[str], seeds: Sequence[int] | None, planned: bool
) -> Request:
    """Read what to train.

    Args:
        corpus: what is translated.
        words: systems, groups and settings, as on the command line.
        seeds: of the command line.
        planned: whether rows and seeds are those of the corpus's plan, if they are not given.

    Raises:
        DataError: a word or the plan cannot be read, or a row is not planned.
    """
    from .systems import read_overrides

    members = [name for word in words for name in corpus.members(word)]
    _check_files(members, words, corpus)
    settings = [word for word in members if not is_row(word)]
    rows = _read_rows([word for word in members if is_row(word)], corpus)
    plan = load_plan(corpus.folder) if planned else None
    if plan:
        if settings:
            raise DataError(f"{settings[0]}: --plan trains systems as they were planned")
        trainings = plan.list_trainings()
        _check_files(trainings, words, corpus)
        rows = rows or _read_rows([*trainings], corpus)
        if others := [row.label for row in rows if row.label not in trainings]:
            raise DataError(f"{others[0]}: not in {corpus.folder / '_plan.yaml'}")
    if seeds or plan:
        for word in (*settings, *(change for row in rows for change in row.changes)):
            if word.startswith("common.seed="):
                raise DataError(f"{word}: --seeds or --plan says another seed; give one of both")
    return Request(corpus, words, rows, read_overrides(settings), seeds, plan)


def _check_files(members: Iterable[str], words: Sequence[str], corpus: Corpus) -> None:
    """Refuse plugins and settings of all systems that a file names, in a group or a plan."""
    from .known_options import ONLY_GIVEN

    for member in members:
        if member not in words and not is_row(member):
            raise DataError(f"{corpus.folder}: {member}: a group holds systems only")
        if member not in words and "common.user_dir=" in member:
            raise DataError(f"{corpus.folder}: {member}: {ONLY_GIVEN}")


def _read_rows(words: Sequence[str], corpus: Corpus) -> list[Row]:
    """Read rows, each once."""
    rows: dict[str, Row] = {}
    for word in words:
        row = read_row(word, corpus.known_systems())
        if rows.setdefault(row.label, row) != row:
            raise DataError(f"{word}: {row.label} is another row already; choose another name")
    return [*rows.values()]
