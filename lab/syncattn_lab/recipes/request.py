"""What a call of ``syncattn-recipe`` asks for: rows of a corpus's table, and their seeds."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from syncattn_fairseq.base.errors import DataError

from .corpus_facts import Corpus
from .plan import Plan, load_plan
from .systems import GENERATION, ONLY_GIVEN, read_overrides

_NAMED = re.compile(r"([^=:.]*)=([^=:]*)(:.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Row:
    """A row of a results table: a system, perhaps with changed settings and a name of its own.

    Attributes:
        text: the row as the user wrote it: ``SYSTEM:SECTION.OPTION=VALUE:...``, perhaps with
            ``NAME=`` before it.
        system: the name of the system's config.
        changes: changed settings, each ``SECTION.OPTION=VALUE``.
        name: the row's own name; empty: it is called ``text``.
    """

    text: str
    system: str
    changes: tuple[str, ...] = ()
    name: str = ""

    @property
    def label(self) -> str:
        """The row's name in tables, logs and results."""
        return self.name or self.text

    def model_folder(self, base: str) -> str:
        """Return the name of the model's folder; ``base`` if no setting of training is changed."""
        return self.name if self.name and self._trained else _slug(base, *self._trained)

    @property
    def output_folder(self) -> str:
        """The subfolder of the model's folder for translations, or ``""`` for the folder itself."""
        if self.name:
            return "" if self._trained else self.name
        return _slug(*filter(_is_decoding, self.changes))

    @property
    def _trained(self) -> list[str]:
        return [text for text in self.changes if not _is_decoding(text)]


def is_row(word: str) -> bool:
    """Tell whether an argument is a row (a system), and not a setting of all systems."""
    return "=" not in word.partition(":")[0] or _NAMED.fullmatch(word) is not None


def read_row(text: str, known: Container[str] = ()) -> Row:
    """Parse a row of a results table, such as ``rotary=transformer:model.positions=rotary``.

    `DataError`: its name is one of the ``known`` systems, does not begin with a letter, or has
    characters other than letters, digits, ``_``, ``+`` and ``-``.
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        system, *changes = text.split(":")
        return Row(text, system, tuple(changes))
    name, system, changes_text = match.groups()
    if not _NAME.fullmatch(name):
        raise DataError(
            f"{text}: NAME in NAME=SYSTEM has only letters, digits, _, + and -, and begins with "
            "a letter"
        )
    if name in known:
        raise DataError(f"{text}: there is already a config named {name}; choose another name")
    return Row(text, system, tuple(changes_text[1:].split(":")), name)


def _is_decoding(change: str) -> bool:
    return change.startswith(GENERATION)


def _slug(*texts: str) -> str:
    """Join texts into the name of a folder without colons, at which fairseq would split it."""
    return "-".join(filter(None, (re.sub(r"[^\w.+-]+", "_", text) for text in texts)))


@dataclass(frozen=True)
class Request:
    """The rows, settings and seeds that a call of ``syncattn-recipe`` asks for.

    ``overrides`` are settings of all rows, by ``SECTION.OPTION``; ``rows`` include the systems of
    groups. Each row is trained once with each of ``seeds``; None stands for the seed of the config.
    ``plan`` is the corpus's plan, if its trainings are asked for.
    """

    corpus: Corpus
    words: Sequence[str]
    rows: Sequence[Row]
    overrides: Mapping[str, Any]
    seeds: Sequence[int] | None
    plan: Plan | None

    def list_cells(self) -> Sequence[tuple[int | None, Row]]:
        """List the pairs of seed and row to train, seed by seed; a seed of None is the config's.

        `DataError`: none of the seeds is in the plan.
        """
        seeds: list[int | None] = [*dict.fromkeys(self.seeds or ())] or [None]
        if not self.plan:
            return [*product(seeds, self.rows)]
        planned = self.plan.list_trainings()
        every = sorted({seed for row in self.rows for seed in planned[row.label]})
        seeds = seeds if self.seeds else [*every]
        cells = [(s, row) for s, row in product(seeds, self.rows) if s in planned[row.label]]
        if not cells:
            raise DataError(
                f"--seeds {seeds[0]}: this seed is not in the plan; choose from "
                f"{', '.join(map(str, every))}"
            )
        return cells

    def list_groups(self) -> dict[str, Sequence[str]]:
        """Return the systems of each requested group but ``@all``, by the name of the group."""
        names = [word for word in self.words if word.startswith("@") and word != "@all"]
        return {name[1:]: self.corpus.members(name) for name in names}


def read_request(
    corpus: Corpus, words: Sequence[str], seeds: Sequence[int] | None, planned: bool
) -> Request:
    """Parse which systems to train with which seeds, from arguments or the corpus's plan.

    Args:
        corpus: the corpus.
        words: systems, groups of systems, and settings for all of the systems.
        seeds: the seeds; None: the seed of the config, or the plan's.
        planned: whether to train the systems and seeds of the corpus's plan.

    Raises:
        DataError: a system, group or plan does not exist, or settings contradict the plan.
    """
    plan = load_plan(corpus.folder) if planned else None
    members = [name for word in words for name in corpus.members(word)]
    _check_files(members, words, corpus)
    if plan:
        members = [plan.names.get(name, name) for name in members]
    settings = [word for word in members if not is_row(word)]
    rows = _read_rows([word for word in members if is_row(word)], corpus)
    if plan:
        if settings:
            raise DataError(
                f"{settings[0]}: --plan trains systems with the planned settings; leave this "
                "setting out"
            )
        trainings = plan.list_trainings()
        _check_files(trainings, words, corpus)
        rows = rows or _read_rows([*trainings], corpus)
        if others := [row.label for row in rows if row.label not in trainings]:
            raise DataError(f"{others[0]}: not in {corpus.folder / '_plan.yaml'}")
    if seeds or plan:
        for word in (*settings, *(change for row in rows for change in row.changes)):
            if word.startswith("common.seed="):
                raise DataError(
                    f"{word}: the seed differs from that of --seeds or --plan; give the seed in "
                    "one place"
                )
    return Request(corpus, words, rows, read_overrides(settings), seeds, plan)


def _check_files(members: Iterable[str], words: Sequence[str], corpus: Corpus) -> None:
    """Raise `DataError` if a file (group or plan) names a plugin or settings of all systems."""
    for member in (member for member in members if member not in words):
        if not is_row(member):
            raise DataError(f"{corpus.folder}: {member}: a group contains only systems")
        if "common.user_dir=" in member:
            raise DataError(f"{corpus.folder}: {member}: {ONLY_GIVEN}")


def _read_rows(words: Sequence[str], corpus: Corpus) -> list[Row]:
    rows: dict[str, Row] = {}
    for word in words:
        row = read_row(word, corpus.known_systems())
        if rows.setdefault(row.label, row) != row:
            raise DataError(
                f"{word}: another row has the name {row.label} already; choose another name"
            )
    return [*rows.values()]
