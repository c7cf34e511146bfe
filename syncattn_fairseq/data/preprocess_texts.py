"""Binarise texts, with ``fairseq-preprocess``, and their parses."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from fairseq.data import Dictionary
from fairseq_cli import preprocess

from ..base.clashes import check_files
from ..base.errors import DataError
from ..base.folders import check_places, filling
from ..base.text import (
    MAX_LINE,
    clean_line,
    count_lines,
    find_text,
    is_plain,
    open_text,
    read_blocks,
    read_lines,
)
from .binarise import (
    HEADS,
    KINDS,
    LABELS,
    AnnotatedText,
    TextCounts,
    binarise,
    check_lengths,
    count_values,
)
from .doctor import examine, open_files
from .earlier_runs import (
    SAMPLE,
    SAMPLED,
    check_earlier,
    drop_same_dictionaries,
    list_earlier,
    read_rows,
    store_fingerprint,
)
from .encode_texts import encoding_blocks
from .labels import (
    build_dictionary,
    load_dictionary,
    load_unambiguous,
    locate_dictionary,
    save_dictionary,
)
from .links import LinkedText, binarise_links
from .mmap_blocks import store_checksums
from .parses import LINKS, SPANS, SPLITS
from .pieces import list_pieces
from .preparation import (
    NAME,
    Preparation,
    score_round_trip,
    store_preparations,
    store_schemes,
    stored_preparations,
    stored_schemes,
)
from .record_checks import check_languages, check_record
from .segmenters import (
    Pieces,
    RawPieces,
    SubwordModel,
    find_subwords,
    name_vocabulary,
    store_subwords,
)
from .splitters import find_splitter
from .words import RAW, SYMBOLS, UNKNOWN, detect_scheme, find_schemes, is_raw

#: Characters that fairseq reads otherwise: a carriage return ends its lines, and the others are no
#: white space for it.
_READ_OTHERWISE = re.compile("[\r\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


@dataclass(frozen=True)
class Preprocessing:
    """The settings of ``syncattn-preprocess``; tuples are for source and target.

    Args:
        languages: source and target; with ``only_source``, the target has no text.
        texts: for each split, the path prefixes of its texts; `None`: there is no such split.
        heads: for each split, the prefixes of its heads and labels; `None`: those of its texts.
        dictionaries, label_dictionaries: the files of dictionaries to reuse, or `None`.
        destination: the folder to write into.
        scheme: how subwords are marked; `None`: detected.
        on_bad_parse, min_parsed: see :class:`.binarise.AnnotatedText`.
        add: the only heads or labels to binarise, for texts that are binarised already.
        preparations: how sentences became the words of each language; empty: unknown.
        subwords: the subword models that split the words; `None`: unknown.
        raw_models: the models among these that read raw sentences, by language.
        raw: the path prefix of raw sentences, to measure what preparation loses; or `None`.
        fairseq: the arguments of ``fairseq-preprocess``, which binarises the texts.
    """

    languages: tuple[str, str]
    only_source: bool
    texts: Mapping[str, str | None]
    heads: Mapping[str, str | None]
    dictionaries: tuple[str | None, str | None]
    label_dictionaries: tuple[str | None, str | None]
    destination: Path
    scheme: str | None
    on_bad_parse: str
    min_parsed: float
    add: Sequence[str]
    preparations: Mapping[str, Preparation]
    subwords: Sequence[SubwordModel] | None
    raw_models: Mapping[str, RawPieces]
    raw: str | None
    fairseq: argparse.Namespace

    @property
    def written(self) -> tuple[str, ...]:
        """The languages whose texts are binarised: both, or the source's alone."""
        return self.languages[:1] if self.only_source else self.languages

    def locate(self, folder: Path, part: SplitText, kind: str = "") -> Path:
        """Return the path, without suffix, of a binarised text, or of its heads or labels."""
        name = f"{part.split}.{kind}" if kind else part.split
        return folder / f"{name}.{'-'.join(self.languages)}.{part.language}"


def read_arguments(
    args: argparse.Namespace,
    preparations: Sequence[Preparation] = (),
    subwords: Sequence[SubwordModel] | None = None,
) -> Preprocessing:
    """Turn the arguments of ``syncattn-preprocess`` into settings; raise `DataError` if bad."""
    if args.source_lang is None or (args.target_lang is None and not args.only_source):
        raise DataError("--source-lang and --target-lang are needed to find the files")
    languages = args.source_lang, str(args.target_lang)  # fairseq writes en-None, too
    start = None if args.start is None else Path(args.start)
    if start is not None:
        _use_dictionaries(args, start, languages, subwords)
        subwords = find_subwords([start], *languages)
    opened = zip(languages, subwords or (), strict=False)
    models = {language: model.open() for language, model in opened}
    schemes = {} if start is None else stored_schemes(start)
    raw = {
        name: RawPieces(model.processor)
        for name, model in models.items()
        if isinstance(model, Pieces)
        and (isinstance(model, RawPieces) or is_raw(schemes.get(name, "")))
    }
    known = dict(zip(languages, preparations, strict=bool(preparations)))
    if raw and known:
        raise DataError(
            "--words-by: the subword model splits raw sentences, not words; leave the option "
            "out, or give a subword model of words"
        )
    tables = [list_pieces(model.processor) for model in raw.values()]
    if args.joined_dictionary and tables[1:] and tables[0] != tables[1]:
        raise DataError("--joined-dictionary: give one subword model for both languages")
    return Preprocessing(
        languages=languages,
        only_source=args.only_source,
        texts={split: getattr(args, f"{split}pref") for split in SPLITS},
        heads={split: getattr(args, f"{split}heads") for split in SPLITS},
        dictionaries=(args.srcdict, args.tgtdict),
        label_dictionaries=(args.srclabeldict, args.tgtlabeldict),
        destination=Path(args.destdir),
        scheme=args.subword_marks,
        on_bad_parse=args.on_bad_parse,
        min_parsed=args.min_parsed,
        add=args.add or (),
        preparations=known | {name: Preparation("raw", name) for name in raw},
        subwords=subwords,
        raw_models=raw,
        raw=args.raw,
        fairseq=args,
    )


def _use_dictionaries(
    args: argparse.Namespace,
    start: Path,
    languages: tuple[str, str],
    subwords: Sequence[SubwordModel] | None,
) -> None:
    """Make fairseq use the dictionaries of the initial model of training."""
    for name in ("srcdict", "tgtdict", "joined_dictionary", "subword_marks", "subwords"):
        if subwords if name == "subwords" else getattr(args, name):
            raise DataError(
                f"--start: the dictionaries and subword models of {start} are used; leave out "
                f"--{name.replace('_', '-')}"
            )
    for preparation in stored_preparations(start).values():
        if preparation.first:
            raise DataError(
                f"--start: the model of {start} reads the token {preparation.first} first, for "
                "which parses have no head; such a model can only translate and be exported, so "
                "give its dictionaries to fairseq-preprocess with --srcdict and --tgtdict"
            )
    sides = ("srcdict",) if args.only_source else ("srcdict", "tgtdict")
    for option, language in zip(sides, languages, strict=False):
        path = start / f"dict.{language}.txt"
        if not path.is_file():
            raise DataError(
                f"{path}: no such file; give a folder that syncattn-import has written for "
                f"{language}"
            )
        setattr(args, option, str(path))


@dataclass(frozen=True)
class SplitText:
    """The text of a language in a split, with the path prefix of its heads and labels."""

    split: str
    language: str
    text: Path
    prefix: str
    words: Path | None

    @property
    def links(self) -> Path:
        """The path of the word alignments of the split; the file may not exist."""
        return find_text(Path(f"{self.prefix}.{LINKS}"))

    def values(self, kind: str) -> Path:
        """Return the path of the text's heads or labels; the file may be compressed or missing."""
        return find_text(Path(f"{self.prefix}.{kind}.{self.language}"))


def _list_parts(plan: Preprocessing) -> Iterator[SplitText]:
    """Yield the texts to be binarised by fairseq, in fairseq's order and with fairseq's names."""
    for split in SPLITS:
        texts, heads = plan.texts[split], plan.heads[split]
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
            names = [f"{head}.{kind}.{lang}" for kind in KINDS for lang in plan.written]
            names += [f"{head}.{LINKS}"]
            if heads and not any(find_text(Path(name)).exists() for name in names):
                raise DataError(f"{' or '.join(names)}: no such file; see --{split}heads")
            for language in plan.written:
                path = find_text(Path(f"{text}.{language}"))
                words = find_text(Path(f"{head}.{language}"))
                if not path.exists():
                    raise DataError(f"{path}: no such file; check --{split}pref")
                _check_plain(path)
                _check_lines(path)
                compare = words.exists() and not words.samefile(path)
                yield SplitText(
                    f"{split}{number or ''}", language, path, head, words if compare else None
                )


def _check_plain(path: Path) -> None:
    if not is_plain(path):
        raise DataError(
            f"{path}: is compressed, a pipe, or begins with a byte order mark, which fairseq "
            "would read as text; save the text as plain UTF-8 first"
        )


def _check_lines(path: Path) -> None:
    """Refuse lines and words that fairseq reads otherwise; print how many lines have <unk>."""
    unknown = 0
    with open_text(path, errors="surrogateescape") as file:
        for number, line in enumerate(iter(partial(file.readline, MAX_LINE), ""), 1):
            text = line.removesuffix("\n").removesuffix("\r")
            if text.isprintable() and "<" not in text:
                continue  # there is nothing to see, and looking for it takes longer
            words = text.split() if "<" in text else ()
            fault = ""
            if odd := _READ_OTHERWISE.search(text):
                fault = (
                    f"the character U+{ord(odd[0]):04X} inside it, where fairseq would end the "
                    "line or the word; remove the character"
                )
            elif text.strip() and not clean_line(text):
                fault = "only invisible characters; make the line empty"
            elif symbols := SYMBOLS.intersection(words):
                fault = (
                    f"the word {min(symbols)}, which is a special symbol of fairseq; write the "
                    "word differently"
                )
            if fault:
                raise DataError(f"{path}:{number}: the line has {fault}")
            unknown += UNKNOWN in words
    if unknown:
        print(f"{path}: {unknown} lines have {UNKNOWN}, which fairseq reads as an unknown word")


def _detect_scheme(paths: Sequence[Path]) -> str:
    # Marks are found between spaces, as which a block's line ends do.
    blocks = (" ".join(lines) for path in paths for (lines,) in read_blocks(path))
    schemes = {*find_schemes(blocks)}
    if len(schemes) > 1:
        raise DataError(
            f"{paths[0]}: text has both '@@ ' and U+2581; choose one with --subword-marks"
        )
    return schemes.pop() if schemes else "none"


#: A text, and the kind of its annotation to binarise: heads or labels.
Annotation = tuple[SplitText, str]


def _list_annotations(
    plan: Preprocessing, parts: Sequence[SplitText], linked: Sequence[SplitText]
) -> list[Annotation]:
    """List the heads and labels to binarise; raise `DataError` if a requested file is missing."""
    found = [(part, kind) for kind in KINDS for part in parts if part.values(kind).exists()]
    if plan.add:
        found = [(part, kind) for part, kind in found if f"{kind}.{part.language}" in plan.add]
        names = {f"{kind}.{part.language}" for part, kind in found}
        if linked:
            names.add(LINKS)
        if missing := {*plan.add} - names:
            raise DataError(f"--add {min(missing)}: no such file; check --trainheads")
    if not found and not linked and not plan.raw_models:
        sought = ", ".join(str(part.values(kind)) for part in parts for kind in KINDS)
        raise DataError(
            "found no heads and no labels; looked for "
            f"{sought or 'none, as --trainpref is missing'}; for text without parses, use "
            "fairseq-preprocess"
        )
    return found


def _check_sides(parts: Sequence[SplitText]) -> None:
    """Raise `DataError` if the languages of a split have different numbers of lines."""
    for split in dict.fromkeys(part.split for part in parts):
        count_lines(*(part.text for part in parts if part.split == split))


def _examine(plan: Preprocessing, parts: Sequence[SplitText]) -> None:
    """Print the faults found in the texts by :mod:`.doctor`, as warnings."""
    sides: dict[str, list[Path]] = {}
    for part in parts:
        sides.setdefault(part.split, []).append(part.text)
    if not plan.only_source:
        texts = [open_files(split, source, target) for split, (source, target) in sides.items()]
        for finding in examine(texts, plan.languages):
            if finding.is_notable:
                print(f"warning: {finding}", file=sys.stderr)


def _choose_schemes(plan: Preprocessing, used: Sequence[SplitText]) -> dict[str, str]:
    """Return the scheme of each language's subword marks: as given, stored or detected."""
    schemes = stored_schemes(plan.destination)
    for language in plan.raw_models:
        splitter, lack = find_splitter(language)
        schemes[language] = f"{RAW}{splitter}"
        if lack:
            print(f"note: {lack}", file=sys.stderr)
    for language in dict.fromkeys(part.language for part in used):
        if plan.scheme:
            schemes[language] = plan.scheme
        elif language not in schemes:
            texts = dict.fromkeys(part.text for part in used if part.language == language)
            schemes[language] = _detect_scheme(list(texts))
            print(f"subwords of {language}: {schemes[language]}")
    return schemes


def _say_what_lacks(parts: Sequence[SplitText], annotations: Sequence[Annotation]) -> None:
    """Print which texts lack heads or labels that other texts have."""
    for kind in dict.fromkeys(kind for _, kind in annotations):
        for part in parts:
            if (part, kind) not in annotations:
                name = part.values(kind)
                print(
                    f"{part.split} {part.language}: binarised without {kind}, since there is no "
                    f"{name}"
                )


def _describe(plan: Preprocessing, part: SplitText, kind: str, scheme: str) -> AnnotatedText:
    """Return the `AnnotatedText` of a text with its heads or labels."""
    spans, heads = part.values(SPANS), part.values(HEADS)
    reads = is_raw(scheme)
    return AnnotatedText(
        part.text,
        kind,
        part.values(kind),
        scheme,
        part.words,
        plan.on_bad_parse,
        plan.min_parsed,
        spans if reads and spans.exists() else None,
        heads if reads and kind == LABELS and heads.exists() else None,
    )


def _describe_side(part: SplitText, scheme: str) -> LinkedText:
    """Return the `LinkedText` of one side of word-aligned texts."""
    spans = part.values(SPANS)
    if not is_raw(scheme) or not spans.exists():
        return LinkedText(part.text, scheme)
    return LinkedText(part.text, scheme, part.words, spans)


def _load_label_dictionaries(
    plan: Preprocessing, labelled: Sequence[SplitText]
) -> dict[str, Dictionary]:
    dictionaries = {}
    options = zip(("srclabeldict", "tgtlabeldict"), plan.languages, strict=True)
    for (option, language), reused in zip(options, plan.label_dictionaries, strict=True):
        first = next((part for part in labelled if part.language == language), None)
        new = locate_dictionary(plan.destination, language)
        if reused and first is None:
            raise DataError(f"--{option}: found no labels for {language}")
        if reused:
            dictionaries[language] = load_unambiguous(Path(reused))
        elif first and plan.add and new.exists():  # that of the labels that are there
            dictionaries[language] = load_dictionary(new)
        elif first and first.split != "train":
            raise DataError(
                f"{first.values(LABELS)}: these labels need a dictionary; name the dictionary "
                f"with --{option}, or give the labels of the training text with --trainpref or "
                "--trainheads"
            )
        elif first and new.exists():
            raise DataError(
                f"{new}: exists already; reuse this dictionary with --{option}, choose another "
                "--destdir or remove the dictionary; to add parses to texts that are binarised "
                f"already, use --add heads.{language} labels.{language}"
            )
    return dictionaries


def preprocess_texts(plan: Preprocessing) -> None:
    """Binarise texts and parses; if they have a fault, raise `DataError` and write nothing."""
    for path in filter(None, plan.dictionaries):
        _check_plain(Path(path))
        load_unambiguous(Path(path))  # or says what is wrong with it
    _check_preparations(plan)
    if (plan.preparations or plan.scheme) and not any(plan.texts.values()):
        _add_record(plan)
        return
    parts = list(_list_parts(plan))
    if plan.fairseq.dict_only:
        with filling(plan.destination) as folder:
            _refuse_dictionaries(plan)
            _binarise_texts(plan, folder)
            drop_same_dictionaries(folder, plan.destination, plan.languages, ())
            _check_outputs(plan, folder)
        return
    if plan.fairseq.dataset_impl != "mmap":
        raise DataError("--dataset-impl: heads and labels need the value mmap, the default")
    if plan.fairseq.workers < 1:
        raise DataError(f"--workers {plan.fairseq.workers}: give 1 or more")
    linked = [part for part in parts if part.links.exists() and not plan.only_source]
    linked = linked if LINKS in (plan.add or (LINKS,)) else []
    annotations = _list_annotations(plan, parts, linked)
    labelled = [part for part, kind in annotations if kind == LABELS]
    dictionaries = _load_label_dictionaries(plan, labelled)
    _check_sides(parts)
    schemes = _choose_schemes(plan, [*(part for part, _ in annotations), *linked])
    if not plan.add:
        _say_what_lacks(parts, annotations)
    sources = [
        (part, _describe(plan, part, kind, schemes[part.language])) for part, kind in annotations
    ]
    _check_record_of_texts(plan, parts, schemes)
    anew = not plan.add and any(part.split == "train" for part in parts)
    with filling(plan.destination) as folder:
        if not plan.add:
            _refuse_dictionaries(plan)
        if not anew:
            check_earlier(plan.destination, plan.languages, plan.subwords, plan.preparations)
        # All that may have faults comes before the text, which takes longer.
        made = [_binarise_values(plan, folder, *source, dictionaries) for source in sources]
        datasets = {}
        for one, other in zip(linked[::2], linked[1::2], strict=True):
            datasets[one] = folder / f"{one.split}.{LINKS}.{'-'.join(plan.languages)}"
            sides = [_describe_side(part, schemes[part.language]) for part in (one, other)]
            binarise_links(one.links, sides, datasets[one])
        if not plan.add:
            _binarise_texts(plan, folder)
        store_schemes(folder, schemes)
        _store_preparations(plan, folder)
        for language, dictionary in dictionaries.items():
            save_dictionary(dictionary, locate_dictionary(folder, language))
        for (part, source), (marks, counts) in zip(sources, made, strict=True):
            text = plan.locate(plan.destination if plan.add else folder, part)
            check_lengths(source, marks, text)
            store_checksums(str(text), str(marks))
            print(f"{plan.destination / marks.name}: {counts}")
        for one, dataset in datasets.items():
            print(f"{plan.destination / dataset.name}: the links of {one.links}")
        written = [plan.locate(plan.destination, part) for part in parts]
        if not plan.add:
            drop_same_dictionaries(folder, plan.destination, plan.languages, written)
        read = [path for _, source in sources for path in (source.text, *source.list_files())]
        read += [part.links for part in linked]
        _check_outputs(plan, folder, read)
        gone = list_earlier(folder, plan.destination, plan.languages, written, anew)
        gone = [] if plan.add else gone
        store_fingerprint(folder, plan.destination, plan.languages, gone)
        for earlier in gone:
            earlier.unlink(missing_ok=True)
        if not plan.add:
            print(f"{plan.destination}: the binarised text and its dictionaries")
    if not plan.add:
        _examine(plan, parts)


def _add_record(plan: Preprocessing) -> None:
    """Record preparation and subword marks of a text already binarised in a folder."""
    if not plan.destination.is_dir():
        raise DataError(f"{plan.destination}: no such folder; binarise the text first")
    with filling(plan.destination) as folder:
        check_earlier(plan.destination, plan.languages)
        schemes = stored_schemes(plan.destination)
        if plan.scheme or plan.raw_models:
            said = dict.fromkeys(plan.languages, plan.scheme) if plan.scheme else {}
            schemes = _choose_schemes(plan, ()) | said
            store_schemes(folder, schemes)
        for language in plan.languages:
            rows = read_rows(plan.destination, plan.languages, language)
            _check_record(plan, language, rows, schemes, plan.destination)
        _store_preparations(plan, folder)
        _check_outputs(plan, folder)
        gone = [
            plan.destination / name_vocabulary(language)
            for model, language in zip(plan.subwords or (), plan.languages, strict=False)
            if model.vocabulary is None
        ]
        store_fingerprint(folder, plan.destination, plan.languages, gone)
        for earlier in gone:
            earlier.unlink(missing_ok=True)


def _check_outputs(plan: Preprocessing, folder: Path, read: Sequence[Path] = ()) -> None:
    """Check that the files of a folder can move to the destination without harming an input."""
    named: list[Path] = [*read]
    for model in plan.subwords or ():
        named += [Path(path) for path in (model.path, model.vocabulary) if path is not None]
    named += map(Path, filter(None, (*plan.dictionaries, *plan.label_dictionaries)))
    check_files(named, outputs=[plan.destination / path.name for path in folder.iterdir()])
    check_places(folder, plan.destination)


def _check_record_of_texts(
    plan: Preprocessing, parts: Sequence[SplitText], schemes: Mapping[str, str]
) -> None:
    """Check that the subword models and preparations fit the texts to binarise."""
    for language in plan.written:
        texts = {part.split: part.text for part in parts if part.language == language}
        split = next((split for split in SAMPLED if split in texts), None)
        if split is not None:
            rows = [line.split() for line in islice(read_lines(texts[split]), SAMPLE)]
            _check_record(plan, language, rows, schemes, texts[split])


def _check_record(
    plan: Preprocessing,
    language: str,
    rows: Sequence[Sequence[str]],
    schemes: Mapping[str, str],
    where: Path,
) -> None:
    """Check that a language's subword model and preparation fit a sample of the text."""
    if not rows:
        return
    scheme = schemes.get(language) or detect_scheme([*{piece for row in rows for piece in row}])
    side = plan.languages.index(language)
    model = plan.subwords[side] if plan.subwords else None
    check_record(model, plan.preparations.get(language), rows, scheme, where)


def _binarise_values(
    plan: Preprocessing,
    folder: Path,
    part: SplitText,
    source: AnnotatedText,
    dictionaries: dict[str, Dictionary],
) -> tuple[Path, TextCounts]:
    """Binarise heads or labels; build the label dictionary from a language's first labels."""
    dictionary = None
    if source.kind == LABELS:
        if part.language not in dictionaries:  # labels of the training text
            labels = count_values(source, plan.fairseq.workers)
            dictionaries[part.language] = build_dictionary(labels)
        dictionary = dictionaries[part.language]
    marks = plan.locate(folder, part, source.kind)
    return marks, binarise(source, marks, dictionary, plan.fairseq.workers)


def _check_preparations(plan: Preprocessing) -> None:
    """Open the subword models; print the BLEU that the target's tokenizer and detokeniser leave."""
    check_languages(plan.preparations, plan.languages, "--words-by")
    for model in plan.subwords or ():
        model.open()
    if plan.raw and plan.languages[1] in plan.preparations:
        path = find_text(Path(f"{plan.raw}.{plan.languages[1]}"))
        bleu = score_round_trip(plan.preparations[plan.languages[1]], [*read_lines(path)])
        print(f"{path}: {bleu:.2f} BLEU after tokenizer and detokeniser: no system gets more")


def _store_preparations(plan: Preprocessing, folder: Path) -> None:
    if plan.preparations:
        store_preparations(folder, plan.preparations)
        print(f"{plan.destination / NAME}: how the text was prepared")
    if plan.subwords:
        store_subwords(folder, plan.languages, plan.subwords)


def _binarise_texts(plan: Preprocessing, folder: Path) -> None:
    """Binarise the texts into a folder, with dictionaries of all pieces for raw-text models.

    Others are made of the texts; of bytes, and of pieces that are only parts of others, few occur
    there.
    """
    with TemporaryDirectory() as made:
        changes = {"destdir": str(folder)}
        for option, language in zip(("srcdict", "tgtdict"), plan.languages, strict=True):
            joined = option == "tgtdict" and plan.fairseq.joined_dictionary
            if language in plan.raw_models and not getattr(plan.fairseq, option) and not joined:
                path = Path(made, f"{option}.txt")
                pieces = list_pieces(plan.raw_models[language].processor)
                path.write_text("".join(f"{piece} 1\n" for piece in pieces), encoding="utf-8")
                changes[option] = str(path)
        _run_fairseq(argparse.Namespace(**vars(plan.fairseq) | changes))


def _run_fairseq(args: argparse.Namespace) -> None:
    handlers = [*preprocess.logger.handlers]
    preprocess.logger.addFilter(_names_no_folder)
    try:
        with encoding_blocks():
            preprocess.main(args)
    except AssertionError as error:
        raise DataError(str(error)) from None
    finally:  # fairseq leaves its log open, where it was before it moved
        preprocess.logger.removeFilter(_names_no_folder)
        for handler in {*preprocess.logger.handlers} - {*handlers}:
            preprocess.logger.removeHandler(handler)
            handler.close()


def _names_no_folder(record: logging.LogRecord) -> bool:
    """Return False for fairseq's message about the temporary folder, to drop the message."""
    return not record.getMessage().startswith("Wrote preprocessed data to")


def _refuse_dictionaries(plan: Preprocessing) -> None:
    """Raise `DataError` if fairseq would replace an existing dictionary."""
    for reused, language in zip(plan.dictionaries, plan.languages, strict=True):
        path = plan.destination / f"dict.{language}.txt"
        if path.exists() and not reused and language in plan.written:
            raise DataError(f"{path}: exists already; choose another --destdir or remove it")
