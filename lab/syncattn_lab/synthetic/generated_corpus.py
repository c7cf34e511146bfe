"""Draw sentence pairs from the grammar, and write them as a corpus."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import hash_file, read_json, replacing
from syncattn_fairseq.trees.tree import format_conllu

from .derivation import SentencePair
from .grammar import Grammar

MAX_WORDS = 25
#: The checksums of what is written, by the names of the files.
_RECORD = ".syncattn-corpus.json"
_LANGUAGES = ("en", "de")
#: Wrong translations of the test split, beside the right ones.
_CONTRAST = "test.contrast.tsv"
_KINDS = ("{}", "heads.{}", "labels.{}", "trees.{}", "{}.conllu")


def generate(n: int, seed: int) -> Iterator[SentencePair]:
    """Yield ``n`` pairs of at most ``MAX_WORDS`` words a side; no English sentence is repeated.

    The sequence depends only on the seed: a smaller ``n`` gives the beginning of the same sequence.
    """
    grammar = Grammar(seed)
    seen: set[tuple[str, ...]] = set()
    while len(seen) < n:
        pair = grammar.draw()
        longest = max(len(pair.source.words), len(pair.target.words))
        if longest <= MAX_WORDS and pair.source.words not in seen:
            seen.add(pair.source.words)
            yield pair


def write_corpus(directory: Path, sizes: Mapping[str, int], seed: int) -> None:
    """Write the splits of a corpus, which share no English sentence; write all files or none.

    For each split: words (``train.en``), 1-based heads with 0 for the root (``train.heads.en``),
    labels, phrase structure (``train.trees.en``) and CoNLL-U (``train.en.conllu``), the same for
    ``de``, and links ``i-j`` (sure) or ``i?j`` (possible only) in ``train.align``, English first,
    0-based. Of the test split, ``test.contrast.tsv`` has pairs of a right and a wrong translation,
    for `.contrastive.read_contrastive`. A split does not depend on those after it. The seed is as
    in ``generate``.

    Raises:
        DataError: a file is there already, and is not one that was written here.
    """
    directory.mkdir(parents=True, exist_ok=True)
    record = directory / _RECORD
    sums = read_json(record) if record.exists() else {}
    total = sum(sizes.values())
    pairs = iter(tqdm(generate(total, seed), total=total, unit="pair", disable=None))
    files: dict[str, TextIO] = {}
    written: dict[str, list[str]] = {}
    with ExitStack() as stack, ExitStack() as opened:
        for split, size in sizes.items():
            for number, pair in enumerate(islice(pairs, size), 1):
                texts = {f"{split}.{suffix}": text for suffix, text in _render(pair, number)}
                if split == "test":
                    texts[_CONTRAST] = _render_wrong(pair)
                for name, text in texts.items():
                    if name not in files:
                        written[name] = _find_sums(directory / name, sums)
                        path = stack.enter_context(replacing(directory / name))
                        files[name] = opened.enter_context(open(path, "w", encoding="utf-8"))
                    files[name].write(text)
        opened.close()
        for name, file in files.items():
            written[name].append(hash_file(Path(file.name)))
        # Before any file is in place: a kill would leave some that look like somebody else's.
        with replacing(record) as path:
            path.write_text(json.dumps(sums | written, indent=1) + "\n", "utf-8")


def list_written(splits: Sequence[str]) -> list[str]:
    """List the names of all files that `write_corpus` writes for the given splits."""
    of_sides = [kind.format(language) for language in _LANGUAGES for kind in _KINDS]
    wrong = [_CONTRAST] if "test" in splits else []
    names = (f"{split}.{name}" for split in splits for name in ("align", *of_sides))
    return [_RECORD, *wrong, *names]


def _find_sums(path: Path, sums: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the checksum of an existing file; `DataError` if this command did not make it."""
    if not path.is_file():
        return []
    found = hash_file(path)
    if found not in sums.get(path.name, ()):
        raise DataError(
            f"{path}: already exists, and was not made by this command or was changed since; "
            "move it away"
        )
    return [found]


def _render(pair: SentencePair, number: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of a pair for each file, with the end of the file's name."""
    links = (f"{i}{'-' if (i, j) in pair.sure else '?'}{j}" for i, j in sorted(pair.possible))
    yield "align", " ".join(links) + "\n"
    for language, sentence in (("en", pair.source), ("de", pair.target)):
        yield language, " ".join(sentence.words) + "\n"
        yield f"heads.{language}", " ".join(map(str, sentence.heads)) + "\n"
        yield f"labels.{language}", " ".join(sentence.labels) + "\n"
        yield f"trees.{language}", sentence.tree + "\n"
        known = [("_", upos, "_", "_") for upos in sentence.upos]
        yield (
            f"{language}.conllu",
            format_conllu(sentence.words, sentence.heads, sentence.labels, known, number),
        )


def _render_wrong(pair: SentencePair) -> str:
    source, right = " ".join(pair.source.words), " ".join(pair.target.words)
    rows = (
        (source, right, " ".join(wrong.words), wrong.kind, str(wrong.distance))
        for wrong in pair.wrong
    )
    return "".join("\t".join(row) + "\n" for row in rows)
