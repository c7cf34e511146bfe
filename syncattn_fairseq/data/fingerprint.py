"""The identity of a binarised corpus, stored in checkpoints and exports.

It has two parts. The *meaning* is what makes a model's numbers into words: dictionaries, subword
models, and the record of how sentences became words. Whatever combines two files compares it. The
*provenance* is the text itself with its heads, labels and links. It is compared when a training is
resumed; a model may translate any other text.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..base.files import hash_file, read_json
from ..base.text import read_file_lines
from .preparation import NAME as PREPARATION
from .preparation import SCHEMES_NAME, Preparation, stored_preparations, stored_schemes
from .record_checks import check_languages
from .segmenters import (
    SubwordFiles,
    SubwordModel,
    find_subwords,
    format_vocabulary,
    name_subwords,
    name_vocabulary,
    pair_subwords,
)

NAME = "fingerprint.json"
IN_CHECKPOINTS = "fingerprint"
"""Key of the fingerprint in the state of the task, which checkpoints hold."""
_DIGEST = re.compile("[0-9a-f]{64}")
#: Beginning of a binarised file's name: its split, and the kind of its annotation, if any.
_BEGINNING = re.compile(r"(\w+?)\d*\.(heads|labels|align)?\b")
_LARGEST = 2**24

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dataset:
    """Size and checksum of a binarised file, used to recognise the file.

    Attributes:
        size: the size of the file in bytes.
        sha256: the SHA-256 of the file; empty if it was not computed.
    """

    size: int
    sha256: str = ""

    def differs(self, other: Dataset) -> bool:
        """Return whether two descriptions certainly are of different files."""
        known = self.sha256 and other.sha256
        return self.size != other.size or bool(known and self.sha256 != other.sha256)


@dataclass(frozen=True)
class Fingerprint:
    """Identifying hashes of a binarised corpus: of dictionaries, preprocessing and text files.

    Attributes:
        meaning: the SHA-256 of each dictionary, model and record, by file name.
        provenance: for each folder of the corpus, its binarised files by name.
    """

    meaning: Mapping[str, str] = field(default_factory=dict)
    provenance: Sequence[Mapping[str, Dataset]] = ()

    def as_plain(self) -> dict[str, Any]:
        """Return the fingerprint as dictionaries, lists, strings and numbers, for JSON."""
        return asdict(self)

    def of_reader(self, labels: bool) -> Fingerprint:
        """Return the fingerprint without label dictionaries, unless the model reads ``labels``."""
        if labels:
            return self
        meaning = {k: v for k, v in self.meaning.items() if not k.startswith("dict.labels.")}
        return replace(self, meaning=meaning)

    @classmethod
    def from_plain(cls, plain: Any) -> Fingerprint:
        """Make a fingerprint from the return value of `as_plain`.

        Raises:
            ValueError: ``plain`` is no fingerprint.
        """
        try:
            meaning = {str(name): digest for name, digest in plain["meaning"].items()}
            folders = [
                {str(name): Dataset(**each) for name, each in folder.items()}
                for folder in plain["provenance"]
            ]
        except (TypeError, KeyError, AttributeError):
            raise ValueError("no fingerprint") from None
        datasets = [each for folder in folders for each in folder.values()]
        digests = [*meaning.values(), *(each.sha256 for each in datasets if each.sha256 != "")]
        whole = all(type(each.size) is int for each in datasets)
        if not whole or not all(isinstance(d, str) and _DIGEST.fullmatch(d) for d in digests):
            raise ValueError("no fingerprint")
        return cls(meaning, folders)

    def write(self, folder: Path) -> None:
        """Write the fingerprint as a JSON file into a folder that no other process uses."""
        text = json.dumps(self.as_plain(), indent=1, sort_keys=True)
        (folder / NAME).write_text(text + "\n", encoding="utf-8")


def read_stored(folder: Path) -> Fingerprint | None:
    """Return the fingerprint (hashes) of the corpus in a folder; None if none is stored.

    Raises:
        DataError: the file is damaged.
    """
    path = folder / NAME
    try:
        return Fingerprint.from_plain(read_json(path, _LARGEST))
    except FileNotFoundError:
        return None
    except ValueError:
        raise DataError(
            f"{path}: the file is damaged; remove the file, or make the folder again with "
            "syncattn-preprocess"
        ) from None


# ---- what there is


def describe_meaning(
    folders: Sequence[Path], languages: Iterable[str], without: Iterable[str] = ()
) -> dict[str, str]:
    """Return hashes of a binarised corpus's dictionaries, subword models and preprocessing.

    They are the corpus's meaning (see the module), by the names of their files.

    Args:
        folders: the folders of the corpus; of two files with one name, the first counts.
        languages: the languages of the corpus.
        without: the names of files to leave out.

    Raises:
        DataError: a file is damaged.
    """
    meaning: dict[str, str] = {}
    without = {*without}
    languages = [*languages]

    def find(name: str) -> Path | None:
        paths = [folder / name for folder in folders if name not in without]
        return next((path for path in paths if path.is_file()), None)

    for language in languages:
        for name in (f"dict.{language}.txt", f"dict.labels.{language}.txt"):
            if path := find(name):
                meaning[name] = hash_words(read_words(path))
        if path := find(name_subwords(language)):
            vocabulary = find(name_vocabulary(language))
            meaning |= describe_subwords(language, SubwordModel(path, vocabulary))
    if path := find(PREPARATION):
        meaning |= describe_preparations(stored_preparations(path.parent), languages)
    if path := find(SCHEMES_NAME):
        for language, scheme in stored_schemes(path.parent).items():
            if language in languages:
                meaning[f"{SCHEMES_NAME} ({language})"] = _hash(scheme)
    return meaning


def describe_subwords(language: str, model: SubwordModel) -> dict[str, str]:
    """Return the hashes of a language's subword model and vocabulary, by file name."""
    return {
        name_subwords(language): hash_file(Path(model.path)),
        name_vocabulary(language): _hash(format_vocabulary(model)),
    }


def describe_preparations(
    preparations: Mapping[str, Preparation], languages: Iterable[str]
) -> dict[str, str]:
    """Return a hash of the tokenizer settings for the text of each language."""
    return {
        f"{PREPARATION} ({language})": _hash(json.dumps(each.as_plain(), sort_keys=True))
        for language, each in preparations.items()
        if language in languages
    }


def read_words(path: Path) -> list[str]:
    """Return the words in a dictionary's file, in order and without their counts."""
    lines = (line.rstrip().removesuffix(" #fairseq:overwrite") for line in read_file_lines(path))
    return [line.rpartition(" ")[0] for line in lines]


def hash_words(words: Iterable[str]) -> str:
    """Return the SHA-256 of a list of words, such as those in a dictionary's file."""
    return _hash("\n".join(words))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def describe_datasets(
    folders: Sequence[Path],
    languages: Sequence[str],
    known: Mapping[str, Dataset],
    complete: bool = False,
    without: Iterable[str] = (),
) -> dict[str, Dataset]:
    """Return size and checksum of each binarised file of a corpus, by name without suffix.

    Args:
        folders, without: as for `describe_meaning`.
        languages: the source and the target language.
        known: earlier descriptions, which are used for files that still have the same size.
        complete: whether to compute the SHA-256 of all other files.
    """
    found: dict[str, Path] = {}
    without = {*without}
    one, other = map(re.escape, languages)
    pattern = rf"\w+(\.(heads|labels|align))?\.({one}-{other}|{other}-{one})(\.({one}|{other}))?"
    for folder in reversed(folders):
        for path in folder.glob("*.bin"):
            name = path.name.removesuffix(".bin")
            if re.fullmatch(pattern, name) and path.name not in without:
                found[name] = path
    described = {}
    for name, path in sorted(found.items()):
        size, before = path.stat().st_size, known.get(name)
        # A file that is made anew is in the first of several folders.
        if before and before.size == size and path.parent == folders[-1]:
            described[name] = before
        else:
            described[name] = Dataset(size, hash_file(path) if complete else "")
    return described


def read_fingerprint(folders: Sequence[Path], languages: Sequence[str]) -> Fingerprint:
    """Return the fingerprint of a corpus in one or several folders, after checks of its files.

    Args:
        folders: the folders; the dictionaries are those of the first.
        languages: the source and the target language.

    Raises:
        DataError: a file is not the one that the fingerprint in its folder was made of.
    """
    found = [_read_folder(folder, languages) for folder in folders]
    return Fingerprint(found[0].meaning, [each.provenance[0] for each in found])


def _read_folder(folder: Path, languages: Sequence[str]) -> Fingerprint:
    here = describe_meaning([folder], languages)
    stored = read_stored(folder)
    if stored is None:
        logger.info(
            f"{folder}: has no {NAME}, since the folder was made by fairseq-preprocess or an "
            "earlier version of this program: the dictionaries cannot be compared with those "
            "that the text was binarised with"
        )
        return Fingerprint(here, [describe_datasets([folder], languages, {})])
    for name in list_differences(stored.meaning, here):
        raise DataError(
            f"{folder / name}: differs from the file that the text was binarised with (recorded "
            f"in {NAME}); put that file back, or binarise the text again with syncattn-preprocess"
        )
    known = stored.provenance[0] if stored.provenance else {}
    return Fingerprint(here, [describe_datasets([folder], languages, known)])


# ---- what differs


def list_differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """List the names common to two tables of hashes, but with different hashes."""
    return [name for name in other if name in one and one[name] != other[name]]


def check_meaning(
    name: str,
    trained: Mapping[str, str],
    here: Mapping[str, str],
    folder: Path | str,
    remedy: str = "give the data that the model was trained with",
) -> None:
    """Check that data have the dictionaries and preprocessing of a model's training data.

    Args:
        name: the model's name for messages, such as the path of its checkpoint.
        trained, here: the meanings of the training data and of the present data.
        folder: the folder of the present data, for messages.
        remedy: the advice at the end of the message.

    Raises:
        DataError: a part differs.
    """
    for part in list_differences(trained, here):
        raise DataError(
            f"{name}: {Path(folder) / part} differs from the file that the model was trained "
            f"with; {remedy}"
        )


def check_data(
    name: str, trained: Fingerprint | None, folder: Path, languages: Sequence[str]
) -> None:
    """Check that a binarised corpus has the dictionaries and preprocessing of a model's training.

    Args:
        name: the model's name, for messages.
        trained: the model's fingerprint; None: it has none, which is logged.
        folder: the folder of the binarised corpus.
        languages: the languages of the corpus.

    Raises:
        DataError: a part differs.
    """
    if trained is None:
        say_unknown(name)
    else:
        check_meaning(name, trained.meaning, describe_meaning([folder], languages), folder)


def check_text_steps(
    trained: Mapping[str, Fingerprint | None],
    subwords: SubwordFiles,
    folders: Sequence[Path],
    languages: tuple[str, str],
    tokenised: bool = False,
) -> None:
    """Check that text to translate gets the tokenizer and subwords of the models' training text.

    Args:
        trained: the fingerprint of each model, by its name; None: it has none.
        subwords, folders, languages: as for `open_segmenters`.
        tokenised: whether the text is words already.

    Raises:
        DataError: a subword model or a preparation is another one.
    """
    models = pair_subwords(subwords) or find_subwords(folders, *languages)
    found = next(filter(None, map(stored_preparations, folders)), {})
    if not tokenised:
        check_languages(found, languages, PREPARATION)
    preparations = {} if tokenised else describe_preparations(found, languages)
    for name, fingerprint in trained.items():
        meaning = {} if fingerprint is None else fingerprint.meaning
        for language, model in zip(languages, models or (), strict=False):
            for part in list_differences(meaning, describe_subwords(language, model)):
                path = model.path if part == name_subwords(language) else model.vocabulary
                raise DataError(
                    f"{path or f'{model.path}, with no vocabulary'}: differs from the {part} "
                    f"that {name} was trained with; give the file of the training"
                )
        for part in list_differences(meaning, preparations):
            raise DataError(
                f"{name}: {part} differs from the one of the model's training; put the file of "
                "the training back, or give words (--tokenised)"
            )


def check_same_meaning(paths: Sequence[Path | str], states: Sequence[Any]) -> None:
    """Check that checkpoints were trained with the same dictionaries, subwords and preprocessing.

    Args:
        paths: the paths of the checkpoints, for messages.
        states: the contents of the checkpoints.

    Raises:
        DataError: a part of two of them differs.
    """
    known = [(path, found) for path, state in zip(paths, states, strict=True)
             if (found := find_fingerprint(path, state)) is not None]  # fmt: skip
    for path, found in known[1:]:
        first, meaning = known[0][0], known[0][1].meaning
        for part in list_differences(meaning, found.meaning):
            raise DataError(
                f"{path} and {first}: the models were trained on different data: {part} differs"
            )


def find_fingerprint(path: Path | str, state: Any) -> Fingerprint | None:
    """Return the fingerprint of the training data, from a checkpoint's contents; None without one.

    Raises:
        DataError: the fingerprint is damaged.
    """
    kept = state.get("task_state")
    if not isinstance(kept, dict) or kept.get(IN_CHECKPOINTS) is None:
        return None
    try:
        return Fingerprint.from_plain(kept[IN_CHECKPOINTS])
    except ValueError:
        raise DataError(
            f"{path}: the checkpoint's record of its training data is damaged; use another "
            "checkpoint"
        ) from None


def check_resumed(
    name: str,
    before: Fingerprint | None,
    here: Fingerprint,
    folders: Sequence[Path],
    splits: tuple[str, str],
    same_text: bool,
) -> None:
    """Check that a resumed training goes on with the corpus of its checkpoint.

    Args:
        name: the path of the checkpoint, for messages.
        before: the fingerprint in the checkpoint; None: it has none, which is logged.
        here: the fingerprint of the corpus to train on now.
        folders: the folders of the corpus to train on now.
        splits: the names of the texts for training and for validation.
        same_text: whether the texts must be the same, and not only the dictionaries.

    Raises:
        DataError: the meanings differ, or the training texts do.
    """
    if before is None:
        say_unknown(name)
        return
    if not same_text:
        dictionaries = {k: v for k, v in before.meaning.items() if k.startswith("dict.")}
        remedy = (
            "binarise the text with the dictionaries of the training: --srcdict, --tgtdict, "
            "--srclabeldict"
        )
        check_meaning(name, dictionaries, here.meaning, folders[0], remedy)
        for part in list_differences(before.meaning, here.meaning):
            logger.warning(
                f"{folders[0] / part} differs from the file that {name} was trained with"
            )
        return
    remedy = "continue with the same data, or choose another --save-dir"
    check_meaning(name, before.meaning, here.meaning, folders[0], remedy)
    other = (
        "continue with the same data, or begin another training: from this model with "
        "--finetune-from-model and another --save-dir, or in this folder with --reset-dataloader"
    )
    if len(before.provenance) != len(folders):
        raise DataError(
            f"{name}: the training data were in {len(before.provenance)} folders, and are in "
            f"{len(folders)} now; {other}"
        )
    for folder, old, new in zip(folders, before.provenance, here.provenance, strict=True):
        for dataset in _list_changes(old, new, re.sub(r"\d+$", "", splits[0])):
            raise DataError(
                f"{name}: the training has read another {folder / dataset} than the present one; "
                f"{other}"
            )
        for dataset in _list_changes(old, new, splits[1]):
            logger.warning(f"{folder / dataset}: has changed since {name} was validated on it")


def _list_changes(old: Mapping[str, Dataset], new: Mapping[str, Dataset], split: str) -> list[str]:
    """List the changed, added and removed files of a split.

    Heads, labels and links may be added to a text later.
    """
    changed = []
    for name in sorted({*old, *new}):
        match = _BEGINNING.match(name)
        if match is None or match[1] != split:
            continue
        if name in old and name in new:
            changed += [name] if old[name].differs(new[name]) else []
        elif match[2] is None:
            changed.append(name)
    return changed


_said: set[str] = set()


def say_unknown(name: str) -> None:
    """Log a warning, once for each model, that hashes of the model's training data are missing."""
    if name not in _said:
        _said.add(name)
        logger.warning(
            f"{name}: the checkpoint has no record of its training data, since it was saved "
            "without this package or by an earlier version: dictionaries and subword models are "
            "not compared"
        )
