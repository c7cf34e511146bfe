"""``syncattn-preprocess``: ``fairseq-preprocess`` that binarises parses in the same call."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq import options
from fairseq_cli import preprocess

from syncattn_fairseq.cli.common import command
from syncattn_fairseq.data.binarise import POLICIES, ParsedText, binarise
from syncattn_fairseq.data.errors import DataError
from syncattn_fairseq.data.files import read_lines, same_line_count
from syncattn_fairseq.data.subwords import SCHEMES

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Part:
    """One language of one split: its text, and its heads if there are any."""

    split: str
    language: str
    text: Path
    heads: Path
    words: Path | None


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = options.get_preprocessing_parser()
    parser.prog = "syncattn-preprocess"
    group = parser.add_argument_group("Parses")
    for split in SPLITS:
        several = "" if split == "train" else ", comma separated if there are several,"
        group.add_argument(
            f"--{split}heads",
            metavar="FP",
            help=f"prefix{several} of the files FP.heads.LANG with the heads of the words "
            f"(default: the value of --{split}pref); a text FP.LANG beside them is compared "
            "with the text in subwords",
        )
    group.add_argument(
        "--subwords",
        choices=("auto", *SCHEMES),
        default="auto",
        help="how subwords are marked: a final @@, an initial U+2581, or words are whole "
        "(default: by what the text contains)",
    )
    group.add_argument(
        "--on-bad-parse",
        choices=POLICIES,
        default="stop",
        help="what a parse that is not a tree over its sentence's words does: stop before "
        "anything is written, or be dropped, its sentence kept without labels (default: stop)",
    )
    return parser


def _parts(args: argparse.Namespace) -> Iterator[Part]:
    """List the texts that fairseq will binarise, in its order and under its names."""
    languages = [args.source_lang] if args.only_source else [args.source_lang, args.target_lang]
    if None in languages:
        raise DataError("--source-lang and --target-lang are needed to find the files")
    for split in SPLITS:
        texts, heads = getattr(args, f"{split}pref"), getattr(args, f"{split}heads")
        if not texts:
            if heads:
                raise DataError(f"--{split}heads needs --{split}pref")
            continue
        text_prefixes = [texts] if split == "train" else texts.split(",")
        head_prefixes = heads.split(",") if heads else text_prefixes
        if len(text_prefixes) != len(head_prefixes):
            raise DataError(
                f"--{split}pref names {len(text_prefixes)} prefixes, but --{split}heads "
                f"{len(head_prefixes)}; give one for each"
            )
        for number, (text, head) in enumerate(zip(text_prefixes, head_prefixes, strict=True)):
            places = [f"{head}.heads.{language}" for language in languages]
            if heads and not any(Path(place).exists() for place in places):
                raise DataError(f"{' and '.join(places)}: no such file; see --{split}heads")
            for language in languages:
                path, words = Path(f"{text}.{language}"), Path(f"{head}.{language}")
                if not path.exists():
                    raise DataError(f"{path}: no such file; see --{split}pref")
                compare = words.exists() and not words.samefile(path)
                yield Part(
                    f"{split}{number or ''}",
                    language,
                    path,
                    Path(f"{head}.heads.{language}"),
                    words if compare else None,
                )


def _detect_scheme(paths: Sequence[Path]) -> str:
    """Tell how subwords are marked in these texts."""
    found = {"subword_nmt": False, "sentencepiece": False}
    for path in paths:
        for line in read_lines(path):
            found["subword_nmt"] |= "@@ " in line
            found["sentencepiece"] |= "▁" in line
    if all(found.values()):
        raise DataError(f"{paths[0]}: both '@@ ' and U+2581 in the text; say which with --subwords")
    return next((scheme for scheme, seen in found.items() if seen), "none")


def _check(args: argparse.Namespace, parts: Sequence[Part]) -> list[tuple[Part, ParsedText]]:
    """Check everything that can be checked before anything is written."""
    with_heads = [part for part in parts if part.heads.exists()]
    if not with_heads:
        places = ", ".join(str(part.heads) for part in parts)
        raise DataError(f"no heads found; looked for {places or 'none, as --trainpref is missing'}")
    for split in dict.fromkeys(part.split for part in parts):
        same_line_count(*(part.text for part in parts if part.split == split))
    schemes = {part.language: args.subwords for part in with_heads}
    if args.subwords == "auto":
        for language in schemes:
            texts = [part.text for part in with_heads if part.language == language]
            schemes[language] = _detect_scheme(texts)
            print(f"subwords of {language}: {schemes[language]}")
    parsed = []
    for part in parts:
        if part not in with_heads:
            print(f"{part.split} {part.language}: binarised without heads, no {part.heads}")
            continue
        source = ParsedText(
            part.text, part.heads, schemes[part.language], part.words, args.on_bad_parse
        )
        source.check()
        parsed.append((part, source))
    return parsed


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    args = _parser().parse_args(argv)
    if args.dict_only:
        preprocess.main(args)
        return
    if args.dataset_impl != "mmap":
        raise DataError("--dataset-impl: heads need mmap, the default")
    parts = list(_parts(args))
    parsed = _check(args, parts)
    try:
        preprocess.main(args)
    except FileExistsError as error:
        raise DataError(f"{error}: exists already; choose another --destdir or remove it") from None
    except AssertionError as error:
        raise DataError(str(error)) from None

    def dataset(prefix: str, part: Part) -> Path:
        return Path(preprocess.dataset_dest_prefix(args, prefix, part.language))

    for part in parts:  # heads of an earlier run do not belong to the new text
        for suffix in (".idx", ".bin"):
            Path(f"{dataset(f'{part.split}.heads', part)}{suffix}").unlink(missing_ok=True)
    for part, source in parsed:
        destination = dataset(f"{part.split}.heads", part)
        counts = binarise(source, dataset(part.split, part), destination)
        print(f"{destination}: {counts}")


if __name__ == "__main__":
    sys.exit(main())
