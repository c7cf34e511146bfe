"""Binarise texts with ``fairseq-preprocess``, and their parses."""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq.data import Dictionary
from fairseq_cli import preprocess

from ..base.clashes import check_files
from ..base.errors import DataError
from ..base.folders import filling
from ..base.text import count_lines, find_text, is_plain, read_lines
from . import checksums
from .binarise import HEADS, LABELS, AnnotatedText, Annotation, binarise
from .labels import (
    build_dictionary,
    load_dictionary,
    locate_dictionary,
    save_dictionary,
)
from .parses import SPLITS
from .schemes import store_schemes, stored_schemes
from .words import find_schemes

KINDS = (HEADS, LABELS)


@dataclass(frozen=True)
class SplitText:
    """One language of one split: its text, and the prefix of its heads and labels."""

    split: str
    language: str
    text: Path
    prefix: str
    words: Path | None

    def values(self, kind: Annotation) -> Path:
        """Return the path of the heads or labels, which may be compressed, or not exist."""
        return find_text(Path(f"{self.prefix}.{kind.name}.{self.language}"))


def _list_parts(args: argparse.Namespace) -> Iterator[SplitText]:
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
            places = [f"{head}.{kind.name}.{lang}" for kind in KINDS for lang in languages]
            if heads and not any(find_text(Path(place)).exists() for place in places):
                raise DataError(f"{' or '.join(places)}: no such file; see --{split}heads")
            for language in languages:
                path = find_text(Path(f"{text}.{language}"))
                words = find_text(Path(f"{head}.{language}"))
                if not path.exists():
                    raise DataError(f"{path}: no such file; see --{split}pref")
                _check_plain(path)
                compare = words.exists() and not words.samefile(path)
                yield SplitText(
                    f"{split}{number or ''}",
                    language,
                    path,
                    head,
                    words if compare else None,
                )


def _check_plain(path: Path) -> None:
    """Refuse a file that fairseq would not read as we do."""
    if not is_plain(path):
        raise DataError(
            f"{path}: compressed, a pipe, or with a byte order mark, which fairseq would take for "
            "text; save it as plain UTF-8 first"
        )


def _detect_scheme(paths: Sequence[Path]) -> str:
    """Detect how subwords are marked in these texts."""
    found = {*find_schemes(line for path in paths for line in read_lines(path))}
    if len(found) > 1:
        raise DataError(
            f"{paths[0]}: text has both '@@ ' and U+2581; choose one with --subword-marks"
        )
    return found.pop() if found else "none"


def _check(
    args: argparse.Namespace, parts: Sequence[SplitText]
) -> tuple[list[tuple[SplitText, AnnotatedText]], dict[str, Dictionary], dict[str, str]]:
    """Check everything that can be checked before anything is written.

    Returns:
        What to binarise, the label dictionary of each language that has labels, and how each
        language's subwords are marked.
    """
    found = [(part, kind) for kind in KINDS for part in parts if part.values(kind).exists()]
    if args.add:
        found = [(p, kind) for p, kind in found if f"{kind.name}.{p.language}" in args.add]
        missing = {*args.add} - {f"{kind.name}.{part.language}" for part, kind in found}
        if missing:
            raise DataError(f"--add {min(missing)}: no such file; see --trainheads")
    if not found:
        places = ", ".join(str(part.values(kind)) for part in parts for kind in KINDS)
        raise DataError(
            f"no heads or labels found; looked for {places or 'none, as --trainpref is missing'}; "
            "for text without parses, use fairseq-preprocess"
        )
    dictionaries = _load_given_dictionaries(args, [part for part, kind in found if kind is LABELS])
    for split in dict.fromkeys(part.split for part in parts):
        count_lines(*(part.text for part in parts if part.split == split))
    schemes = stored_schemes(args.destdir)
    for language in dict.fromkeys(part.language for part, _ in found):
        if args.subword_marks:
            schemes[language] = args.subword_marks
        elif language not in schemes:
            texts = dict.fromkeys(part.text for part, _ in found if part.language == language)
            schemes[language] = _detect_scheme(list(texts))
            print(f"subwords of {language}: {schemes[language]}")
    for kind in dict.fromkeys(kind for _, kind in found):
        for part in parts:
            if (part, kind) not in found and not args.add:
                place = part.values(kind)
                print(f"{part.split} {part.language}: binarised without {kind.name}, no {place}")
    sources = []
    for part, kind in found:
        source = AnnotatedText(
            part.text,
            kind,
            part.values(kind),
            schemes[part.language],
            part.words,
            args.on_bad_parse,
            args.min_parsed,
        )
        if kind is LABELS and part.language not in dictionaries:  # labels of the training text
            tally: Counter[str] = Counter()
            source.check(tally)
            dictionaries[part.language] = build_dictionary(tally)
        else:
            source.check()
        sources.append((part, source))
    return sources, dictionaries, schemes


def _load_given_dictionaries(
    args: argparse.Namespace, labelled: Sequence[SplitText]
) -> dict[str, Dictionary]:
    """Load the label dictionaries that are given, and check that the others can be made."""
    dictionaries = {}
    for option, language in ("srclabeldict", args.source_lang), ("tgtlabeldict", args.target_lang):
        given = getattr(args, option)
        first = next((part for part in labelled if part.language == language), None)
        made = locate_dictionary(args.destdir, language)
        if given and first is None:
            raise DataError(f"--{option}: found no labels for {language}")
        if given:
            dictionaries[language] = load_dictionary(Path(given))
        elif first and first.split != "train":
            raise DataError(
                f"{first.values(LABELS)}: these labels need a dictionary; give it with --{option}, "
                "or give the training text's labels with --trainpref or --trainheads"
            )
        elif first and made.exists() and not args.add:
            raise DataError(
                f"{made}: exists already; reuse it with --{option}, choose another --destdir or "
                "remove it"
            )
    return dictionaries


def preprocess_texts(args: argparse.Namespace) -> None:
    """Binarise texts and parses.

    Args:
        args: the options of ``syncattn-preprocess``.

    Raises:
        DataError: something is wrong with them, and nothing was written.
    """
    for given in filter(None, (args.srcdict, args.tgtdict)):
        _check_plain(Path(given))
        load_dictionary(Path(given))  # or says what is wrong with it
    parts = list(_list_parts(args))
    if args.dict_only:
        _refuse_dictionaries(args)
        _binarise_texts(args)
        return
    if args.dataset_impl != "mmap":
        raise DataError("--dataset-impl: heads and labels need mmap, the default")
    if args.workers < 1:
        raise DataError(f"--workers {args.workers}: give 1 or more")
    sources, dictionaries, schemes = _check(args, parts)
    destination = Path(args.destdir)
    with filling(destination) as folder:
        made = argparse.Namespace(**vars(args) | {"destdir": str(folder)})
        if not args.add:
            _refuse_dictionaries(args)
            _binarise_texts(made)
        store_schemes(folder, schemes)
        for language, dictionary in dictionaries.items():
            save_dictionary(dictionary, locate_dictionary(folder, language))
        for part, source in sources:
            text = _dataset(args if args.add else made, part)
            marks = _dataset(made, part, source.annotation)
            labels = dictionaries[part.language] if source.annotation is LABELS else None
            counts = binarise(source, text, marks, labels)
            print(f"{destination / marks.name}: {counts}")
        read = [path for part, _ in sources for path in (part.text, part.words) if path]
        read += [source.values for _, source in sources]
        check_files(read, outputs=[destination / path.name for path in folder.iterdir()])
        if not args.add:
            _remove_earlier(args, parts)
            print(f"{destination}: the binarised text and its dictionaries")


def _binarise_texts(args: argparse.Namespace) -> None:
    handlers = [*preprocess.logger.handlers]
    preprocess.logger.addFilter(_says_no_place)
    try:
        preprocess.main(args)
    except AssertionError as error:
        raise DataError(str(error)) from None
    finally:  # fairseq leaves its log open, where it was before it moved
        preprocess.logger.removeFilter(_says_no_place)
        for handler in {*preprocess.logger.handlers} - {*handlers}:
            preprocess.logger.removeHandler(handler)
            handler.close()


def _says_no_place(record: logging.LogRecord) -> bool:
    """Tell whether a message can be shown: the folder that fairseq writes to is a temporary one."""
    return not record.getMessage().startswith("Wrote preprocessed data to")


def _remove_earlier(args: argparse.Namespace, parts: Sequence[SplitText]) -> None:
    """Remove heads and labels of an earlier run, which do not belong to the new text."""
    for part in parts:
        for kind in KINDS:
            for suffix in (".idx", ".bin", checksums.SUFFIX):
                Path(f"{_dataset(args, part, kind)}{suffix}").unlink(missing_ok=True)


def _refuse_dictionaries(args: argparse.Namespace) -> None:
    """Refuse to replace dictionaries, as fairseq does."""
    for given, language in (args.srcdict, args.source_lang), (args.tgtdict, args.target_lang):
        made = Path(args.destdir) / f"dict.{language}.txt"
        if made.exists() and not given and not (args.only_source and language != args.source_lang):
            raise DataError(f"{made}: exists already; choose another --destdir or remove it")


def _dataset(args: argparse.Namespace, part: SplitText, kind: Annotation | None = None) -> Path:
    """Return the path, without suffix, of a binarised text, or of its heads or labels."""
    prefix = f"{part.split}.{kind.name}" if kind else part.split
    return Path(preprocess.dataset_dest_prefix(args, prefix, part.language))
