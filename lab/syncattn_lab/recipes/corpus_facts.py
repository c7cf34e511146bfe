"""The facts about a corpus that a recipe needs, from ``configs/CORPUS/_data.yaml``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from syncattn_fairseq.base.errors import DataError, naming, suggest
from syncattn_fairseq.data.doctor import read_limits
from syncattn_fairseq.data.languages import know_language
from syncattn_fairseq.data.parses import SPLITS
from syncattn_fairseq.parsing.formats import FORMATS

from .config_file import check_programs, make, need, read_config
from .corpus_texts import UNPARSED, Archive, Here, Texts
from .stages import read_options, split_commands
from .start_folder import check_facts
from .systems import (
    SHARED,
    System,
    check_group,
    check_language,
    find_file,
    find_system,
    list_systems,
    search_folders,
    settings_of_all,
)
from .text_formats import PAIRS, TEXTS

#: Prefix of the environment variables that choose another parser for a language.
PARSER = "PARSER_"
#: Attributes of a corpus that ``_data.yaml`` does not give, or not under these names.
_NO_KEYS = ("folder", "source", "target", "every", "last", "start_options")


@dataclass(frozen=True)
class Subwords:
    """How texts are split into subwords.

    Attributes:
        joint: whether subwords are learnt from source and target together.
        size: how many subwords are learnt; None: the text is published in subwords.
        unit: ``subword``, or ``word``: words are not split, and all but the ``size`` most frequent
            words of each side are unknown.
        joined_dictionary: whether source and target share a fairseq dictionary; None: as ``joint``.
        raw: whether subwords are learnt from sentences as people write them, which are not split
            into words then; parses and links have the words of `syncattn_fairseq.data.splitters`,
            or of the parser. Without ``size``, subwords are those of the model to start from.
    """

    joint: bool
    size: int | None = None
    unit: str = "subword"
    joined_dictionary: bool | None = None
    raw: bool = False

    @property
    def scheme(self) -> str:
        """How subwords mark word boundaries, as a value of fairseq's ``--remove-bpe``.

        It is ``none`` if the subwords are whole words.
        """
        if self.unit == "word":
            return "none"
        return "subword_nmt" if self.size is None and not self.raw else "sentencepiece"

    @property
    def joined(self) -> bool:
        """Whether source and target share one fairseq dictionary."""
        return self.joint if self.joined_dictionary is None else self.joined_dictionary


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How the texts of a corpus are prepared.

    Attributes:
        words: for each language a tokeniser. ``{cores}`` in it is the number of processes;
            ``{normalise}`` is ``--normalise`` for the training text alone.
        clean: options of ``syncattn-clean``; ``exclude`` names a split whose pairs are left out.
            None: all pairs are used.
        examine: the share of sentences from which on a fault is severe, by the kind of fault, where
            it is not the default (`syncattn_fairseq.data.doctor.Limits`).
        every: one of this many training pairs is held out for validation.
        last: this many training pairs, the last ones, are held out for validation.
        subwords: how words are split.
        start: the folder of a published model, or of one that ``syncattn-import`` has made, with
            which every training starts, whose subwords and dictionaries are used; None: trainings
            start from random weights.
        start_options: the options of that model, by name; None: it is not imported yet.
        parses: options of ``syncattn-parse`` for each language. A variable such as ``PARSER_JA``
            chooses another parser, as in ``--parser``: ``spacy:ja_ginza``.
    """

    words: dict[str, str] = field(default_factory=dict)
    clean: dict[str, Any] | None = field(default_factory=dict)
    examine: dict[str, Any] = field(default_factory=dict)
    every: int | None = None
    last: int | None = None
    subwords: Subwords
    start: str | None = None
    start_options: dict[str, Any] | None = None
    parses: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The systems to compare on a corpus, and how they are decoded and scored.

    Attributes:
        systems: the systems of ``@all``.
        groups: the systems of other groups, by the name of the group.
        checkpoint: the checkpoint to decode with: ``best``, ``last``, or a number of last epochs,
            whose mean it is.
        score: options of ``syncattn-score``.
    """

    systems: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    checkpoint: str | int = "best"
    score: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Corpus(Comparison, Preparation, Texts):
    """A parallel corpus: its texts, their preparation, and the comparison of systems.

    Each attribute of the three base classes is a key of ``_data.yaml``, see docs/recipes.md.

    Attributes:
        folder: folder of its configs, with the corpus's name.
        like: other corpora, whose facts and settings this one has unless it gives its own.
    """

    folder: Path
    like: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the corpus and of the corpus's folder."""
        return self.folder.name

    def baseline(self, system: str) -> str:
        """Return the name of a system's baseline in the system's paper."""
        return "rnn_global" if system.startswith("rnn_") else "transformer"

    @property
    def _files(self) -> tuple[tuple[Path, ...], tuple[str, ...]]:
        return search_folders(self.folder.parent), (*self.like, self.name)

    def known_systems(self) -> list[str]:
        """Return the names of all systems that can be trained on this corpus."""
        return list_systems(*self._files)

    def system(self, name: str) -> System:
        """Return the system with this name; `DataError` if there is none."""
        return find_system(*self._files, name)

    def members(self, word: str) -> list[str]:
        """Return the systems of the group if the word is ``@GROUP``, or else the word alone."""
        if not word.startswith("@"):
            return [word]
        groups = {"all": self.systems, **self.groups}
        if word[1:] not in groups:
            known = ", ".join(f"@{name}" for name in groups)
            raise DataError(f"{word}: {self.name} has no such group; choose from {known}")
        return groups[word[1:]]


def load_corpus(folder: Path, programs: Collection[str] = ()) -> Corpus:
    """Read the facts about a corpus from its folder; `DataError` if facts are missing or wrong.

    ``programs`` are those that a corpus outside this package may start (`check_programs`).
    """
    path = folder / "_data.yaml"
    like, facts = read_facts(search_folders(folder.parent), folder.name, programs)
    if isinstance(here := facts.get("here"), dict):
        splits = (*SPLITS, UNPARSED)
        texts = {split: [{"plain": here[split]}] for split in splits if split in here}
        if twice := [split for split in texts if split in facts and "archives" not in facts]:
            raise DataError(
                f"{path}: the text {twice[0]} is given twice: at the top and under here; remove "
                "one of the two"
            )
        facts = {"archives": [], **texts, **facts}
    if not facts.get("generated"):
        need(path, facts, ("archives", "train", "test"))
    if isinstance(facts.get("archives"), list):
        facts["archives"] = [make(Archive, path, archive) for archive in facts["archives"]]
    if facts.get("start") is not None:
        check_facts(facts, path)
        facts["subwords"] = {"joint": False, "raw": True}
    for name, kind in (("subwords", Subwords), ("here", Here)):
        if name in facts:
            facts[name] = make(kind, path, facts[name])
    _check_raw(facts, path)
    if (own := facts.get("here")) and bool(own.variable) == bool(own.folder):
        raise DataError(f"{path}: here: give either variable or folder, not both")
    if isinstance(facts.get("valid"), Mapping):
        facts |= facts.pop("valid")
    for split in (*SPLITS, UNPARSED):
        facts[split] = _texts(path, split, facts.get(split, []))
    corpora = (*like, folder.name)
    settings = settings_of_all(search_folders(folder.parent), corpora)
    task = settings.load()["task"]
    place = settings.path if isinstance(task, Mapping) else settings.place_of("task")
    need(place, task, ("source_lang", "target_lang"))
    for name in ("source_lang", "target_lang"):
        check_language(task[name], settings.place_of(f"task.{name}"))
    languages = {"source": task["source_lang"], "target": task["target_lang"]}
    for language in languages.values():
        _add_tools(facts, language, tokenise_by(folder, language))
    if isinstance(words := facts.get("words"), dict):
        facts["words"] = {name: words[name] for name in languages.values() if name in words} | words
    if "start_options" in facts:
        raise DataError(f"{path}: unknown key 'start_options'; give start")
    corpus: Corpus = make(
        Corpus, path, {"folder": folder, "like": like, **languages, **facts}, _NO_KEYS
    )
    _check(corpus, path)
    return corpus


def tokenise_by(folder: Path, language: str) -> str:
    """Return the default command that splits text of a language into words.

    For the corpora of this package it keeps the first version of the rules, so that their texts
    stay as they were published.
    """
    ours = folder.resolve().is_relative_to(SHARED.resolve())
    code = know_language(language) or language
    return f"syncattn-tokenise --lang {code}" + " --rules 1" * ours


def _reads_raw(facts: Mapping[str, Any]) -> bool:
    return getattr(facts.get("subwords"), "raw", False)


def _check_raw(facts: Mapping[str, Any], path: Path) -> None:
    """Raise `DataError` if facts about a corpus of raw sentences say how words are split."""
    if not _reads_raw(facts):
        return
    subwords, score = facts["subwords"], facts.get("score")
    of_words = [name for name in ("generated", "tokenised", "words") if facts.get(name)]
    of_words += [f"score: {name}" for name in ("detokenize", "words_by") if name in (score or ())]
    if subwords.unit == "word" or (subwords.size is None and not facts.get("start")):
        raise DataError(f"{path}: subwords: raw: give size, and no unit")
    if of_words:
        raise DataError(
            f"{path}: {of_words[0]}: sentences are not split into words "
            f"({'start' if facts.get('start') else 'subwords: raw'}); leave it out"
        )


def _add_tools(facts: dict[str, Any], language: str, tokeniser: str) -> None:
    tools = {"parses": ""}
    if not facts.get("generated") and not _reads_raw(facts):
        tools["words"] = f"{tokeniser} --workers {{cores}}"
    for name, command in tools.items():
        if isinstance(facts.setdefault(name, {}), dict):
            facts[name].setdefault(language, command)
    if isinstance(facts["parses"], dict) and isinstance(facts["parses"][language], str):
        facts["parses"][language] = _complete(facts["parses"][language], language)
    if spec := os.environ.get(PARSER + language.upper()):
        facts["parses"] |= {language: f"--parser {shlex.quote(spec)}"}


def _complete(parsing: str, language: str) -> str:
    given = read_options(parsing)
    stanza = given.get("--parser", "stanza") == "stanza"
    parser = "" if "--parser" in given else "--parser stanza"
    code = know_language(language) or language
    spoken = f"--lang {code}" if stanza and "--lang" not in given else ""
    return " ".join(filter(None, (parser, parsing, spoken)))


def read_facts(
    folders: Sequence[Path], name: Any, programs: Collection[str] = (), after: tuple[str, ...] = ()
) -> tuple[list[str], dict[str, Any]]:
    """Return the corpora that a corpus takes facts from (its ``like``), and all facts merged.

    Args:
        folders: the folders to search for configs, the first match first.
        name: the name of the corpus.
        programs: the additional programs that corpora outside this package may start.
        after: the corpora whose chain of ``like`` led to this one, to find circles.

    Raises:
        DataError: there is no such corpus, it is like itself, or starts other programs.
    """
    check_group(str(name))
    path = find_file(folders, Path(str(name), "_data"))
    if path is None:
        known = {p.parent.name for folder in folders for p in folder.glob("*/_data.yaml")}
        raise DataError(
            f"{folders[0] / str(name)}/_data.yaml: no such corpus{suggest(str(name), known)}; "
            "or name the folder of your own configs: --configs DIR"
        )
    if name in after:
        raise DataError(
            f"{path}: like: the corpora refer to each other in a circle: "
            f"{' is like '.join([*after, name])}"
        )
    facts: Any = OmegaConf.to_container(read_config(path))
    here = facts.get("here")
    if isinstance(here, dict) and isinstance(here.get("folder"), str):
        here["folder"] = os.path.abspath(path.parent / here["folder"])
    if isinstance(facts.get("start"), str):
        facts["start"] = os.path.abspath(path.parent / facts["start"])
    if not path.resolve().is_relative_to(SHARED.resolve()):
        check_programs(facts, path, programs)
    if (other := facts.pop("like", None)) is None:
        return [], facts
    before, shared = read_facts(folders, other, programs, (*after, name))
    return [*before, other], {**shared, **facts}


def _check(corpus: Corpus, path: Path) -> None:
    with naming(f"{path}: examine"):
        read_limits(corpus.examine)
    references = corpus.score.get("references", "raw")
    if references not in ("raw", "words") or (corpus.generated and references == "raw"):
        raise DataError(
            f"{path}: score: references: {references}: give words; without this key, references "
            "are untokenised, which a generated corpus does not have"
        )
    if corpus.generated and corpus.unparsed:
        raise DataError(
            f"{path}: unparsed: all text of a generated corpus has parses; leave the key out"
        )
    if corpus.here and bool(corpus.here.unparsed) != bool(corpus.unparsed):
        raise DataError(f"{path}: here: unparsed: give this key if and only if unparsed has texts")
    if not corpus.generated:
        for language, tokeniser in corpus.words.items():
            with naming(f"{path}: words: {language}"):
                split_commands(tokeniser)
        if corpus.list_parses("heads", "train") and (corpus.clean is not None or not corpus.valid):
            raise DataError(
                f"{path}: the text comes with heads, so no pair may be left out: give clean: "
                "null, and valid as texts"
            )
        if [bool(corpus.valid), bool(corpus.every), bool(corpus.last)].count(True) != 1:
            raise DataError(f"{path}: valid: give exactly one of: texts, every: N, last: N")
        if corpus.here and corpus.here.parsed_format not in FORMATS:
            raise DataError(
                f"{path}: here: parsed_format: {corpus.here.parsed_format!r}; choose from "
                f"{', '.join(FORMATS)}"
            )
        if corpus.here and bool(corpus.here.valid) != bool(corpus.valid):
            raise DataError(f"{path}: here: valid: give this key if and only if valid has texts")
    if isinstance(corpus.checkpoint, str) and corpus.checkpoint not in ("best", "last"):
        raise DataError(
            f"{path}: checkpoint: {corpus.checkpoint!r}: give best, last, or a number: the mean "
            "of that many last checkpoints"
        )
    if wrong := [x for x in corpus.treebank or () if x not in corpus.languages]:
        raise DataError(
            f"{path}: treebank: {wrong[0]}; choose from {corpus.source} and {corpus.target}"
        )
    if corpus.gold_alignments is not None and corpus.gold_alignments.count("!") != 1:
        raise DataError(f"{path}: gold_alignments: give ARCHIVE!MEMBER")


def _texts(path: Path, split: str, entries: Any) -> list[str]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{path}: {split}: give a list of FORMAT: ADDRESS")
    for name in (name for entry in entries for name in entry):
        if name not in (*TEXTS, *PAIRS):
            known = ", ".join((*TEXTS, *PAIRS))
            raise DataError(f"{path}: {split}: no format {name!r}; choose from {known}")
    return [f"{name}={address}" for entry in entries for name, address in entry.items()]
