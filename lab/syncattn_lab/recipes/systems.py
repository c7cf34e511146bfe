"""The settings of a system, merged from YAML files: shared files first, its own files last.

====================================  =================================================
``training/all.yaml``                 what all trainings have
``CORPUS/_corpus.yaml``               what all systems of a corpus have
``CORPUS/_FAMILY.yaml``               the same for a family of models, if a corpus has several
``FAMILY/SYSTEM.yaml``                a system, the same for all corpora
``CORPUS/FAMILY/SYSTEM.yaml``         what differs in this corpus
====================================  =================================================

Each replaces single values of those before. If ``_data.yaml`` says that a corpus is like another,
the other's files come before its own. They are searched in the user's folder of configs, then
in this package's. `System.hydra_words` tells hydra to merge the same files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError, suggest

from .config_file import first_line, read_config, read_value
from .stages import hydra_value, options

#: The folder of the fairseq plugin, and the folder of this package's configs.
PLUGIN = Path(syncattn_fairseq.__file__).parent
SHARED = Path(__file__).parents[1] / "configs"
#: The file of settings, without suffix, that all systems begin with.
TRAINING = Path("training", "all")
#: The config that hydra begins with: no file, but all settings of fairseq, with their defaults.
FAIRSEQ = "fairseq"
#: Folders of systems, one for each family of models.
FAMILIES = ("transformer", "rnn")
#: The command-line option for the ``_name`` of a section, if it is not called like the section.
NAMED = {"model": "arch"}
#: The section of settings that change only the translations, not the training.
GENERATION = "generation"
#: Sections that are not for training.
IGNORED = (GENERATION, "hydra")
#: Sections that fairseq has.
SECTIONS = (
    *("common", "common_eval", "distributed_training", "dataset", "optimization", "checkpoint"),
    *("bmuf", "eval_lm", "interactive", "model", "task", "criterion", "optimizer"),
    *("lr_scheduler", "scoring", "bpe", "tokenizer", "ema"),
)
#: Settings that must be text, and those that must be whole numbers, in every system.
_TEXTS = (
    *("task._name", "task.data", "task.source_lang", "task.target_lang"),
    *("model._name", "criterion._name", "common.user_dir", "checkpoint.save_dir"),
)
_NUMBERS = {"dataset.max_tokens": 1, "common.seed": 0}
#: Settings that say where a training writes.
WRITTEN = (
    *("checkpoint.save_dir", "checkpoint.checkpoint_suffix", "common.log_file", "common.aim_repo"),
    *("common.tensorboard_logdir", "common.plasma_path", "common_eval.results_path"),
    "distributed_training.distributed_init_method",
)
#: Settings that only say when a training ends, if the learning rate does not depend on them.
LIMITS = (
    *("optimization.max_update", "optimization.max_epoch", "optimization.stop_time_hours"),
    "checkpoint.patience",
)
#: Why a file may not name a plugin.
ONLY_GIVEN = "a plugin is imported only if the command line names it: SYSTEM:common.user_dir=FOLDER"
#: A function that begins a message about ``SECTION.OPTION`` with where the option was set.
Place = Callable[[str], str]
#: Names of languages, and of the files and folders that hydra takes as its groups.
_NAME = re.compile(r"\w[\w.@+-]*")
_GROUP = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
_OVERRIDE = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*=.*", re.DOTALL)


def read_overrides(texts: Sequence[str]) -> dict[str, Any]:
    """Parse settings ``SECTION.OPTION=VALUE``; return the values by ``SECTION.OPTION``.

    `DataError`: a text has another form, an unknown section, or a value that is not YAML.
    """
    overrides: dict[str, Any] = {}
    for text in texts:
        if not _OVERRIDE.fullmatch(text):
            raise DataError(
                f"{text}: write settings as SECTION.OPTION=VALUE, and a row with a name as "
                "NAME=SYSTEM:SECTION.OPTION=VALUE"
            )
        name = text.partition("=")[0]
        section = name.partition(".")[0]
        if section not in (*SECTIONS, GENERATION):
            raise DataError(f"{text}: no section {section!r}; choose from {', '.join(SECTIONS)}")
        overrides[name] = read_value(text)
    return overrides


@dataclass(frozen=True)
class System:
    """A system to train on a corpus: the files of its settings.

    Attributes:
        folders: the folders in which its files are searched.
        files: the files, without suffix, in the order in which they are merged; the last ones are
            the system's own.
        own: the number of files that are the system's own; 0: the settings that all systems share.
    """

    name: str
    corpus: str
    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    own: int

    @property
    def path(self) -> Path:
        """The file of the system that is merged last, which error messages name."""
        return find_file(self.folders, self.files[-1]) or self.folders[0] / self.files[-1]

    def load(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the merged settings by section and option, with every section of fairseq.

        ``overrides``, by ``SECTION.OPTION``, replace values of the files. The system's own settings
        come first. `DataError`: a file cannot be read.
        """
        paths = [self._find(name) for name in self.files]
        config: Any = OmegaConf.create()
        for path in [*paths[len(paths) - self.own :], *paths]:
            try:
                config.merge_with(_read(path))
            except OmegaConfBaseException as error:
                raise DataError(f"{path}: {first_line(error)}") from None
        for name, value in {**self._folders_of(config), **(overrides or {})}.items():
            try:
                OmegaConf.update(config, name, value)
            except OmegaConfBaseException as error:
                raise DataError(f"{self.path}: {name}={value}: {first_line(error)}") from None
        merged: Any = OmegaConf.to_container(config)
        return {**merged, **{n: {} for n in (*SECTIONS, GENERATION) if n not in merged}}

    def list_own(self, section: str) -> set[str]:
        """Return the options of a section that the system's own files set."""
        values = (_read(self._find(name)).get(section) for name in self.files[-self.own :])
        return {option for each in values if isinstance(each, Mapping) for option in each}

    def place_of(self, name: str, changed: Container[str] = ()) -> str:
        """Return where a setting was made, and its name, as the beginning of an error message.

        The place is the command line for a setting in ``changed``, or else a file.
        """
        setting = name.partition("[")[0]  # without the number of a list's element
        section, _, option = setting.partition(".")
        if setting in changed:
            return f"command line: {name}"
        for path in map(self._find, reversed(self.files)):
            values = _read(path).get(section)
            is_table = isinstance(values, Mapping)
            if option in values if is_table and option else values is not None:
                return f"{path}: {name}"
        return f"{self.path}: {name}"

    def _folders_of(self, config: Any) -> dict[str, str]:
        if not self.own:
            return {}
        task = config.get("task")
        variant = task.get("data", "") if isinstance(task, Mapping) else ""
        if variant and not _NAME.fullmatch(str(variant)):
            raise DataError(
                f"{self.path}: task.data={variant}: leave this setting out; the recipe uses "
                "data-bin/CORPUS"
            )
        return {
            "task.data": "-".join(filter(None, (f"data-bin/{self.corpus}", str(variant)))),
            "checkpoint.save_dir": f"checkpoints/{self.corpus}/{self.name}",
        }

    def _find(self, name: Path) -> Path:
        path = find_file(self.folders, name)
        if path is None:
            raise DataError(f"{self.folders[0] / name}.yaml: no such file")
        return path

    def hydra_words(self) -> list[str]:
        """Return the arguments that make ``fairseq-hydra-train`` merge the files of this system."""
        first, *others = (str(folder.resolve()) for folder in self.folders)
        words = ["--config-dir", first, "--config-name", FAIRSEQ]
        if others:
            words.append(f"hydra.searchpath={hydra_value(others)}")
        for group, files in groupby(self.files, lambda name: name.parent):
            names = [name.name for name in files]
            words.append(f"+{group}@_global_={hydra_value(names if len(names) > 1 else names[0])}")
        return words


def find_file(folders: Sequence[Path], name: Path) -> Path | None:
    """Return the YAML file ``name`` (without suffix) in the first folder that has one, or None."""
    paths = (folder / f"{name}.yaml" for folder in folders)
    return next((path for path in paths if path.exists()), None)


def search_folders(folder: Path) -> tuple[Path, ...]:
    """Return the folders of configs to search: ``folder``, then that of this package.

    `DataError`: the folder has a file that hydra would read in place of fairseq's settings.
    """
    if folder.resolve() == SHARED.resolve():
        return (folder,)
    if (first := folder / f"{FAIRSEQ}.yaml").exists():
        raise DataError(
            f"{first}: hydra would read this file in place of the package's own; rename this file"
        )
    return folder, SHARED


def find_system(folders: tuple[Path, ...], corpora: Sequence[str], name: str) -> System:
    """Return the system of a corpus with this name, with the settings that the corpus inherits.

    The corpus is the last of ``corpora``; it inherits from those before it.

    `DataError`: there is no such system.
    """
    corpus = corpora[-1]
    for family in FAMILIES if _NAME.fullmatch(name) else ():
        names = [Path(family, name), *(Path(corpus, family, name) for corpus in corpora)]
        if own := [path for path in names if find_file(folders, path)]:
            files = (*_shared(folders, corpora, family), *own)
            return System(name, corpus, folders, files, len(own))
    said = suggest(name, list_systems(folders, corpora))
    raise DataError(
        f"{folders[0]}/{corpus}: no system {name!r}{said}; or name the folder of your own configs: "
        "--configs DIR"
    )


@cache
def _words() -> dict[str, str]:
    words: Any = OmegaConf.to_container(read_config(SHARED / "_words.yaml"))
    return {str(system): str(text) for system, text in words.items()}


def say_system(system: str) -> str:
    """Return what figures call a system or group, such as "the parser's trees"."""
    if said := _words().get(system):
        return said
    name, *settings = system.split(":")
    corpus, _, name = name.rpartition("/")
    rest = [f"of {corpus}"] * bool(corpus) + settings
    for ending in ("_tuned", "_without_positions"):
        if name.endswith(ending):
            name, rest = name.removesuffix(ending), [ending[1:].replace("_", " "), *rest]
    return ", ".join([_words().get(name, name), *rest])


def list_systems(folders: Sequence[Path], corpora: Sequence[str]) -> list[str]:
    """Return the names of all systems of a corpus: own systems and systems of all corpora."""
    parents = [Path(*names) for names in product(("", *corpora), FAMILIES)]
    paths = (p for f in folders for at in parents for p in (f / at).glob("[!_]*.yaml"))
    return sorted({path.stem for path in paths})


def settings_of_all(folders: tuple[Path, ...], corpora: Sequence[str]) -> System:
    """Return the settings that all systems of a corpus share, as a `System`.

    The corpus is the last of ``corpora``; it inherits from those before it.
    """
    return System("", corpora[-1], folders, tuple(_shared(folders, corpora)), 0)


def _shared(folders: Sequence[Path], corpora: Sequence[str], family: str = "") -> Iterator[Path]:
    yield TRAINING
    kinds = ("corpus", family) if family else ("corpus",)
    names = (Path(corpus, f"_{kind}") for corpus, kind in product(corpora, kinds))
    yield from (name for name in names if find_file(folders, name))


def _read(path: Path) -> Any:
    config = read_config(path)
    if "defaults" in config:
        raise DataError(
            f"{path}: defaults: a recipe's config cannot include other files; leave the key out "
            "(docs/recipes.md)"
        )
    if "hydra" in config and not path.resolve().is_relative_to(SHARED.resolve()):
        ours = read_config(SHARED / TRAINING.with_suffix(".yaml"))
        if config["hydra"] != ours["hydra"]:  # a copy of our file may have them
            raise DataError(f"{path}: hydra: these settings can start programs; leave them out")
    return config


def check_system(config: Mapping[str, Any], place: Place) -> None:
    """Raise `DataError` if a setting that recipes read is missing or has an impossible value.

    ``config`` is from `System.load`. A message about a setting begins with its place
    (`System.place_of`).
    """
    for section, values in config.items():
        if section not in (*SECTIONS, *IGNORED):
            known = ", ".join(SECTIONS)
            raise DataError(f"{place(section)}: no section {section!r}; choose from {known}")
        if not isinstance(values, Mapping):
            raise DataError(f"{place(section)}: expected names and values, not {values!r}")

    def value_of(name: str) -> Any:
        section, _, option = name.partition(".")
        if option not in config[section]:
            raise DataError(f"{place(name)}: this key is missing")
        return config[section][option]

    for name in _TEXTS:
        value = value_of(name)
        if not isinstance(value, str) or not value.isprintable() or not value:
            raise DataError(f"{place(name)}={value!r}: give a name, as printable text")
    for name in ("task.source_lang", "task.target_lang"):
        check_language(value_of(name), place(name))
    folder = Path(value_of("checkpoint.save_dir"))
    if not folder.name or ".." in folder.parts:
        raise DataError(
            f"{place('checkpoint.save_dir')}={folder}: give a folder for this system alone, "
            "below the working folder"
        )
    for name, least in _NUMBERS.items():
        if type(value_of(name)) is not int or value_of(name) < least:
            raise DataError(
                f"{place(name)}={value_of(name)}: give a whole number, at least {least}"
            )
    steps = config["optimization"].get("update_freq", [1])
    if not isinstance(steps, list) or not steps or any(type(n) is not int or n < 1 for n in steps):
        raise DataError(
            f"{place('optimization.update_freq')}={steps}: give a list with one whole number, at "
            "least 1, such as [4]"
        )


def check_written_paths(config: Mapping[str, Any], place: Place, trusted: Container[str]) -> None:
    """Raise `DataError` if a config makes a training write outside the working folder.

    Configs may be a stranger's. Settings in ``trusted`` are not checked: the user gave them on the
    command line, for all systems.
    """
    for name in WRITTEN:
        section, _, option = name.partition(".")
        value = config[section].get(option)
        if value is None or name in trusted:
            continue
        written = Path(str(value).removeprefix("file:"))
        if written.is_absolute() or ".." in written.parts:
            raise DataError(
                f"{place(name)}={value}: a file may only name a path below the working folder; "
                "leave it out, and give it on the command line, for all systems"
            )


def check_group(name: str) -> None:
    """Raise `DataError` unless a corpus's name can be the name of a hydra config group."""
    if not _GROUP.fullmatch(name):
        raise DataError(f"{name}: name a corpus with letters, digits, _ and - only, a letter first")


def check_language(name: Any, place: object) -> None:
    """Raise `DataError` unless the name of a language can be part of file names."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DataError(f"{place}: {name!r} is not the name of a language, such as en")


def training_options(config: dict[str, Any]) -> Iterator[str]:
    """Yield a system's settings as arguments of ``fairseq-train``, the data folder first."""
    yield config["task"]["data"]
    for section, values in config.items():
        if section not in IGNORED:
            kind = NAMED.get(section, section)
            names = {name: kind if name == "_name" else name for name in values if name != "data"}
            yield from options({option: values[name] for name, option in names.items()})


def generation_options(config: dict[str, Any]) -> Iterator[str]:
    """Yield a system's settings of decoding as options of ``fairseq-generate``."""
    yield from options(config[GENERATION])
