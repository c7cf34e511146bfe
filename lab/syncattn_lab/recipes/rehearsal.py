"""Shorten a corpus to a few sentences, on which a whole recipe runs in a minute or so."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.parses import SPLITS

from ..synthetic.generated_corpus import generate
from .corpus_facts import Corpus
from .corpus_texts import Here
from .places import DOWNLOAD, folder
from .request import Row
from .start import locate_start
from .text_formats import collect, collect_lines

SENTENCES, UPDATES = 20, 2
#: Subwords that are learnt besides the characters of the text.
_PIECES = 20
#: Subwords of raw sentences that are bytes.
_BYTES = 256
#: Settings of all trainings in a rehearsal.
CHANGES: dict[str, Any] = {
    "optimization.max_update": UPDATES,
    "generation.max_len_a": 0,
    "generation.max_len_b": 20,
}
_KINDS = ("heads", "labels")


def shorten_row(row: Row) -> Row:
    """Return a row without changes to settings that the short test run sets itself (`CHANGES`)."""
    others = (text for text in row.changes if text.partition("=")[0] not in CHANGES)
    return replace(row, changes=tuple(others))


def shorten_corpus(corpus: Corpus, work: Path, scratch: Path) -> tuple[Corpus, dict[str, str]]:
    """Write a corpus of the first sentences of each split, with their dependency heads and labels.

    Sentences are read from the downloads in ``work``, and written into ``texts`` in ``scratch``.
    Returns the short corpus, and why the sentences of a split had to be invented, by split.
    """
    texts = scratch / "texts"
    texts.mkdir()
    characters, faults = set[str](), dict[str, str]()
    for split in corpus.splits:
        lists = {split: ["generated"] if corpus.generated else corpus.list_texts(split)}
        lists |= {f"{split}.{kind}": corpus.list_parses(kind, split) for kind in _KINDS}
        names = [name for name, addresses in lists.items() if addresses]
        try:
            sides = {name: read_pairs(corpus, work, lists[name], SENTENCES) for name in names}
        except (DataError, OSError) as fault:
            sides = {name: _invent(name) for name in names}
            faults[split] = str(fault)
        characters.update(*chain(*sides.get(split, [])))
        for name, pairs in sides.items():
            for language, lines in zip(corpus.languages, zip(*pairs, strict=True), strict=True):
                _write(texts / f"{name}.{language}", lines)
    short = replace(
        corpus,
        checkpoint=1 if isinstance(corpus.checkpoint, int) else corpus.checkpoint,
        score={name: value for name, value in corpus.score.items() if name != "parts"},
        first=None,
        every=5 if corpus.every else None,
        last=5 if corpus.last else None,
    )
    if corpus.start is not None:
        short = replace(short, start=str((work / locate_start(corpus)).absolute()))
    elif corpus.subwords.scheme == "sentencepiece":
        bytes_too = _BYTES if corpus.subwords.raw else 0
        pieces = replace(corpus.subwords, size=len(characters) + bytes_too + _PIECES)
        short = replace(short, subwords=pieces)
    if corpus.generated:
        return replace(short, generated=corpus.generated | dict.fromkeys(SPLITS, SENTENCES)), {}
    if corpus.gold_alignments:
        located = locate(corpus, work, corpus.gold_alignments)
        links = [] if "test" in faults else collect_lines(*located)
        _write(texts / "links", links[:SENTENCES] or ["1-1"] * SENTENCES)
        short = replace(short, gold_alignments="links")
    parses = {k: f"{{split}}.{k}.{{language}}" for k in _KINDS if corpus.list_parses(k, "train")}
    valid = "valid.{language}" if corpus.valid else None
    if _link_parsed(corpus, texts):
        parses |= {"parsed": "{split}.{language}.parsed"}
        parses |= {"parsed_format": corpus.here.parsed_format} if corpus.here else {}
    unparsed = "unparsed.{language}" if corpus.unparsed else None
    here = Here("train.{language}", "test.{language}", None, str(texts), valid, unparsed, **parses)
    return replace(short, here=here, archives=[]), faults


def _link_parsed(corpus: Corpus, texts: Path) -> bool:
    """Make symbolic links to a user's parsed files in ``texts``; return whether there are any."""
    linked = False
    for split, language in product(SPLITS, corpus.languages):
        if path := corpus.find_parsed(language, split):
            link = texts / f"{split}.{language}.parsed"
            link.unlink(missing_ok=True)
            link.symlink_to(Path(path).absolute())
            linked = True
    return linked


def read_pairs(
    corpus: Corpus, work: Path, texts: Sequence[str], most: int
) -> list[tuple[str, str]]:
    """Return at most ``most`` line pairs of source and target: sentences, heads or labels.

    Args:
        corpus: the corpus. If it is generated, the pairs are invented.
        work: the folder with the corpus's downloads.
        texts: the texts, each ``FORMAT=ADDRESS``.
        most: the largest number of pairs.

    Raises:
        DataError: a text is missing.
    """
    if corpus.generated:
        return _invent("")
    formats = (text.partition("=") for text in texts)
    located = ((name, *locate(corpus, work, address)) for name, _, address in formats)
    pairs = (collect(at, name, text, corpus.languages, True) for name, at, text in located)
    return list(islice(chain.from_iterable(pairs), most))


def locate(corpus: Corpus, work: Path, address: str) -> tuple[Path, str]:
    """Return the folder of a text (user's or downloads), and the text's address in this folder."""
    own = corpus.here.path if corpus.here else None
    return own or work / folder(corpus, DOWNLOAD), corpus.locate(address)


def _invent(name: str) -> list[tuple[str, str]]:
    """Return sentence pairs of the built-in grammar for a split, such as ``train``.

    For ``train.heads`` and ``train.labels``, they are annotations of the same sentences, in which
    each word depends on the one before.
    """
    split, _, kind = name.partition(".")
    seed = SPLITS.index(split) + 1 if split in SPLITS else 1

    def write(words: Sequence[str]) -> str:
        heads, labels = map(str, range(len(words))), ["dep"] * len(words)
        kinds = {"heads": heads, "labels": labels}
        return " ".join(kinds.get(kind, words))

    return [(write(p.source.words), write(p.target.words)) for p in generate(SENTENCES, seed)]


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
