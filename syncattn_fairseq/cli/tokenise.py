"""``syncattn-tokenise``: split text into words as Moses does, without escapes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..base.text import read_lines
from ..base.worker_pool import map_in_order
from ..data.moses import AS_ENGLISH, load_sacremoses, lower_case
from .common import add_texts, command, new_parser, positive, rewrite_texts


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Tokenise texts in parallel processes."""
    args = _parser().parse_args(argv)
    sacremoses = load_sacremoses()
    prefixes = sacremoses.corpus.NonbreakingPrefixes()
    known = {*prefixes.available_langs, *prefixes.available_langs.values(), *AS_ENGLISH}
    if args.lang not in known:
        print(
            f"note: Moses has no abbreviations for {args.lang}; using the English ones",
            file=sys.stderr,
        )
    tokenise = partial(
        _tokenise,
        args,
        sacremoses.MosesTokenizer(args.lang),
        sacremoses.MosesPunctNormalizer(args.lang),
    )

    def lines(source: Path | int) -> Iterator[str]:
        sentences = map_in_order(tokenise, read_lines(source), args.workers)
        yield from tqdm(sentences, unit=" sentences", unit_scale=True, disable=None)

    rewrite_texts(args, lines)


def _tokenise(args: argparse.Namespace, tokenizer: Any, normalizer: Any, text: str) -> str:
    """Return the words of a line, with the line's end."""
    text = normalizer.normalize(text) if args.normalise else text
    if not args.words:
        # It marks splits at hyphens as @-@, which its detokeniser undoes.
        text = tokenizer.tokenize(
            text, aggressive_dash_splits=args.aggressive, escape=False, return_str=True
        )
    return (lower_case(text, args.lang) if args.lowercase else text) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "syncattn-tokenise",
        "Split text into words as the Moses tokenizer does (sacremoses), with a space "
        "between them. Characters do not change: & does not become &amp;.",
        example="syncattn-tokenise --lang en --input raw/test.en --output words/test.en",
    )
    parser.add_argument("--lang", required=True, metavar="LANGUAGE", help="such as en")
    parser.add_argument(
        "--normalise", action="store_true", help="first unify quotes, dashes and the like"
    )
    parser.add_argument(
        "--aggressive", action="store_true", help="split words at hyphens, as in well @-@ known"
    )
    parser.add_argument("--lowercase", action="store_true", help="put the words in lower case")
    parser.add_argument(
        "--words", action="store_true", help="the text is already split into words: keep them"
    )
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="processes (default: 1)"
    )
    add_texts(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
