"""``syncattn-tokenise``: cut text into words as Moses does, without escapes."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tqdm import tqdm

from ..base.files import read_lines
from ..data.moses import load_sacremoses
from .common import add_texts, command, new_parser, positive, rewrite_texts

_tokenise: Callable[[str], str]


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    args = _parser().parse_args(argv)
    prefixes = load_sacremoses().corpus.NonbreakingPrefixes()
    if args.lang not in {*prefixes.available_langs, *prefixes.available_langs.values()}:
        print(
            f"note: Moses knows no abbreviations of {args.lang}; those of English are taken",
            file=sys.stderr,
        )
    rewrite_texts(args, partial(_tokenise_lines, args))


def _tokenise_lines(args: argparse.Namespace, source: Path | int) -> Iterator[str]:
    sentences = tqdm(read_lines(source), unit=" sentences", unit_scale=True, disable=None)
    start = (args.lang, args.normalise, args.aggressive, args.lowercase, args.words)
    with multiprocessing.Pool(args.workers, _start, start) as pool:
        yield from pool.imap(_work, sentences, chunksize=1000)


def _start(
    language: str, normalise: bool, aggressive: bool, lowercase: bool, are_words: bool
) -> None:
    """Make the tokeniser of a process."""
    global _tokenise
    sacremoses = load_sacremoses()
    tokenizer = sacremoses.MosesTokenizer(language)
    normalizer = sacremoses.MosesPunctNormalizer(language)

    def tokenise(text: str) -> str:
        text = normalizer.normalize(text) if normalise else text
        if are_words:
            return text.lower() if lowercase else text
        # Its splits at hyphens are marked as @-@, which its detokeniser knows.
        words: str = tokenizer.tokenize(
            text, aggressive_dash_splits=aggressive, escape=False, return_str=True
        )
        return words.lower() if lowercase else words

    _tokenise = tokenise


def _work(text: str) -> str:
    return _tokenise(text) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "syncattn-tokenise",
        "Cut text into words as the Moses tokenizer does (sacremoses), with a space "
        "between them. Characters stay as they are: & does not become &amp;.",
        example="syncattn-tokenise --lang en --input raw/test.en --output words/test.en",
    )
    parser.add_argument("--lang", required=True, metavar="LANGUAGE", help="such as en")
    parser.add_argument(
        "--normalise", action="store_true", help="first make quotes, dashes and the like alike"
    )
    parser.add_argument(
        "--aggressive", action="store_true", help="split words at hyphens, as in well @-@ known"
    )
    parser.add_argument("--lowercase", action="store_true", help="put the words in lower case")
    parser.add_argument(
        "--words", action="store_true", help="the text is in words already: leave them whole"
    )
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="processes (default: 1)"
    )
    add_texts(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
