"""The steps of a recipe that binarise texts and parses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli.tokenise import read_preparation
from syncattn_fairseq.data.parses import SPANS, SPLITS
from syncattn_fairseq.data.preparation import NAME, SCHEMES_NAME
from syncattn_fairseq.data.segmenters import name_subwords

from .corpus_facts import Corpus
from .corpus_texts import UNPARSED
from .places import (
    MIXED,
    MULTI_TASK,
    PIECES,
    RAW,
    WORDS,
    data,
    folder,
    list_binarised,
    list_parses,
    list_texts,
    subword_models,
)
from .stages import Step, command
from .start import locate_start
from .text_steps import split_by

#: What fairseq calls a further part of the training text, with which it trains in the same epoch.
FURTHER = "train1"


def binarise(corpus: Corpus, cores: int, part: str, destination: Path) -> list[Step]:
    """Return the steps to binarise the texts in a subfolder of a corpus, with ``cores`` processes.

    The destination is the folder of the binarised corpus. For raw sentences, the subword models
    give the dictionaries, and are stored in that folder, too.
    """
    known_words = corpus.subwords.size if corpus.subwords.unit == "word" else None
    models = subword_models(corpus) if corpus.subwords.raw and part == PIECES else []
    step = command(
        "syncattn-preprocess" if models else "fairseq-preprocess",
        **_pair(corpus, destination),
        joined_dictionary=corpus.subwords.joined,
        nwordssrc=known_words,
        nwordstgt=known_words,
        workers=cores,
        **_name_texts(corpus, part),
        subwords=[] if corpus.start else models,
        start=locate_start(corpus) if corpus.start else None,
    )
    made = list_binarised(corpus, destination)
    made += list_record(corpus, destination) if models else []
    return [
        command("rm -rf --", destination),  # fairseq would keep an old dictionary
        step.declare([*list_texts(corpus, part), *models], made),
    ]


def add_unparsed(corpus: Corpus, cores: int) -> list[Step]:
    """Return the steps to binarise training text without parses, as fairseq's split ``train1``."""
    if not corpus.unparsed:
        return []
    binarised = data(corpus)
    apart = Path(f"{binarised}-{UNPARSED}")
    dictionaries = [binarised / f"dict.{language}.txt" for language in corpus.languages]
    step = command(
        "fairseq-preprocess",
        **_pair(corpus, apart),
        srcdict=dictionaries[0],
        tgtdict=dictionaries[1],
        workers=cores,
        trainpref=folder(corpus, PIECES) / UNPARSED,
    )
    pair = "-".join(corpus.languages)
    names = [f"{pair}.{language}.{end}" for language in corpus.languages for end in ("bin", "idx")]
    return [
        command("rm -rf --", apart),
        step.declare([*dictionaries, *list_texts(corpus, PIECES, [UNPARSED])]),
        *(command("mv", apart / f"train.{x}", binarised / f"{FURTHER}.{x}") for x in names),
        command("rm -rf --", apart).declare(makes=[binarised / f"{FURTHER}.{x}" for x in names]),
    ]


def _pair(corpus: Corpus, destination: Path) -> dict[str, object]:
    """Return the preprocessing options that name the two languages and the output folder."""
    languages = {"source_lang": corpus.source, "target_lang": corpus.target}
    return {**languages, "destdir": destination}


def _name_texts(corpus: Corpus, part: str) -> dict[str, object]:
    """Return the preprocessing options that name the texts in a part of a corpus."""
    return {f"{split}pref": folder(corpus, part) / split for split in SPLITS}


def record(corpus: Corpus) -> list[Step]:
    """Return the step that notes beside the binarised corpus how its text was prepared.

    For raw sentences there is no such step: `binarise` records it.
    """
    if corpus.subwords.raw:
        return []
    binarised, commands = data(corpus), _list_tokenisers(corpus)
    in_words = corpus.generated or "test" in corpus.tokenised
    raw = None if in_words or not commands else folder(corpus, RAW) / "test"
    models = subword_models(corpus) if _has_known_subwords(corpus) else []
    step = command(
        "syncattn-preprocess",
        **_pair(corpus, binarised),
        subword_marks=corpus.subwords.scheme,
        words_by=commands,
        truecased=bool(commands and corpus.generated),
        raw=raw,
        subwords=models,
    )
    read = [binarised / f"dict.{language}.txt" for language in corpus.languages]
    read += [*models, *(list_texts(corpus, RAW, ["test"]) if raw else [])]
    return [step.declare(read, list_record(corpus, binarised))]


def list_record(corpus: Corpus, destination: Path) -> list[Path]:
    """List the files in ``destination`` that record how the text of a corpus was prepared."""
    names = [SCHEMES_NAME]
    if corpus.subwords.raw or _list_tokenisers(corpus):
        names.append(NAME)
    if _has_known_subwords(corpus):
        names += map(name_subwords, corpus.languages)
    return [destination / name for name in names]


def _has_known_subwords(corpus: Corpus) -> bool:
    """Tell whether the record of the preparation includes the subword models.

    They are of no use without tokenisers.
    """
    known = corpus.subwords.raw or bool(_list_tokenisers(corpus))
    return known and corpus.subwords.scheme == "sentencepiece"


def _list_tokenisers(corpus: Corpus) -> list[str]:
    """Return the commands that tokenise source and target; empty if there is none to repeat.

    That is so if a command is not known to `read_preparation`, or the text was published tokenised.
    """
    commands = [split_by(corpus, language, 1, "") for language in corpus.languages]
    if "train" in corpus.tokenised:
        return []
    try:
        for each in commands:
            read_preparation(each)
    except DataError:
        return []
    return commands


def add_parses(corpus: Corpus, need: str) -> list[Step]:
    """Return the step that binarises the annotation ``need``, such as ``heads.en``."""
    binarised = data(corpus)
    step = command(
        "syncattn-preprocess",
        **_pair(corpus, binarised),
        add=need,
        **_name_texts(corpus, PIECES),
        **{f"{split}heads": folder(corpus, WORDS) / split for split in SPLITS},
    )
    read = [
        *list_binarised(corpus, binarised),
        binarised / SCHEMES_NAME,
        *list_parses(corpus, need),
    ]
    read += [*list_texts(corpus, PIECES), *list_texts(corpus, WORDS)]
    return [step.declare(read, list_binarised(corpus, binarised, need=need))]


def mix(corpus: Corpus, cores: int) -> list[Step]:
    """Return the steps to mix translations and parses for Multi-Task, and binarise the mixture."""
    pieces, mixed = folder(corpus, PIECES), folder(corpus, MIXED)
    kinds = ["trees"] if corpus.generated else ["heads", "labels"]
    parses = {kind: folder(corpus, WORDS) / f"train.{kind}.{corpus.source}" for kind in kinds}
    if corpus.subwords.raw:
        parses |= {"spans": folder(corpus, WORDS) / f"train.{SPANS}.{corpus.source}"}
        parses |= {"text": folder(corpus, WORDS) / f"train.{corpus.source}"}
    others = [split for split in SPLITS if split != "train"]
    source, target = list_texts(corpus, PIECES, ["train"])
    both = list_texts(corpus, MIXED, ["train"])
    mixing = command("syncattn-multitask mix", source=source, target=target, **parses, output=both)
    tagged = [f"{split}.{corpus.source}" for split in others]
    texts, outputs = [pieces / name for name in tagged], [mixed / name for name in tagged]
    tagging = command("syncattn-multitask tag", input=texts, output=outputs)
    copied = [f"{split}.{corpus.target}" for split in others]
    kept, copies = [pieces / name for name in copied], [mixed / name for name in copied]
    return [
        command("mkdir -p", mixed),
        mixing.declare([source, target, *parses.values()], both),
        tagging.declare(texts, outputs),
        command("cp", *kept, mixed).declare(kept, copies),
        *binarise(corpus, cores, MIXED, Path(f"{data(corpus)}-{MULTI_TASK}")),
    ]


def list_read(
    corpus: Corpus, binarised: Path, needs: Collection[str], splits: Sequence[str]
) -> list[Path]:
    """List the files of a binarised corpus that a system reads in training or decoding.

    Args:
        corpus: the corpus.
        binarised: the folder of the files.
        needs: the annotations that the system needs, as in `.row_settings.list_needs`.
        splits: the splits that the system reads.
    """
    read = list_record(corpus, binarised) if binarised == data(corpus) else []
    for need in ("", *sorted({*needs} - {MULTI_TASK})):
        read += list_binarised(corpus, binarised, splits, need)
    if corpus.unparsed and "train" in splits:
        read += list_binarised(corpus, binarised, [FURTHER])
    return read
