"""Download Multi30k (task 1, English-German), tokenise it and parse both sides with Stanza.

Usage: fetch_multi30k.py RAW WORDS

RAW gets the text as it was published, WORDS gets ``{train,valid,test}.{en,de}`` in tokens and their
``.heads.``; the test set is test_2016_flickr. Needs sacremoses and stanza, whose models for both
languages are downloaded. What is there already is not made again.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tqdm import tqdm

from syncattn_fairseq.data.files import read_lines, replacing
from syncattn_fairseq.parsing.parser import Parser, open_parser

SOURCE = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


def fetch(name: str, path: Path) -> None:
    """Download and unpack one file."""
    with replacing(path) as temporary, urlopen(f"{SOURCE}/{name}.gz", timeout=60) as response:
        temporary.write_bytes(gzip.decompress(response.read()))


def tokenise(lines: Iterable[str], language: str) -> Iterator[str]:
    """Cut sentences into words as Moses does, without escapes and with hyphened words whole."""
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(language)
    for line in lines:
        yield tokenizer.tokenize(line, aggressive_dash_splits=False, escape=False, return_str=True)


def parse(lines: Iterable[str], parser: Parser) -> Iterator[str]:
    """Yield the heads of each tokenised sentence, an empty line where there is no parse."""
    sentences = (line.split() for line in lines)
    while batch := list(islice(sentences, 1000)):
        for found in parser(batch):
            yield " ".join(map(str, found.heads)) if found else ""


def main(raw: Path, words: Path) -> None:
    """Make everything that is missing."""
    import stanza

    raw.mkdir(parents=True, exist_ok=True)
    words.mkdir(parents=True, exist_ok=True)
    for language in ("en", "de"):
        for split, name in SPLITS.items():
            if not (raw / f"{split}.{language}").exists():
                fetch(f"{name}.{language}", raw / f"{split}.{language}")
            if (words / f"{split}.{language}").exists():
                continue
            with replacing(words / f"{split}.{language}") as path:
                lines = tokenise(read_lines(raw / f"{split}.{language}"), language)
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        stanza.download(language, processors="pos,lemma,depparse")
        parser = open_parser(f"stanza:{language}")
        for split in SPLITS:
            heads = words / f"{split}.heads.{language}"
            if heads.exists():
                continue
            text = tqdm(read_lines(words / f"{split}.{language}"), desc=heads.name)
            with replacing(heads) as path, path.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in parse(text, parser))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except URLError as error:
        sys.exit(
            f"error: {SOURCE}: {error.reason}; without a network give a folder with text and "
            "parses: MULTI30K=/path bash scripts/run_multi30k.sh"
        )
