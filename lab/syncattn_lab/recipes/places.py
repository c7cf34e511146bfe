"""The paths of a corpus's files, relative to the folder of the recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from syncattn_fairseq.data.parses import LINKS, SPANS, SPLITS
from syncattn_fairseq.data.segmenters import name_subwords

from .corpus_facts import Corpus
from .start import locate_start

#: Subfolders of a corpus's folder, one for each state of its texts.
DOWNLOAD, RAW, TOKENS, WORDS = "download", "raw", "tokens", "words"
PIECES, MIXED = "pieces", "mixed"
#: What Multi-Task needs: translations mixed with parses of the source.
MULTI_TASK = "multitask"


def folder(corpus: Corpus, part: str) -> Path:
    """Return the folder of a corpus's texts in a state of preparation, such as `RAW` or `WORDS`."""
    return Path("corpora", corpus.name, part)


def data(corpus: Corpus) -> Path:
    """Return the folder of the binarised corpus."""
    return Path("data-bin", corpus.name)


def gold_alignments(corpus: Corpus) -> Path:
    """Return the file of the gold word alignments of the test set."""
    return folder(corpus, WORDS if corpus.generated else RAW) / "test.align"


def examined(corpus: Corpus) -> Path:
    """Return the file with the faults found in the prepared text of a corpus."""
    return Path("corpora", corpus.name, "examined.json")


def subword_models(corpus: Corpus) -> list[Path]:
    """Return the files of subword models: one for both languages, or one for each."""
    if corpus.start is not None:
        return [locate_start(corpus) / name_subwords(side) for side in corpus.languages]
    names = ["bpe"] if corpus.subwords.joint else [f"bpe.{side}" for side in corpus.languages]
    return [folder(corpus, PIECES) / f"{name}.model" for name in names]


def list_texts(
    corpus: Corpus, part: str, splits: Sequence[str] = SPLITS, languages: Sequence[str] = ()
) -> list[Path]:
    """List the text files in a subfolder of a corpus.

    Args:
        corpus: the corpus.
        part: the subfolder of the corpus's folder.
        splits: the splits, one after the other.
        languages: the languages of each split; empty: source and target.
    """
    languages = languages or corpus.languages
    return [folder(corpus, part) / f"{split}.{each}" for split in splits for each in languages]


def list_parses(corpus: Corpus, need: str) -> list[Path]:
    """List the files of the annotation ``need``, such as ``heads.en``, in all splits.

    For raw sentences, annotations come with the places of their words, and labels with heads.
    """
    kind, _, language = need.partition(".")
    kinds = [kind]
    if corpus.subwords.raw and language:
        kinds = [*dict.fromkeys((kind, "heads", SPANS))]
    names = [f"{each}.{language}" if language else each for each in kinds]
    return [folder(corpus, WORDS) / f"{split}.{name}" for name in names for split in SPLITS]


def list_binarised(
    corpus: Corpus, destination: Path, splits: Sequence[str] = SPLITS, need: str = ""
) -> list[Path]:
    """List the files that hold the text of a binarised corpus, or one of its annotations.

    Args:
        corpus: the corpus.
        destination: the folder of the files.
        splits: the splits of the text.
        need: the annotation, as in `.row_settings.list_needs`; empty: the text itself.
    """
    kind, _, language = need.partition(".")
    pair = "-".join(corpus.languages)
    if not need:
        names = [f"{split}.{pair}.{side}.*" for split in splits for side in corpus.languages]
        names += [f"dict.{side}.txt" for side in corpus.languages]
    elif need == LINKS:
        names = [f"{split}.{LINKS}.{pair}.*" for split in splits]
    else:
        names = [f"{split}.{kind}.{pair}.{language}.*" for split in splits]
    if kind == "labels":
        from syncattn_fairseq.data.labels import locate_dictionary  # imports fairseq

        names.append(locate_dictionary(destination, language).name)
    return [destination / name for name in names]
