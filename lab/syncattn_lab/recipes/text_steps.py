"""The steps of a recipe that turn archives into texts, subwords and parses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.parallel_text import sides
from syncattn_fairseq.data.parses import SPANS, SPLITS
from syncattn_fairseq.parsing.stanza_parser import ALIASES

from ..synthetic.generated_corpus import list_written
from .corpus_facts import Corpus, tokenise_by
from .corpus_texts import UNPARSED, Archive
from .downloads import SUMS
from .places import (
    DOWNLOAD,
    MULTI_TASK,
    PIECES,
    RAW,
    TOKENS,
    WORDS,
    examined,
    folder,
    gold_alignments,
    list_texts,
    subword_models,
)
from .stages import Step, command, read_options, read_pipeline, run_module, split_words
from .start import locate_start
from .start_folder import CHECKPOINT, OPTIONS, is_imported
from .text_formats import list_archives

#: Processors of Stanza whose models are downloaded.
PROCESSORS = "pos,lemma,depparse"
#: Processors of Stanza that find the words of raw sentences.
SPLITTING = "tokenize,mwt"


def generate(corpus: Corpus) -> list[Step]:
    """Return the step that generates the texts and annotations of a built-in corpus."""
    words = folder(corpus, WORDS)
    made = [words / name for name in list_written(SPLITS)]
    return [run_module("generate", words, **corpus.generated).declare(makes=made)]


def import_start(corpus: Corpus) -> list[Step]:
    """Return the steps that import the published model to start from; empty if not needed."""
    if corpus.start is None or is_imported(corpus.start):
        return []
    made = locate_start(corpus)
    step = command(
        "syncattn-import",
        corpus.start,
        output=made,
        source_lang=corpus.source,
        target_lang=corpus.target,
    )
    files = [made / CHECKPOINT, made / OPTIONS, *subword_models(corpus)]
    files += [made / f"dict.{language}.txt" for language in corpus.languages]
    return [
        command("mkdir -p", made.parent),
        command("rm -rf --", made),
        step.declare([Path(corpus.start) / "*"], files),
    ]


def download_models(corpus: Corpus, language: str) -> list[Step]:
    """Return the step that downloads Stanza's models of a language; empty if not needed."""
    if corpus.find_parsed(language, "train"):
        return []
    given = read_options(corpus.parses[language])
    own = os.environ.get("STANZA_DIR") or "--stanza-dir" in given
    if given.get("--parser") != "stanza" or own:
        return []
    needed = f"{SPLITTING},{PROCESSORS}" if corpus.subwords.raw else PROCESSORS
    code = str(given.get("--lang", language))
    models = f"import stanza; stanza.download({ALIASES.get(code, code)!r}, processors={needed!r})"
    return [command("python -c", models)]


def download(corpus: Corpus) -> list[Step]:
    """Return the steps to download all archives except the user's own copies."""
    if corpus.here and corpus.here.path:
        return []
    if corpus.here and not corpus.archives:
        raise DataError(f"{corpus.here.variable}: set this variable to the folder of the texts")
    return [_fetch(corpus, archive) for archive in corpus.archives if not archive.own]


def _fetch(corpus: Corpus, archive: Archive) -> Step:
    """Return the step to download an archive, or to check for the file of a licensed archive."""
    directory = folder(corpus, DOWNLOAD)
    path = directory / archive.name
    if archive.licence:
        how = archive.licence
        if archive.variable:
            how += f"; or set {archive.variable} to where you have it, packed or not"
        asking = run_module("fetch", archive.name, directory=directory, licence=how)
        return asking.declare(reads=[path])
    sums = [] if archive.sha256 or archive.md5 else [directory / SUMS]
    fetching = run_module(
        "fetch",
        archive.url,
        directory=directory,
        name=archive.file,
        sha256=archive.sha256,
        size=archive.size,
        md5=archive.md5,
    )
    return fetching.declare(makes=[path, *sums])


def collect(corpus: Corpus) -> list[Step]:
    """Return the steps that extract texts, and the test text's gold alignments, from archives."""
    steps = [command("mkdir -p", folder(corpus, RAW))]
    for split in corpus.splits:
        if getattr(corpus, split):
            links = corpus.gold_alignments if split == "test" else None
            steps.append(_collect(corpus, RAW, split, corpus.list_texts(split), links))
    return steps


def _collect(
    corpus: Corpus,
    part: str,
    name: str,
    texts: Sequence[str],
    links: str | None = None,
    keep_empty: bool = False,
) -> Step:
    """Return the step that extracts texts from archives.

    Args:
        corpus: the corpus.
        part: the subfolder of the corpus's folder for the extracted text.
        name: the name of the extracted text there, without language; it begins with the split.
        texts: the texts to extract, each ``FORMAT=ADDRESS``.
        links: the address of the text's word alignments; None: there are none.
        keep_empty: whether pairs without words are kept.
    """
    own = corpus.here.path if corpus.here else None
    archives, output = own or folder(corpus, DOWNLOAD), folder(corpus, part) / name
    addresses = [text.partition("=")[2] for text in texts]
    made = sides(output, corpus.languages)
    located = corpus.locate(links) if links else None
    if located:
        addresses.append(located)
        made.append(gold_alignments(corpus))
    step = run_module(
        "collect",
        *texts,
        archives=archives,
        languages=[*corpus.languages],
        output=output,
        first=corpus.first if name.startswith("train") else None,
        keep_empty=keep_empty,
        alignments=located,
    )
    return step.declare(list_archives(archives, addresses, corpus.languages), made)


def tokenise(corpus: Corpus, cores: int) -> list[Step]:
    """Return the steps that split texts into words, with ``cores`` processes each.

    Raw sentences are copied, or normalised as the model to start from needs them.
    """
    if corpus.subwords.raw and corpus.start is None:
        return _copy_sentences(corpus)
    steps = [command("mkdir -p", folder(corpus, TOKENS), folder(corpus, WORDS))]
    for split in corpus.splits:
        if not getattr(corpus, split):
            continue
        trains = split in ("train", UNPARSED)
        part = TOKENS if trains and corpus.clean is not None else WORDS
        raw, words = (list_texts(corpus, each, [split]) for each in (RAW, part))
        for language, source, output in zip(corpus.languages, raw, words, strict=True):
            normalise = "--normalise" if trains else ""
            if corpus.start is not None:
                model = subword_models(corpus)[corpus.languages.index(language)]
                reading = command(
                    "syncattn-bpe normalise", model=model, input=source, output=output
                )
                steps.append(reading.declare([model, source], [output]))
                continue
            tokeniser = split_by(corpus, language, cores, normalise)
            if split in corpus.tokenised:
                tokeniser = f"{tokeniser} --words" if "--lowercase" in tokeniser else "cat"
            steps.append(read_pipeline(tokeniser, source, output))
    return steps


def _copy_sentences(corpus: Corpus) -> list[Step]:
    """Return the steps that copy raw sentences to where their parses will be.

    Training sentences are left out if `clean` will write them.
    """
    words = folder(corpus, WORDS)
    splits = [split for split in corpus.splits if getattr(corpus, split)]
    trains = ("train", UNPARSED)
    copied = [split for split in splits if split not in trains or corpus.clean is None]
    texts, made = (list_texts(corpus, part, copied) for part in (RAW, WORDS))
    return [command("mkdir -p", words), command("cp", *texts, words).declare(texts, made)]


def split_by(corpus: Corpus, language: str, cores: int, normalise: str) -> str:
    """Return the command line that splits a language's text into words.

    Args:
        corpus: the corpus.
        language: one of its languages.
        cores: the number of processes.
        normalise: the text that replaces ``{normalise}`` in the command.
    """
    text = corpus.words.get(language, tokenise_by(corpus.folder, language))
    return text.replace("{cores}", str(cores)).replace("{normalise}", normalise)


def clean(corpus: Corpus) -> list[Step]:
    """Return the steps that remove bad training pairs and hold out validation pairs."""
    if corpus.clean is None:
        return []
    part = RAW if corpus.subwords.raw and corpus.start is None else TOKENS
    words, tokens = folder(corpus, WORDS), folder(corpus, part)
    how, excluded = dict(corpus.clean), list[Path]()
    if "exclude" in how:
        how["exclude"] = words / str(how["exclude"])
        excluded = sides(how["exclude"], corpus.languages)
    holds_out = bool(corpus.every or corpus.last)
    made = ["train", *(["valid"] if holds_out else [])]
    step = command(
        "syncattn-clean",
        languages=[*corpus.languages],
        input=tokens / "train",
        output=words / "train",
        raw=corpus.subwords.raw,
        **how,
        every=corpus.every,
        last=corpus.last,
        held_out=words / "valid" if holds_out else None,
    )
    read = [*list_texts(corpus, part, ["train"]), *excluded]
    steps = [step.declare(read, list_texts(corpus, WORDS, made))]
    if corpus.unparsed:
        step = command(
            "syncattn-clean",
            languages=[*corpus.languages],
            input=tokens / UNPARSED,
            output=words / UNPARSED,
            raw=corpus.subwords.raw,
            **how,
        )
        read = [*list_texts(corpus, part, [UNPARSED]), *excluded]
        steps.append(step.declare(read, list_texts(corpus, WORDS, [UNPARSED])))
    return steps


def examine(corpus: Corpus) -> list[Step]:
    """Return the step that finds faults in the prepared text."""
    step = run_module(
        "examine",
        folder(corpus, WORDS),
        languages=[*corpus.languages],
        output=examined(corpus),
    )
    return [step.declare(list_texts(corpus, WORDS), [examined(corpus)])]


def split_subwords(corpus: Corpus, cores: int) -> list[Step]:
    """Return the steps that learn subwords from the training text and split all texts.

    Texts without SentencePiece are copied: they are published in subwords, or stay words.
    """
    pieces = folder(corpus, PIECES)
    steps = [command("mkdir -p", pieces)]
    if corpus.subwords.scheme != "sentencepiece":
        part = WORDS if corpus.subwords.unit == "word" else RAW
        whole, copies = (list_texts(corpus, each, corpus.splits) for each in (part, PIECES))
        return [*steps, command("cp", *whole, pieces).declare(whole, copies)]
    alone = [[language] for language in corpus.languages]
    groups = [[*corpus.languages]] if corpus.subwords.joint else alone
    for model, languages in zip(subword_models(corpus), groups, strict=True):
        learnt = list_texts(corpus, WORDS, ["train"], languages)
        parts = (WORDS, PIECES)
        texts, outputs = (list_texts(corpus, each, corpus.splits, languages) for each in parts)
        applying = command(
            "syncattn-bpe apply", model=model, workers=cores, input=texts, output=outputs
        )
        applying = applying.declare([model, *texts], outputs)
        if corpus.start is not None:
            steps.append(applying)
            continue
        learning = command(
            "syncattn-bpe learn",
            raw=[*languages] if corpus.subwords.raw else None,
            vocab_size=corpus.subwords.size,
            model=model.with_suffix(""),
            input=learnt,
        )
        steps += [learning.declare(learnt, [model]), applying]
    return steps


def collect_parses(corpus: Corpus, needs: set[str]) -> list[Step]:
    """Return the steps that extract the dependency heads and labels published with the text."""
    kinds = ["heads"]
    if any(need.startswith("labels") for need in needs) or MULTI_TASK in needs:
        kinds.append("labels")
    words, used = folder(corpus, WORDS), corpus.list_treebanks()
    of_both = len(used) == len(corpus.languages)
    part = WORDS if of_both else f"{WORDS}/treebank"
    steps = [] if of_both or not used else [command("mkdir -p", folder(corpus, part))]
    for kind, split in product(kinds, SPLITS):
        texts, name = corpus.list_parses(kind, split), f"{split}.{kind}"
        if not texts:
            continue
        steps.append(_collect(corpus, part, name, texts, keep_empty=True))
        for side in [] if of_both else used:  # a parser writes the other language's
            found = folder(corpus, part) / f"{name}.{side}"
            steps.append(command("cp", found, words).declare([found], [words / found.name]))
    return steps


def parse(corpus: Corpus, language: str, workers: int) -> list[Step]:
    """Return the steps that parse a language in ``workers`` processes, or use a user's parses."""
    words = folder(corpus, WORDS)
    parser = corpus.parses[language]
    heads = "parsed" if language in corpus.list_treebanks() else "heads"
    uses_stanza = read_options(parser).get("--parser") == "stanza"
    stanza = os.environ.get("STANZA_DIR") if uses_stanza else None
    more = split_words(os.environ.get("PARSE_OPTIONS", ""))
    steps = []
    for split in SPLITS:
        text, output = words / f"{split}.{language}", words / f"{split}.{heads}.{language}"
        labels = words / f"{split}.labels.{language}" if language == corpus.source else None
        spans = words / f"{split}.{SPANS}.{language}" if corpus.subwords.raw else None
        own = corpus.find_parsed(language, split)
        if corpus.here and own:
            made = [path for path in (output, labels, spans) if path]
            steps.append(command("rm -f", *made))
            step = command(
                "syncattn-parse",
                parsed=own,
                format=corpus.here.parsed_format,
                anywhere=True,
                input=text,
                output=output,
                labels=labels,
                spans=spans,
            )
            steps.append(step.declare([text, Path(own)], made))
            continue
        step = command(
            "syncattn-parse",
            *split_words(parser),
            stanza_dir=Path(stanza).absolute() if stanza else None,
            input=text,
            output=output,
            labels=labels,
            spans=spans,
            workers=workers,
        )
        made = [output, output.with_name(f"{output.name}.manifest.json")]
        made += [path for path in (labels, spans) if path]
        steps.append(step.adding(*more).declare([text], made))
    return steps
