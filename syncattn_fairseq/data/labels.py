"""The dictionary of dependency labels: a fairseq dictionary next to the binarised text."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from fairseq.data import Dictionary

from ..base.errors import DataError
from ..base.files import replacing
from ..base.text import read_file_lines

#: A line of Marian's vocabulary, and how many lines are enough to recognise its file.
_MARIANS, _FIRST = re.compile(r".*: [0-9]+ *"), 100


def locate_dictionary(folder: Path | str, language: str) -> Path:
    """Return the path of a language's label dictionary in the folder of a binarised corpus."""
    return Path(folder) / f"dict.labels.{language}.txt"


def build_dictionary(tally: Counter[str]) -> Dictionary:
    """Make a fairseq dictionary of labels and their counts, the most frequent label first."""
    dictionary = Dictionary()
    for label, count in tally.items():
        dictionary.add_symbol(label, count)
    dictionary.finalize(padding_factor=1)
    return dictionary


def load_dictionary(path: Path) -> Dictionary:
    """Read a fairseq dictionary from a file; raise `DataError` if the file is no dictionary."""
    dictionary = Dictionary()
    lines = [*read_file_lines(path)]
    if len(lines) > 1 and all(map(_MARIANS.fullmatch, lines[:_FIRST])):
        raise DataError(
            f"{path}:1: this is a vocabulary of Marian in YAML (WORD: NUMBER), but a dictionary "
            "of fairseq has WORD COUNT on each line; leave the dictionary out, and a new one is "
            "made from the text"
        )
    text = StringIO("\n".join(lines))
    try:
        dictionary.add_from_file(text)
    except (ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split()).partition(". Duplicate words can")[0]
        raise DataError(f"{path}: {reason[:200]}") from None
    return dictionary


def load_unambiguous(path: Path) -> Dictionary:
    """Read a dictionary that fairseq will save; raise `DataError`, too, if it has a word twice."""
    dictionary = load_dictionary(path)
    word, count = Counter(dictionary.symbols).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"{path}: the dictionary has {word!r} twice, since fairseq adds <s>, <pad>, </s> and "
            "<unk> itself, and no training could load a copy of the dictionary; remove the lines "
            "with #fairseq:overwrite"
        )
    return dictionary


def check_same_dictionaries(folders: Sequence[str], languages: Iterable[str | None]) -> None:
    """Raise `DataError` unless the corpora in several folders have the same dictionaries."""
    for language in filter(None, languages):
        for name in (f"dict.{language}.txt", f"dict.labels.{language}.txt"):
            paths = [path for folder in folders if (path := Path(folder) / name).exists()]
            for path in paths[1:]:
                if load_dictionary(path).symbols != load_dictionary(first := paths[0]).symbols:
                    raise DataError(
                        f"{path}: differs from the dictionary {first}, so numbers would stand "
                        "for wrong words; binarise all folders of --data with the same "
                        "dictionaries (--srcdict, --tgtdict, --srclabeldict)"
                    )


def save_dictionary(dictionary: Dictionary, path: Path) -> None:
    """Write a dictionary to a file, which appears whole or not at all."""
    with replacing(path) as temporary:
        dictionary.save(str(temporary))
