"""The record of how sentences were converted to words, by which words become sentences again.

It is stored beside binarised data, whose text is not kept, with how subwords are marked.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base.errors import DataError, naming
from ..base.files import read_file, read_json, replacing
from ..base.locks import refuse_links
from ..base.text import split_lines
from .moses import (
    RULES,
    load_sacremoses,
    lower_case,
    open_detokenizer,
    open_tokenizer,
    raise_first,
)
from .words import SCHEMES, is_scheme

NAME = "preparation.json"
SCHEMES_NAME = "subwords.json"
_LARGEST = 2**16
TOKENIZERS = ("moses", "kytea", "spaces", "raw")
CASES = ("kept", "lower", "true")
_MOSES_LANGUAGES = r"[A-Za-z]{2,3}([-_]\w{1,20})?"
_KYTEA = ("kytea", "-notags", "-out", "tok")
_WITHOUT_KYTEA = (
    "; install KyTea, which splits this model's text into words, or give words: --tokenised"
)


@dataclass(frozen=True)
class Preparation:
    """The conversion of one language's sentences to words, and of words back to sentences.

    Attributes:
        tokenizer: ``moses``, ``kytea`` (Japanese), ``spaces``: the sentences are words already, or
            ``raw``: subwords are made of the sentences themselves.
        language: Moses's code of the language; for raw sentences, that in the names of files.
        normalise: whether quotes, dashes and the like were unified first.
        aggressive: whether Moses split words at hyphens.
        case: ``kept``; ``lower``; or ``true``: a sentence begins with a capital only if its first
            word always has one.
        rules: the version of the rules of :mod:`.moses`, and of how sentences get their capitals.
            Records without a version have the first.
        first: the symbol before the subwords of every sentence, which names its language for a
            model of many languages, such as ``__en__``; empty: there is none.
    """

    tokenizer: str
    language: str
    normalise: bool = False
    aggressive: bool = False
    case: str = "kept"
    rules: int = RULES[-1]
    first: str = ""

    def as_plain(self) -> dict[str, Any]:
        """Return the tokenizer settings (preparation) as a dictionary of plain values, for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "first" or value}

    def tokenise(self, sentences: Sequence[str]) -> list[str]:
        """Return sentences as words separated by spaces."""
        if self.tokenizer == "kytea":
            sentences = split_by(_KYTEA, sentences, "kytea", _WITHOUT_KYTEA)
        return [self.tokenise_line(sentence) for sentence in sentences]

    def tokenise_line(self, text: str) -> str:
        """Return a sentence as words; for KyTea, the line must be KyTea's output already."""
        if self.normalise:
            text = self._normalizer.normalize(text)
        if self.tokenizer == "moses":
            # It marks splits at hyphens as @-@, which its detokeniser undoes.
            text = self._tokenizer.tokenize(
                text, aggressive_dash_splits=self.aggressive, escape=False, return_str=True
            )
        return lower_case(text, self.language) if self.case == "lower" else text

    def detokenise(self, lines: Sequence[str]) -> list[str]:
        """Return lines of words as ordinary sentences, without the tokenizer's spaces."""
        texts = [self._detokenize(line) for line in lines]
        if self.case == "true":
            texts = [raise_first(text, self.language, self.rules) for text in texts]
        return texts

    @cached_property
    def _tokenizer(self) -> Any:
        return open_tokenizer(self.language, self.rules)

    @cached_property
    def _normalizer(self) -> Any:
        return load_sacremoses().MosesPunctNormalizer(self.language)

    @cached_property
    def _detokenize(self) -> Callable[[str], str]:
        if self.tokenizer == "moses":
            try:
                return open_detokenizer(self.language, self.rules)
            except DataError:
                load_sacremoses()  # or says that it is missing
                return open_detokenizer("en", self.rules)  # as the tokenizer does
        return str if self.tokenizer in ("spaces", "raw") else lambda line: "".join(line.split())


def split_by(
    program: Sequence[str], sentences: Sequence[str], name: str, advice: str = ""
) -> list[str]:
    """Split text without spaces, such as Japanese, into words with an external program.

    Args:
        program: the program with arguments.
        sentences: any number; the program must write a line for each.
        name: the name of the program in messages.
        advice: the end of the message if the program does not start.

    Raises:
        DataError: the program does not start, fails, or does not write a line for each sentence.
    """
    text = "".join("".join(sentence.split()) + "\n" for sentence in sentences)
    with naming(name):
        try:
            done = subprocess.run(program, input=text.encode(), capture_output=True)
            lines = [line.strip() for line in split_lines(done.stdout)]
        except OSError as error:
            raise DataError(f"{error.strerror or error}{advice}") from None
        except UnicodeDecodeError:
            raise DataError(
                "the program's output is not UTF-8; make the program write UTF-8"
            ) from None
        if done.returncode or len(lines) != len(sentences):
            errors = done.stderr.decode(errors="replace").strip().splitlines()
            reasons = errors[-1:] or [f"wrote {len(lines)} lines for {len(sentences)} sentences"]
            raise DataError(f"ended with status {done.returncode}: {reasons[0]}")
    return lines


def store_preparations(folder: Path, preparations: Mapping[str, Preparation]) -> None:
    """Store how each language's text was prepared (tokenizer, settings) in a file of a folder."""
    record = {language: each.as_plain() for language, each in preparations.items()}
    with replacing(folder / NAME) as temporary:
        temporary.write_text(json.dumps(record, indent=2) + "\n", "utf-8")


def stored_preparations(folder: Path) -> dict[str, Preparation]:
    """Return how each language's text was tokenised, as stored in a folder; {} if not stored.

    `DataError`: the file is damaged. Nothing in the file is run or opened: it chooses among our own
    tokenizers.
    """
    path = folder / NAME
    try:
        record = read_json(path, _LARGEST)
        preparations = {
            str(name): Preparation(**{"rules": RULES[0], **values})
            for name, values in record.items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        preparations = None
    if preparations is None or not all(map(_is_sound, preparations.values())):
        raise DataError(
            f"{path}: the file is damaged; make it again with syncattn-preprocess --words-by"
        )
    return preparations


def _is_sound(preparation: Preparation) -> bool:
    any_name = preparation.tokenizer in ("raw", "spaces")
    languages = r"[\w.+-]{1,100}" if any_name else _MOSES_LANGUAGES
    return (
        preparation.tokenizer in TOKENIZERS
        and isinstance(preparation.language, str)
        and re.fullmatch(languages, preparation.language) is not None
        and type(preparation.normalise) is type(preparation.aggressive) is bool
        and preparation.case in CASES
        and type(preparation.rules) is int
        and preparation.rules in RULES
        and isinstance(preparation.first, str)
        and re.fullmatch(r"[^\s<>]{0,100}", preparation.first) is not None
    )


def list_record(languages: Iterable[str]) -> list[str]:
    """List the names of the files that store how texts were tokenised and split into subwords."""
    names = [NAME, SCHEMES_NAME]
    for language in languages:
        names += [f"subwords.{language}", f"vocabulary.{language}"]
    return names


def copy_record(source: Path, destination: Path, languages: Iterable[str], is_new: bool) -> None:
    """Copy the files that store how texts were tokenised, and subword models, to another folder.

    Args:
        source, destination: the folders.
        languages: the languages of the text.
        is_new: whether no file in the destination is from an earlier run of this training.

    Raises:
        DataError: a link is in the place of a file, or the record of another text is there.
    """
    if source.resolve() == destination.resolve():
        return
    names = list_record(languages)
    found = [name for name in names if (source / name).is_file()]
    refuse_links(*(destination / name for name in found))
    for name in {*names} - {*found} if is_new else ():
        if (destination / name).exists():
            raise DataError(
                f"{destination / name}: belongs to another text, since {source} has no such "
                "file; remove this file, or choose another --save-dir"
            )
    for name in found:
        with replacing(destination / name) as temporary:
            temporary.write_bytes(read_file(source / name))


def score_round_trip(preparation: Preparation, references: Sequence[str]) -> float:
    """Return the BLEU of references that were tokenised and detokenised, a model's upper limit."""
    from sacrebleu.metrics.bleu import BLEU

    words = BLEU(tokenize="13a" if preparation.tokenizer == "moses" else "char")
    case = preparation.case == "lower"
    texts = preparation.detokenise(preparation.tokenise(references))
    gold = [lower_case(text, preparation.language) if case else text for text in references]
    return words.corpus_score(texts, [gold]).score


def stored_schemes(folder: Path | str) -> dict[str, str]:
    """Return each language's style of subword marks stored in a folder; {} if none is stored.

    `DataError`: the file is damaged.
    """
    path = Path(folder) / SCHEMES_NAME
    try:
        schemes = read_json(path)
    except FileNotFoundError:
        return {}
    except ValueError:
        schemes = None
    if not isinstance(schemes, dict) or not all(map(is_scheme, schemes.values())):
        raise DataError(
            f"{path}: expected one of {', '.join(SCHEMES)} or raw:SPLITTER for each language; "
            "remove the file"
        )
    return schemes


def store_schemes(folder: Path | str, schemes: Mapping[str, str]) -> None:
    """Store each language's style of subword marks, such as ``subword_nmt``, in a folder."""
    with replacing(Path(folder) / SCHEMES_NAME) as temporary:
        temporary.write_text(json.dumps(schemes, sort_keys=True) + "\n", "utf-8")
