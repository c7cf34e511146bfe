"""From public archives to a binarised corpus with parses."""

from __future__ import annotations

from pathlib import Path

from ..parsing.eda import EDA, KYTEA
from .corpus import SPLITS, Corpus
from .stages import Stage, line, options, written

#: Parts of a corpus's folder.
DOWNLOAD, RAW, TOKENS, WORDS = "download", "raw", "tokens", "words"
PIECES, MIXED = "pieces", "mixed"

#: Its models are downloaded, unless the environment says where there are others.
STANZA = "--parser stanza"
PROCESSORS = "pos,lemma,depparse"
MODELS = '${STANZA_DIR:+--stanza-dir "$STANZA_DIR"}'


def folder(corpus: Corpus, part: str) -> Path:
    """Return a folder of a corpus, relative to the folder that the recipe runs in."""
    return Path("corpora", corpus.name, part)


def data(corpus: Corpus) -> Path:
    """Return where the binarised corpus is."""
    return Path("data-bin", corpus.name)


def gold(corpus: Corpus) -> Path:
    """Return where the gold alignments of the test set are."""
    return folder(corpus, RAW) / "test.align"


def preparation(corpus: Corpus, cores: int, parsers: int) -> list[Stage]:
    """Return the stages up to the binarised corpus.

    Args:
        corpus: what to prepare.
        cores: number of processes that work side by side.
        parsers: the same of those that parse, which may share GPUs.
    """
    stages = {
        "download": _download(corpus),
        "collect": _collect(corpus),
        "tokenise": _tokenise(corpus, cores),
        "clean": _clean(corpus),
        "subwords": _subwords(corpus),
        "parse": _parse(corpus, parsers),
        "binarise": _binarise(corpus, cores),
    }
    logs = Path("logs", corpus.name)
    return [Stage(name, logs / name, commands) for name, commands in stages.items() if commands]


def _needed(corpus: Corpus) -> list[str]:
    """Return what stops at once where a program is missing that is not ours."""
    tokenisers, parsers = " ".join(corpus.words.values()), " ".join(corpus.parses.values())
    programs = {"kytea": KYTEA} if "kytea" in tokenisers else {}
    commands = []
    if "--parser eda" in parsers:
        programs["eda"] = EDA
        commands = [': "${EDA_MODEL:?set it to the file of the model of EDA}"']
    for program, place in programs.items():
        advice = line("echo", f"{program}: no such program; install {place}")
        commands.append(f"command -v {program} > /dev/null || {{ {advice} >&2; exit 1; }}")
    return commands


def _download(corpus: Corpus) -> list[str]:
    commands = _needed(corpus)
    for archive in corpus.archives:
        facts = {"name": archive.file, "sha256": archive.sha256, "size": archive.size}
        if archive.licence:
            facts = {"licence": archive.licence}
        given = {name: value for name, value in facts.items() if value is not None}
        where = ("--directory", folder(corpus, DOWNLOAD))
        commands.append(
            line("syncattn-fetch", *where, *options(given), archive.url or archive.name)
        )
    for language, parser in corpus.parses.items():
        if STANZA in parser:
            models = f"import stanza; stanza.download({language!r}, processors={PROCESSORS!r})"
            commands.append('[ -n "${STANZA_DIR:-}" ] || ' + line("python", "-c", models))
    return commands


def _collect(corpus: Corpus) -> list[str]:
    archives, raw = folder(corpus, DOWNLOAD), folder(corpus, RAW)
    commands = [f"mkdir -p {raw}"]
    for split in SPLITS:
        if places := getattr(corpus, split):
            first = ("--first", corpus.first) if corpus.first and split == "train" else ()
            commands.append(
                line(
                    *("syncattn-collect", "--archives", archives, "--languages", *corpus.languages),
                    *("--output", raw / split, *first, *places),
                )
            )
    if corpus.gold_alignments:
        archive, member = corpus.gold_alignments.split("!")
        links = line("tar", "-xOzf", archives / archive, member)
        commands.append(written(f"{links} | sed '/^\\s*$/d'", gold(corpus)))  # as pairs
    return commands


def _tokenise(corpus: Corpus, cores: int) -> list[str]:
    raw = folder(corpus, RAW)
    commands = [f"mkdir -p {folder(corpus, TOKENS)} {folder(corpus, WORDS)}"]
    for split in SPLITS:
        if not getattr(corpus, split):
            continue
        part = TOKENS if split == "train" else WORDS
        for language in corpus.languages:
            name = f"{split}.{language}"
            tokeniser = corpus.words[language].replace("{cores}", str(cores))
            tokeniser = f"{'cat' if split in corpus.tokenised else tokeniser} < {raw / name}"
            commands.append(written(tokeniser, folder(corpus, part) / name))
    return commands


def _clean(corpus: Corpus) -> list[str]:
    words = folder(corpus, WORDS)
    held_out = ("--every", str(corpus.every), "--held-out", words / "valid")
    return [
        line(
            *("syncattn-clean", "--languages", *corpus.languages),
            *("--input", folder(corpus, TOKENS) / "train", "--output", words / "train"),
            *options(corpus.clean),
            *(held_out if corpus.every else ()),
        )
    ]


def _subwords(corpus: Corpus) -> list[str]:
    words, pieces = folder(corpus, WORDS), folder(corpus, PIECES)
    commands = [f"mkdir -p {pieces}"]
    joint = corpus.subwords.joint
    for languages in [corpus.languages] if joint else [(side,) for side in corpus.languages]:
        model = pieces / ("bpe" if joint else f"bpe.{languages[0]}")
        size = ("--vocab-size", str(corpus.subwords.size))
        text = [words / f"train.{language}" for language in languages]
        commands.append(line("syncattn-bpe", "learn", *size, "--model", model, "--input", *text))
        names = [f"{split}.{language}" for split in SPLITS for language in languages]
        commands.append(
            line(
                *("syncattn-bpe", "apply", "--model", f"{model}.model"),
                *("--input", *(words / name for name in names)),
                *("--output", *(pieces / name for name in names)),
            )
        )
    return commands


def _parse(corpus: Corpus, workers: int) -> list[str]:
    words = folder(corpus, WORDS)
    commands = []
    for language, parser in corpus.parses.items():
        for split in SPLITS:
            labels = ("--labels", words / f"{split}.labels.{language}")
            texts = line(
                *("--input", words / f"{split}.{language}"),
                *("--output", words / f"{split}.heads.{language}"),
                *(labels if language == corpus.source else ()),
                *("--workers", str(workers)),
            )
            models = f" {MODELS}" if STANZA in parser else ""
            commands.append(f"syncattn-parse {parser}{models} {texts} $PARSE_OPTIONS")
    return commands


def _binarise(corpus: Corpus, cores: int) -> list[str]:
    words, pieces = folder(corpus, WORDS), folder(corpus, PIECES)
    heads = [word for split in SPLITS for word in (f"--{split}heads", words / split)]
    command = "syncattn-preprocess" if corpus.parses else "fairseq-preprocess"
    commands = [
        _binarised(corpus, command, pieces, data(corpus), cores, *(heads if corpus.parses else ()))
    ]
    if corpus.multi_task:
        commands += _mix(corpus, cores)
    return commands


def _binarised(
    corpus: Corpus, command: str, texts: Path, destination: Path, cores: int, *more: str | Path
) -> str:
    joined = ["--joined-dictionary"] if corpus.subwords.joined else []
    texts_of = [word for split in SPLITS for word in (f"--{split}pref", texts / split)]
    languages = ("-s", corpus.source, "-t", corpus.target)
    binarise = line(
        *(command, *languages, *joined),
        *("--destdir", destination),
        *("--workers", str(cores), *texts_of, *more),
    )
    return f"rm -rf {destination} && {binarise}"


def _mix(corpus: Corpus, cores: int) -> list[str]:
    """Make the corpus of Multi-Task: translations and parses of the source, one to one."""
    words, pieces, mixed = (folder(corpus, part) for part in (WORDS, PIECES, MIXED))
    source, target = corpus.languages
    others = [split for split in SPLITS if split != "train"]
    return [
        f"mkdir -p {mixed}",
        line(
            *("syncattn-multitask", "mix"),
            *("--source", pieces / f"train.{source}", "--target", pieces / f"train.{target}"),
            *("--heads", words / f"train.heads.{source}"),
            *("--labels", words / f"train.labels.{source}"),
            *("--output", mixed / f"train.{source}", mixed / f"train.{target}"),
        ),
        line(
            *("syncattn-multitask", "tag"),
            *("--input", *(pieces / f"{split}.{source}" for split in others)),
            *("--output", *(mixed / f"{split}.{source}" for split in others)),
        ),
        line("cp", *(pieces / f"{split}.{target}" for split in others), mixed),
        _binarised(corpus, "fairseq-preprocess", mixed, multi_task_data(corpus), cores),
    ]


def multi_task_data(corpus: Corpus) -> Path:
    """Return where the corpus of Multi-Task is, binarised."""
    return data(corpus).with_name(f"{corpus.name}-multitask")
