"""Find all inputs of a recipe that this machine lacks at once, before days are spent."""

import os
import re
import shutil
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.doctor import Finding, Text, examine, read_limits
from syncattn_fairseq.data.parses import SPLITS
from syncattn_fairseq.parsing.parsers import find_parser

from .cell import Cell
from .corpus_facts import Corpus
from .corpus_texts import Archive
from .downloads import probe
from .places import DOWNLOAD, folder
from .prepare import list_parsed
from .rehearsal import locate, read_pairs
from .stages import read_options
from .text_formats import collect, name_sides

GB = 10**9
#: Bytes of text for each byte of an archive; bytes on the disk and bytes of memory (to learn
#: subwords) for each byte of text, as measured in docs/recipes.md.
_UNPACKED, _ON_DISK, _IN_MEMORY = 2.5, 6, 3
#: Number of checkpoints of a training, and their bytes per weight: itself and two moments of Adam.
_CHECKPOINTS, _BYTES = 4, 12
#: The most sentence pairs whose subwords are counted.
_PAIRS = 100_000


def list_missing_parsers(corpus: Corpus, needs: set[str]) -> dict[str, str]:
    """Return the languages that cannot be parsed on this machine, each with the reason.

    A Stanza model that can be downloaded is no fault, since recipes download it.
    """
    faults = {}
    for language in [] if corpus.generated else list_parsed(corpus, needs):
        if corpus.find_parsed(language, "train"):
            own = (corpus.find_parsed(language, split) for split in SPLITS)
            lacking = [path for path in own if path and not Path(path).is_file()]
            if lacking:
                faults[language] = (
                    f"{lacking[0]}: no such file, but _data.yaml names it under here: parsed"
                )
            continue
        values = read_options(corpus.parses[language])
        spec = values.get("--parser", "")
        if spec == "stanza":
            directory = values.get("--stanza-dir") or os.environ.get("STANZA_DIR")
            spec = ":".join(filter(None, (spec, values.get("--lang"), directory)))
        try:
            if spec != "random":
                find_parser(spec).files()
        except DataError as fault:
            stanzas = spec.startswith("stanza:") and spec.count(":") == 1
            unreachable = _ask_stanza() if stanzas else "-"
            if unreachable:
                faults[language] = f"{fault}{f' ({unreachable})' * stanzas}"
    return faults


def _ask_stanza() -> str:
    """Return why Stanza's models cannot be downloaded, or ``""`` if they can."""
    try:
        import stanza
        from stanza.resources.common import DEFAULT_RESOURCES_URL

        probe(f"{DEFAULT_RESOURCES_URL}/resources_{stanza.__resources_version__}.json")
    except (ImportError, DataError) as fault:
        return str(fault)
    return ""


def list_missing_texts(corpus: Corpus, work: Path, faults: Mapping[str, str]) -> Iterator[str]:
    """Yield why archives cannot be downloaded or, if none is missing, why texts cannot be read.

    ``faults`` says why a split cannot be read, by split.
    """
    own = corpus.here and corpus.here.path
    if corpus.here and not own and not corpus.archives:
        yield f"{corpus.here.variable}: set this variable to the folder of the texts"
        return
    left = (
        []
        if own
        else [x for x in corpus.archives if not (x.own or _path(corpus, x, work).exists())]
    )
    with ThreadPoolExecutor(8) as pool:
        yield from filter(None, pool.map(_ask, left))
    if not left:
        yield from faults.values()


def examine_corpus(corpus: Corpus, work: Path, missing: Container[str]) -> list[Finding]:
    """Return the faults in the texts of a corpus, before they are prepared.

    Args:
        corpus: the corpus. If it is generated, it has no text yet.
        work: the folder with its downloads.
        missing: the splits that cannot be read yet, and are left out.

    Raises:
        DataError: a text cannot be read.
    """
    texts: list[Text] = []
    for split in (split for split in SPLITS if split not in missing and not corpus.generated):
        limited = corpus.first and split == "train"
        numbers = iter(range(corpus.first or 0) if limited else count())  # of all its texts
        for form, _, address in (text.partition("=") for text in corpus.list_texts(split)):
            names = name_sides(address, corpus.languages)
            place = locate(corpus, work, address)
            pairs = collect(place[0], form, place[1], corpus.languages, keep_empty=True)
            used = (pair for pair, _ in zip(pairs, numbers, strict=False))
            texts.append(Text(split, (names[0], names[1]), used))
    excluded = [str(corpus.clean["exclude"])] if corpus.clean and "exclude" in corpus.clean else []
    findings = examine(texts, corpus.languages, read_limits(corpus.examine), excluded)
    return [finding for finding in findings if not _is_declared(finding, corpus)]


def _is_declared(finding: Finding, corpus: Corpus) -> bool:
    """Tell whether a finding is only that a split is tokenised and the training text is not.

    The corpus declares that, or the reverse, in ``tokenised``.
    """
    in_words = [split in corpus.tokenised for split in (finding.split, "train")]
    return finding.kind == "forms" and in_words[0] != in_words[1]


def _path(corpus: Corpus, archive: Archive, work: Path) -> Path:
    return work / folder(corpus, DOWNLOAD) / archive.name


def _ask(archive: Archive) -> str:
    if archive.licence:
        where = (
            (f"; then set the variable {archive.variable} to the file's path, packed or unpacked")
            if archive.variable
            else ""
        )
        return f"{archive.name}: {archive.licence}{where}"
    try:
        probe(str(archive.url), archive.size)
    except DataError as fault:
        return f"{archive.name}: the server does not answer ({fault})"
    return ""


def list_scarce(corpus: Corpus, cells: Collection[Cell], work: Path) -> Iterator[str]:
    """Yield a warning for each of disk and memory that will probably not suffice for a recipe."""
    text = _UNPACKED * sum(archive.size or 0 for archive in corpus.archives)
    if corpus.here and corpus.here.path:
        names = (corpus.here.train.replace("{language}", x) for x in corpus.languages)
        paths = (corpus.here.path / name for name in names)
        text = sum(path.stat().st_size for path in paths if path.exists())
    weights = sum(_count_weights(cell, corpus.subwords.size or 0) for cell in cells)
    needed = _ON_DISK * text + _CHECKPOINTS * _BYTES * weights
    free = shutil.disk_usage(work).free
    if needed > free:
        yield (
            f"disk: about {needed / GB:.0f} GB are needed, but {free / GB:.0f} GB are free in "
            f"{work}"
        )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if (needed := GB + _IN_MEMORY * text) > memory:
        yield (
            f"memory: about {needed / GB:.0f} GB are needed, but the machine has "
            f"{memory / GB:.0f} GB"
        )


def _count_weights(cell: Cell, vocabulary: int) -> int:
    model = cell.settings.config["model"]
    width = model.get("encoder_embed_dim", 512)
    inner = model.get("encoder_ffn_embed_dim", 4 * width)
    layers = sum(model.get(f"{side}_layers", 6) for side in ("encoder", "decoder"))
    return int(layers * (6 * width + 2 * inner) * width + 2 * vocabulary * width)


def list_vocabulary_faults(corpus: Corpus, work: Path) -> Iterator[str]:
    """Yield a message if a short training text cannot give as many subwords as requested."""
    size = corpus.subwords.size
    if corpus.generated or corpus.subwords.scheme != "sentencepiece" or size is None:
        return
    try:
        pairs = read_pairs(corpus, work, corpus.list_texts("train"), _PAIRS)
    except (DataError, OSError):
        return
    sources, targets = zip(*pairs, strict=True)
    texts = [[*sources, *targets]] if corpus.subwords.joint else [sources, targets]
    most = min(map(count_subwords, texts))
    most += 259 * corpus.subwords.raw  # bytes, and three symbols
    if len(pairs) < _PAIRS and size > most:
        yield (
            f"subwords: size: {size:,}: the training text has at most {most:,} different "
            f"subwords; give a smaller size, such as {most // 4:,}"
        )


def count_subwords(lines: Iterable[str]) -> int:
    """Return an upper bound on the number of different subwords that a text can give."""
    words = {word for line in lines for word in re.findall(r"\w+|[^\w\s]", line)}
    return len(set().union(*words)) + sum(len(word) - 1 for word in words)
