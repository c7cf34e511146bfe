"""Where the texts of a corpus come from: archives, or a user's own files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.parses import SPLITS

from .archives import ARCHIVES, SEPARATOR

#: The name of training text without parses.
UNPARSED = "unparsed"
#: The text format that also has dependency heads and labels.
TREEBANK = "conllu"


@dataclass(frozen=True)
class Archive:
    """A file with texts, to download or to get by signing a licence.

    Attributes:
        url: the address to download it from.
        file: the name of the local file; None: the last part of the URL's path.
        size: its size in bytes.
        sha256: its checksum, in hexadecimal.
        md5: its MD5 sum, in hexadecimal.
        licence: how to get the file if it cannot be downloaded.
        variable: the environment variable that names a licensed archive, the folder that it is in,
            or that of its files.
    """

    url: str | None = None
    file: str | None = None
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    licence: str | None = None
    variable: str | None = None

    @property
    def name(self) -> str:
        """The name of the local file."""
        return self.file or Path(urlsplit(self.url or "").path).name

    @property
    def own(self) -> Path | None:
        """The user's own copy of the archive or the folder of its files, or None without a copy."""
        path = _named_by(self.variable)
        if path is None or path.is_file():
            return path
        packed = [p for p in sorted(path.iterdir()) if p.name.endswith(ARCHIVES)]
        named = [p for p in packed if p.name == self.name] or packed
        return named[0] if len(named) == 1 else path


def _named_by(variable: str | None) -> Path | None:
    """Return the path in an environment variable; None for an unset or empty variable."""
    value = os.environ.get(variable or "")
    if value and not Path(value).expanduser().exists():
        raise DataError(f"{variable}={value}: no such file or folder")
    return Path(value).expanduser().absolute() if value else None


@dataclass(frozen=True)
class Here:
    """The names of a user's own text files, which are used in place of downloads.

    Attributes:
        train: the name of the training texts; ``{language}`` stands for a language.
        test: the name of the test texts.
        variable: the environment variable that names the folder of the texts.
        folder: the folder of the texts; exactly one of ``variable`` and ``folder`` is given.
        valid: the name of the validation texts; None: training pairs are held out.
        unparsed: the name of training texts without parses; None: there are none.
        heads: the name of the files of dependency heads; ``{split}`` stands for a split.
        labels: the name of the files of dependency labels.
        parsed: the name of files with parses of the texts, or such a name by language;
            ``{language}`` stands for a language. Sentences are found by their characters, so one
            file can be for all splits. None: the trees of texts in CoNLL-U.
        parsed_format: the format of these files, one of `FORMATS`.
    """

    train: str
    test: str
    variable: str | None = None
    folder: str | None = None
    valid: str | None = None
    unparsed: str | None = None
    heads: str | None = None
    labels: str | None = None
    parsed: str | dict[str, str] | None = None
    parsed_format: str = TREEBANK

    @property
    def path(self) -> Path | None:
        """The folder of the user's files, or None if there is none and the text is downloaded."""
        path = Path(self.folder) if self.folder else _named_by(self.variable)
        if path and not path.is_dir():
            raise DataError(
                f"{path}: no such folder, but _data.yaml or a variable in it says that texts are "
                "there; correct the path"
            )
        return path


def name_format(address: str) -> str:
    """Return the format of a user's text by its suffix: sentences in CoNLL-U, or plain text."""
    return f"{TREEBANK}_text" if re.search(r"\.conllu(\.gz|\.bz2)?$", address) else "plain"


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The texts of a corpus, with their parses, alignments and other structure.

    Attributes:
        source: the language that is translated.
        target: the language that it is translated into.
        archives: the files that the texts are in.
        train: the training texts, each ``FORMAT=ADDRESS`` (`.text_formats`).
        valid: the validation texts, in the same way; empty: training pairs are held out.
        test: the test texts, in the same way.
        unparsed: training texts that nobody parses, such as back-translations, in the same way.
        here: files that the user may have in place of the archives.
        first: how many training pairs are used; None: all.
        tokenised: the splits that are published tokenised.
        treebank: the languages whose heads and labels are those that come with the text, if any do;
            None: both.
        gold_alignments: the address of the test text's alignments. If given, systems' alignments
            are scored, in both directions.
        generated: options of `.generate`, which writes text and structure itself; empty: the texts
            are not generated.
    """

    source: str
    target: str
    archives: list[Archive] = field(default_factory=list)
    train: list[str] = field(default_factory=list)
    valid: list[str] = field(default_factory=list)
    test: list[str] = field(default_factory=list)
    unparsed: list[str] = field(default_factory=list)
    here: Here | None = None
    first: int | None = None
    tokenised: list[str] = field(default_factory=list)
    treebank: list[str] | None = None
    gold_alignments: str | None = None
    generated: dict[str, Any] = field(default_factory=dict)

    @property
    def languages(self) -> tuple[str, str]:
        """The source language and the target language."""
        return self.source, self.target

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, with `UNPARSED` if there is training text without parses."""
        return (*SPLITS, UNPARSED) if self.unparsed else SPLITS

    def list_texts(self, split: str) -> list[str]:
        """Return the addresses of a split's texts, in the user's own files or in archives.

        Each is ``FORMAT=ADDRESS``.
        """
        if self.here is not None and self.here.path is not None:
            address = getattr(self.here, split)
            return [f"{name_format(address)}={address}"] if address else []
        texts = (text.partition("=") for text in getattr(self, split))
        return [f"{name}={self.locate(address)}" for name, _, address in texts]

    def locate(self, address: str) -> str:
        """Return the address of a text, in the user's own copy of the archive if there is one."""
        name, *member = address.split(SEPARATOR)
        own = next((archive.own for archive in self.archives if archive.name == name), None)
        return SEPARATOR.join([str(own or name), *member])

    def list_treebanks(self) -> list[str]:
        """Return the languages whose dependency heads and labels come with the text."""
        if not self.list_parses("heads", "train"):
            return []
        return [x for x in self.languages if self.treebank is None or x in self.treebank]

    def find_parsed(self, language: str, split: str) -> str | None:
        """Return the user's file with parses of a split in a language, or None if there is none."""
        here = self.here
        if here is None or here.path is None:
            return None
        if getattr(here, split) is None:
            split = "train"  # whose pairs are held out
        text: str = getattr(here, split)
        pattern = here.parsed
        if isinstance(pattern, Mapping):
            pattern = pattern.get(language)
        elif pattern is None and name_format(text) != "plain":
            pattern = text
        if pattern is None:
            return None
        return str(here.path / pattern.replace("{split}", split).replace("{language}", language))

    def list_parses(self, kind: str, split: str) -> list[str]:
        """Return the files of heads or labels that come with a split, each ``FORMAT=ADDRESS``.

        There are none if a part of the split has none, or if the corpus does not use them.
        """
        if self.treebank == []:
            return []
        if self.here is not None and self.here.path is not None:
            pattern: str | None = getattr(self.here, kind)
            return [f"plain={pattern.replace('{split}', split)}"] if pattern else []
        texts = [text.partition("=") for text in self.list_texts(split)]
        trees = [f"{TREEBANK}_{kind}={address}" for name, _, address in texts if name == TREEBANK]
        return trees if len(trees) == len(texts) else []
