"""From public archives to a binarised corpus with parses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli.tokenise import read_preparation
from syncattn_fairseq.data.parses import LINKS, SPLITS

from .corpus_facts import Archive, Corpus
from .stages import Stage, Step, command, read_options, read_pipeline, split_words

#: Parts of a corpus's folder.
DOWNLOAD, RAW, TOKENS, WORDS = "download", "raw", "tokens", "words"
PIECES, MIXED = "pieces", "mixed"
#: What Multi-Task needs: translations mixed with parses of the source.
MULTI_TASK = "multitask"

#: The stage that stores how the text was prepared.
RECORD = "binarise-record"
#: Processors of Stanza whose models are downloaded.
PROCESSORS = "pos,lemma,depparse"


def folder(corpus: Corpus, part: str) -> Path:
    """Return a folder of a corpus, relative to the folder that the recipe runs in."""
    return Path("corpora", corpus.name, part)


def data(corpus: Corpus) -> Path:
    """Return the folder of the binarised corpus."""
    return Path("data-bin", corpus.name)


def gold_alignments(corpus: Corpus) -> Path:
    """Return the file of the test set's gold alignments."""
    return folder(corpus, WORDS if corpus.generated else RAW) / "test.align"


def list_preparation(corpus: Corpus, cores: int, parsing: int, needs: set[str]) -> list[Stage]:
    """Return the stages up to the binarised corpus.

    The stages of the texts are the same for all systems. Parses have a stage for each language and
    each kind, each with its own ``.done`` file: a later system adds only what it needs
    (`.row_settings.list_needs`). So many processes run (cores), of which some parse.
    """
    compared = _steps(corpus, 1, 1, needs)  # settings do not depend on the machine
    return [
        Stage(
            name.partition("-")[0],
            _log(corpus, name),
            steps,
            title=f"{corpus.name}: {name.replace('-', ' ')}",
            settings={f"command {n}": str(step) for n, step in enumerate(compared[name][0], 1)},
            after=tuple(_log(corpus, other) for other in after),
            programs=_list_programs(corpus, name),
        )
        for name, (steps, after) in _steps(corpus, cores, parsing, needs).items()
    ]


def list_logs(corpus: Corpus, needs: set[str]) -> tuple[Path, ...]:
    """List the ``log`` of each stage that the training of a system with such needs reads."""
    names = [f"binarise-{kind.replace('.', '-', 1)}" for kind in sorted(needs)]
    return tuple(_log(corpus, name) for name in ("binarise", *names))


def _log(corpus: Corpus, stage: str) -> Path:
    return Path("logs", corpus.name, stage)


def _steps(
    corpus: Corpus, cores: int, parsing: int, needs: set[str]
) -> dict[str, tuple[list[Step], list[str]]]:
    """Return what each stage of the preparation does, and the stages whose results it reads."""
    parsed = [] if corpus.generated else list_parsed(corpus, needs)
    generate = command("syncattn-corpus", folder(corpus, WORDS), **corpus.generated)
    texts: dict[str, tuple[list[Step], list[str]]] = {"generate": ([generate], [])}
    if not corpus.generated:
        texts = {
            **{f"download-{x}": (_download_models(corpus, x), []) for x in parsed},
            "download": (_download(corpus), []),
            "collect": (_collect(corpus), ["download"]),
            "tokenise": (_tokenise(corpus, cores), ["collect"]),
            "clean": (_clean(corpus), ["tokenise"]),
        }
    words = [name for name, (steps, _) in texts.items() if steps][-1]
    source = f"parse-{corpus.source}"  # which Multi-Task parses
    stages = {
        **texts,
        "subwords": (_subwords(corpus, cores), [words]),
        "parse": (_collect_parses(corpus, needs) if needs else [], [words]),
        **{f"parse-{x}": (_parse(corpus, x, parsing), [words]) for x in parsed},
        "binarise": (_binarise(corpus, folder(corpus, PIECES), data(corpus), cores), ["subwords"]),
        RECORD: (_record(corpus), ["binarise"]),
    }
    for need in sorted(needs - {MULTI_TASK}):
        kind, _, language = need.partition(".")
        parses = ["parse", f"parse-{language}" if language else source]
        name = f"binarise-{kind}" + f"-{language}" * bool(language)
        stages[name] = ([_add_parses(corpus, need)], ["binarise", *parses])
    if MULTI_TASK in needs:
        stages[f"binarise-{MULTI_TASK}"] = (_mix(corpus, cores), ["subwords", "parse", source])
    stages = {name: stage for name, stage in stages.items() if stage[0]}
    return {n: (steps, [x for x in after if x in stages]) for n, (steps, after) in stages.items()}


def _list_programs(corpus: Corpus, stage: str) -> tuple[str, ...]:
    name, _, language = stage.partition("-")
    parser = read_options(corpus.parses.get(language, "")).get("--parser", "")
    uses_eda = name == "parse" and parser.partition(":")[0] == "eda"
    return ("kytea", "eda") if uses_eda else ()


def list_parsed(corpus: Corpus, needs: set[str]) -> list[str]:
    """Return the languages that a parser is needed for."""
    labelled = {f"labels.{corpus.source}", MULTI_TASK} & needs
    treebanks = corpus.list_treebanks()
    languages = {kind.partition(".")[2] for kind in needs - {MULTI_TASK, LINKS}} - {*treebanks}
    if labelled and not (corpus.source in treebanks and corpus.list_parses("labels", "train")):
        languages.add(corpus.source)
    return [language for language in corpus.languages if language in languages]


def _download_models(corpus: Corpus, language: str) -> list[Step]:
    given = read_options(corpus.parses[language])
    own = os.environ.get("STANZA_DIR") or "--stanza-dir" in given
    if given.get("--parser") != "stanza" or own:
        return []
    models = f"import stanza; stanza.download({language!r}, processors={PROCESSORS!r})"
    return [command("python", "-c", models)]


def _download(corpus: Corpus) -> list[Step]:
    if corpus.here and corpus.here.path:
        return []
    if corpus.here and not corpus.archives:
        raise DataError(f"{corpus.here.variable}: set this variable to the folder of the texts")
    return [_fetch(corpus, archive) for archive in corpus.archives if not archive.own]


def _fetch(corpus: Corpus, archive: Archive) -> Step:
    """Download an archive, or look whether one that needs a signed licence is there."""
    directory = folder(corpus, DOWNLOAD)
    if archive.licence:
        how = archive.licence
        if archive.variable:
            how += f"; or set {archive.variable} to where you have it, packed or not"
        return command("syncattn-fetch", archive.name, directory=directory, licence=how)
    return command(
        "syncattn-fetch",
        archive.url,
        directory=directory,
        name=archive.file,
        sha256=archive.sha256,
        size=archive.size,
        md5=archive.md5,
    )


def _collect(corpus: Corpus) -> list[Step]:
    raw = folder(corpus, RAW)
    steps = [command("mkdir", "-p", raw)]
    for split in SPLITS:
        if getattr(corpus, split):
            links = corpus.gold_alignments if split == "test" else None
            located = corpus.locate(links) if links else None
            texts = corpus.list_texts(split)
            steps.append(_collect_texts(corpus, raw / split, split, texts, alignments=located))
    return steps


def _collect_texts(
    corpus: Corpus, output: Path, split: str, texts: Sequence[str], **how: Any
) -> Step:
    own = corpus.here.path if corpus.here else None
    return command(
        "syncattn-collect",
        *texts,
        archives=own or folder(corpus, DOWNLOAD),
        languages=[*corpus.languages],
        output=output,
        first=corpus.first if split == "train" else None,
        **how,
    )


def _tokenise(corpus: Corpus, cores: int) -> list[Step]:
    raw = folder(corpus, RAW)
    steps = [command("mkdir", "-p", folder(corpus, TOKENS), folder(corpus, WORDS))]
    for split in SPLITS:
        if not getattr(corpus, split):
            continue
        part = TOKENS if split == "train" and corpus.clean is not None else WORDS
        for language in corpus.languages:
            name = f"{split}.{language}"
            normalise = "--normalise" if split == "train" else ""
            tokeniser = _split_by(corpus, language, cores, normalise)
            if split in corpus.tokenised:
                tokeniser = f"{tokeniser} --words" if "--lowercase" in tokeniser else "cat"
            steps.append(read_pipeline(tokeniser, raw / name, folder(corpus, part) / name))
    return steps


def _split_by(corpus: Corpus, language: str, cores: int, normalise: str) -> str:
    text = corpus.words.get(language, f"syncattn-tokenise --lang {language}")
    return text.replace("{cores}", str(cores)).replace("{normalise}", normalise)


def _clean(corpus: Corpus) -> list[Step]:
    if corpus.clean is None:
        return []
    words = folder(corpus, WORDS)
    held_out = words / "valid" if corpus.every or corpus.last else None
    how = dict(corpus.clean)
    if "exclude" in how:
        how["exclude"] = words / how["exclude"]
    return [
        command(
            "syncattn-clean",
            languages=[*corpus.languages],
            input=folder(corpus, TOKENS) / "train",
            output=words / "train",
            **how,
            every=corpus.every,
            last=corpus.last,
            held_out=held_out,
        )
    ]


def _subwords(corpus: Corpus, cores: int) -> list[Step]:
    words, pieces = folder(corpus, WORDS), folder(corpus, PIECES)
    steps = [command("mkdir", "-p", pieces)]
    if corpus.subwords.scheme != "sentencepiece":
        whole = WORDS if corpus.subwords.unit == "word" else RAW
        names = [f"{split}.{language}" for split in SPLITS for language in corpus.languages]
        texts = [folder(corpus, whole) / name for name in names]
        return [*steps, command("cp", *texts, pieces)]
    joint = corpus.subwords.joint
    for languages in [corpus.languages] if joint else [(side,) for side in corpus.languages]:
        model = _subword_model(corpus, languages[0])
        steps.append(
            command(
                *("syncattn-bpe", "learn"),
                vocab_size=corpus.subwords.size,
                model=model.with_suffix(""),
                input=[words / f"train.{language}" for language in languages],
            )
        )
        names = [f"{split}.{language}" for split in SPLITS for language in languages]
        steps.append(
            command(
                *("syncattn-bpe", "apply"),
                model=model,
                workers=cores,
                input=[words / name for name in names],
                output=[pieces / name for name in names],
            )
        )
    return steps


def _subword_model(corpus: Corpus, language: str) -> Path:
    suffix = "" if corpus.subwords.joint else f".{language}"
    return folder(corpus, PIECES) / f"bpe{suffix}.model"


def _collect_parses(corpus: Corpus, needs: set[str]) -> list[Step]:
    """Collect the heads and labels that came with the text, from the same lines as the text."""
    kinds = ["heads"]
    if any(need.startswith("labels") for need in needs) or MULTI_TASK in needs:
        kinds.append("labels")
    words, used = folder(corpus, WORDS), corpus.list_treebanks()
    part = words if len(used) == len(corpus.languages) else words / "treebank"
    steps = [] if part == words or not used else [command("mkdir", "-p", part)]
    for kind, split in product(kinds, SPLITS):
        if texts := corpus.list_parses(kind, split):
            name = f"{split}.{kind}"
            steps.append(_collect_texts(corpus, part / name, split, texts, keep_empty=True))
            if part != words:  # a parser writes the other language's
                steps += [command("cp", part / f"{name}.{side}", words) for side in used]
    return steps


def _parse(corpus: Corpus, language: str, workers: int) -> list[Step]:
    words = folder(corpus, WORDS)
    parser = corpus.parses[language]
    heads = "parsed" if language in corpus.list_treebanks() else "heads"
    uses_stanza = read_options(parser).get("--parser") == "stanza"
    stanza = os.environ.get("STANZA_DIR") if uses_stanza else None
    more = split_words(os.environ.get("PARSE_OPTIONS", ""))
    steps = []
    for split in SPLITS:
        labels = words / f"{split}.labels.{language}" if language == corpus.source else None
        parsing = command(
            *("syncattn-parse", *split_words(parser)),
            stanza_dir=Path(stanza).absolute() if stanza else None,
            input=words / f"{split}.{language}",
            output=words / f"{split}.{heads}.{language}",
            labels=labels,
            workers=workers,
        )
        steps.append(parsing.adding(*more))
    return steps


def _add_parses(corpus: Corpus, kind: str) -> Step:
    words = folder(corpus, WORDS)
    return command(
        "syncattn-preprocess",
        **_pair(corpus, data(corpus)),
        add=kind,
        **_name_texts(folder(corpus, PIECES)),
        **{f"{split}heads": words / split for split in SPLITS},
    )


def _pair(corpus: Corpus, destination: Path) -> dict[str, object]:
    """Return the options that name the languages and the folder of a binarised corpus."""
    languages = {"source_lang": corpus.source, "target_lang": corpus.target}
    return {**languages, "destdir": destination}


def _name_texts(texts: Path) -> dict[str, object]:
    """Return the options that name the texts to binarise, which are in one folder."""
    return {f"{split}pref": texts / split for split in SPLITS}


def _binarise(corpus: Corpus, texts: Path, destination: Path, cores: int) -> list[Step]:
    known_words = corpus.subwords.size if corpus.subwords.unit == "word" else None
    return [
        command("rm", "-rf", "--", destination),  # fairseq would keep an old dictionary
        command(
            "fairseq-preprocess",
            **_pair(corpus, destination),
            joined_dictionary=corpus.subwords.joined,
            nwordssrc=known_words,
            nwordstgt=known_words,
            workers=cores,
            **_name_texts(texts),
        ),
    ]


def _record(corpus: Corpus) -> list[Step]:
    """Store how the text was prepared, unless it came in words, or a command is not known."""
    commands = [_split_by(corpus, language, 1, "") for language in corpus.languages]
    try:
        for how in commands:
            read_preparation(how)
    except DataError:
        return []
    if "train" in corpus.tokenised:
        return []
    models = [_subword_model(corpus, language) for language in corpus.languages]
    in_words = corpus.generated or "test" in corpus.tokenised
    return [
        command(
            "syncattn-preprocess",
            **_pair(corpus, data(corpus)),
            words_by=commands,
            truecased=bool(corpus.generated),
            raw=None if in_words else folder(corpus, RAW) / "test",
            subwords=[*dict.fromkeys(models)] if corpus.subwords.scheme == "sentencepiece" else [],
        )
    ]


def _mix(corpus: Corpus, cores: int) -> list[Step]:
    words, pieces, mixed = (folder(corpus, part) for part in (WORDS, PIECES, MIXED))
    source, target = corpus.languages
    others = [split for split in SPLITS if split != "train"]
    parses = {"trees": words / f"train.trees.{source}"}
    if not corpus.generated:
        parses = {kind: words / f"train.{kind}.{source}" for kind in ("heads", "labels")}
    return [
        command("mkdir", "-p", mixed),
        command(
            *("syncattn-multitask", "mix"),
            source=pieces / f"train.{source}",
            target=pieces / f"train.{target}",
            **parses,
            output=[mixed / f"train.{source}", mixed / f"train.{target}"],
        ),
        command(
            *("syncattn-multitask", "tag"),
            input=[pieces / f"{split}.{source}" for split in others],
            output=[mixed / f"{split}.{source}" for split in others],
        ),
        command("cp", *(pieces / f"{split}.{target}" for split in others), mixed),
        *_binarise(corpus, mixed, Path(f"{data(corpus)}-{MULTI_TASK}"), cores),
    ]
