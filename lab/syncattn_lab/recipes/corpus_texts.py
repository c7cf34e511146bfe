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
#: The format of texts that have heads and labels.
TREEBANK = "conllu"


@dataclass(frozen=True)
class Archive:
    """A file with texts, either to download or under a signed licence.

    Attributes:
        url: the address to download it from.
        file: the file's name here; None: as in the address.
        size: its size in bytes.
        sha256: its checksum, in hexadecimal.
        md5: its MD5 sum, in hexadecimal.
        licence: how to get a file that cannot be downloaded.
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
        """The file's name here."""
        return self.file or Path(urlsplit(self.url or "").path).name

    @property
    def own(self) -> Path | None:
        """The user's own copy of the archive, or the folder of its files; None without a copy."""
        path = _named_by(self.variable)
        if path is None or path.is_file():
            return path
        packed = [p for p in sorted(path.iterdir()) if p.name.endswith(ARCHIVES)]
        named = [p for p in packed if p.name == self.name] or packed
        return named[0] if len(named) == 1 else path


def _named_by(variable: str | None) -> Path | None:
    """Return the file or folder named by an environment variable; None if the value is empty."""
    value = os.environ.get(variable or "")
    if value and not Path(value).expanduser().exists():
        raise DataError(f"{variable}={value}: no such file or folder")
    return Path(value).expanduser().absolute() if value else None


@dataclass(frozen=True)
class Here:
    """The user's own files in place of downloads.

    Attributes:
        train: the name of the training texts; ``{language}`` stands for a language.
        test: that of the test texts.
        variable: the environment variable that names their folder.
        folder: their folder; it is given if the variable is not.
        valid: the name of the validation texts; None: training pairs are held out.
        unparsed: that of training texts without parses; None: there are none.
        heads: the name of the heads of all splits; ``{split}`` stands for a split.
        labels: that of the labels.
        parsed: that of files that a parser or a treebank has of the texts, or those of languages;
            ``{language}`` stands for a language. Their sentences are found by their characters, so
            one file can be for all splits. None: those of texts in CoNLL-U.
        parsed_format: their format, one of `FORMATS`.
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
        """The folder of the user's files; None if the user has none, and the text is downloaded."""
        path = Path(self.folder) if self.folder else _named_by(self.variable)
        if path and not path.is_dir():
            raise DataError(f"{path}: no such folder; _data.yaml says here that texts are in it")
        return path


def name_format(address: str) -> str:
    """Return the format of a text that a user has: sentences in CoNLL-U, or plain text."""
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
        """Source and target language."""
        return self.source, self.target

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, with the name of training text without parses, if any."""
        return (*SPLITS, UNPARSED) if self.unparsed else SPLITS

    def list_texts(self, split: str) -> list[str]:
        """Return the texts of a split: the user's own, or the texts in the archives."""
        if self.here is not None and self.here.path is not None:
            address = getattr(self.here, split)
            return [f"{name_format(address)}={address}"] if address else []
        texts = (text.partition("=") for text in getattr(self, split))
        return [f"{name}={self.locate(address)}" for name, _, address in texts]

    def locate(self, address: str) -> str:
        """Return the address of a text: another one if a user has the archive elsewhere."""
        name, *member = address.split(SEPARATOR)
        own = next((archive.own for archive in self.archives if archive.name == name), None)
        return SEPARATOR.join([str(own or name), *member])

    def list_treebanks(self) -> list[str]:
        """Return the languages with heads and labels published beside the text."""
        if not self.list_parses("heads", "train"):
            return []
        return [x for x in self.languages if self.treebank is None or x in self.treebank]

    def find_parsed(self, language: str, split: str) -> str | None:
        """Return the file with a parser's sentences of a split, as a user has it; None: none."""
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
        """Return the heads or labels of a split that come with the text, if any are used."""
        if self.treebank == []:
            return []
        if self.here is not None and self.here.path is not None:
            pattern: str | None = getattr(self.here, kind)
            return [f"plain={pattern.replace('{split}', split)}"] if pattern else []
        texts = [text.partition("=") for text in self.list_texts(split)]
        trees = [f"{TREEBANK}_{kind}={address}" for name, _, address in texts if name == TREEBANK]
        return trees if len(trees) == len(texts) else []
