"""Group subwords into words by the subwords' marks, such as ``@@``."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import TypeAlias

from ..base.errors import DataError
from .spans import Span, Units, align_places, check_spans, find_runs, find_units, move_spans

Link: TypeAlias = tuple[int, int]
"""A link of a word alignment: a source and a target word, or two subwords, both from 0."""

SCHEMES = ("subword_nmt", "sentencepiece", "none")
RAW = "raw:"
"""Beginning of the names of schemes for raw sentences; the name of a word splitter follows."""
#: The beginning of a word's first piece in sentencepiece (U+2581), so no word may contain it, and
#: what replaces it in words.
MARK, REPLACEMENT = "\u2581", "_"
#: Symbols with a meaning of their own in a fairseq dictionary, and the symbol of unknown words.
SYMBOLS, UNKNOWN = frozenset(("<s>", "<pad>", "</s>")), "<unk>"
#: A byte of a character that a sentencepiece model (``byte_fallback``) has no piece for.
_BYTE = re.compile("<0x([0-9A-F]{2})>")
#: Bytes that are no character, and characters that would break the line.
_BROKEN = re.compile("[\udc80-\udcff\x00-\x1f\x7f-\x9f]")
_BYTE_ALONE = re.compile("[\udc80-\udcff]")
#: In sentencepiece's text, a word's first piece or, with ``treat_whitespace_as_suffix``, its last.
_BEGINNING, _ENDING = re.compile("(?<!\\S)▁+[^\\s▁]"), re.compile("[^\\s▁]▁+(?!\\S)")


def find_word_starts(tokens: Sequence[str], scheme: str) -> list[bool]:
    """Return, for each subword of a sentence, whether it is the first of a word.

    Args:
        tokens: the subwords of one sentence.
        scheme: how subwords are written, as in fairseq's ``--post-process``: ``subword_nmt``
            (``@@`` at the end: the word continues), ``sentencepiece`` (U+2581 at the start: a word
            begins; a lone U+2581 belongs to the word that follows; fairseq's ``characters`` are
            written like this, too; if it ends subwords and begins none, all this is mirrored),
            ``none`` (a token is a word), or ``raw:SPLITTER`` (sentencepiece has split the sentence
            as people wrote it; its words are those of :mod:`.splitters`, and a subword belongs to
            the word with most of its characters).

    Raises:
        ValueError: the scheme is unknown.
        DataError: what the splitter needs is not installed.
    """
    if is_raw(scheme):
        return split_units(tokens, scheme).starts
    check_choice("scheme", scheme, SCHEMES)
    if scheme == "none" or not tokens:
        return [True] * len(tokens)
    if scheme == "subword_nmt":
        return [True] + [not token.endswith("@@") for token in tokens[:-1]]
    text = f"{' '.join(tokens)} "
    if "▁ " in text and _ENDING.search(text) and not _BEGINNING.search(text):
        ends = find_word_starts([token[::-1] for token in reversed(tokens)], scheme)[::-1]
        return [True, *ends[:-1]]
    starts = [token[:1] == "▁" for token in tokens]
    starts[0] = True
    if "▁" in tokens:
        for index in range(1, len(tokens)):
            starts[index] &= tokens[index - 1] != "▁"
        for index in range(len(tokens) - 1, 0, -1):  # no word follows: they end the word before
            if tokens[index] != "▁":
                break
            starts[index] = False
    return starts


def count_subwords(tokens: Sequence[str], scheme: str) -> list[int]:
    """Return the number of subwords of each word; see `find_word_starts`."""
    return [end - begin for begin, end in find_runs(find_word_starts(tokens, scheme))]


def join_subwords(tokens: Sequence[str], scheme: str) -> list[str]:
    """Join the subwords of one sentence into words; see `find_word_starts`.

    Those of sentencepiece are joined as its own decoder does: subwords such as ``<0xE4>`` are the
    bytes of characters. A character that would break the line becomes U+FFFD. A word of a raw
    sentence has the characters of its subwords.
    """
    starts = find_word_starts(tokens, scheme)
    if is_raw(scheme):
        text, spans = read_pieces(tokens)
        first = [begin for (begin, _), start in zip(spans, starts, strict=True) if start]
        return [text[begin:end].strip(" ") for begin, end in pairwise([*first, len(text)])]
    if scheme == "subword_nmt":
        tokens = [token.removesuffix("@@") for token in tokens]
    words = (tokens[begin:end] for begin, end in find_runs(starts))
    if scheme != "sentencepiece":
        return ["".join(word) for word in words]
    return [_join_pieces(word).strip(MARK).replace(MARK, " ") for word in words]


def join_text(tokens: Sequence[str], scheme: str) -> str:
    """Join subwords into the raw sentence that they were made of, or into words and spaces.

    Words are separated by spaces; see `join_subwords`.
    """
    if is_raw(scheme):
        return read_pieces(tokens)[0]
    return " ".join(join_subwords(tokens, scheme))


def read_pieces(pieces: Sequence[str]) -> tuple[str, list[Span]]:
    """Join the pieces of a raw sentence; return the sentence, and the span of each piece.

    They are joined as sentencepiece's decoder joins them. Of the bytes of a character, all but the
    last have no characters.
    """
    parts: list[str] = []
    ends = [0]
    for piece, size in _read_surfaces(pieces):
        parts.append(piece.replace(MARK, " "))
        ends += [ends[-1]] * (size - 1)
        ends.append(ends[-1] + len(piece))
    whole = "".join(parts)
    text = whole.strip(" ")
    skipped = len(whole) - len(whole.lstrip(" "))
    ends = [min(max(end - skipped, 0), len(text)) for end in ends]
    return text, [*pairwise(ends)]


def _read_surfaces(pieces: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each piece, or character of bytes, with the number of pieces."""
    for are_bytes, run in groupby(pieces, lambda piece: _BYTE.fullmatch(piece) is not None):
        if not are_bytes:
            for piece in run:
                yield piece, 1
            continue
        data = bytes.fromhex("".join(_BYTE.sub(r"\1", piece) for piece in run))
        for character in data.decode("utf-8", "surrogateescape"):
            size = 1 if _BYTE_ALONE.match(character) else len(character.encode())
            yield _BROKEN.sub("\ufffd", character), size


def split_units(
    pieces: Sequence[str], scheme: str, words: Sequence[Span] | None = None, sentence: str = ""
) -> Units:
    """Divide a sentence into units: a word, or words that share a subword, with their subwords.

    Args:
        pieces: the subwords.
        scheme: how the subwords are marked, see `find_word_starts`.
        words: for a raw sentence, the spans of its words, from a parser or a treebank. None: the
            words are found by the scheme.
        sentence: the raw sentence that the spans refer to, whose characters a model may change;
            empty: the subwords join to it.

    Raises:
        BadParse: a span is not in the sentence, or the subwords are of another sentence.
    """
    if not is_raw(scheme):
        starts = find_word_starts(pieces, scheme)
        return Units(starts, [*range(sum(starts))])
    text, spans = read_pieces(pieces)
    if words is None:
        return find_units(spans, find_words(text, scheme))
    sentence = sentence or text
    before, places = align_places(text, without_mark(sentence))
    check_spans(words, len(sentence))
    return find_units(
        [(before[begin], before[end]) for begin, end in spans],
        [(places[begin], places[end]) for begin, end in words],
    )


def find_words(text: str, scheme: str) -> list[Span]:
    """Return the spans of a raw sentence's words, by a splitter named as in ``raw:uax29``.

    Raises:
        DataError: there is no such splitter, or what it needs is not installed.
    """
    from .splitters import split_words  # needs a library that few commands need

    return split_words(text, scheme.removeprefix(RAW))


def locate_words(words: Iterable[str], text: str) -> list[Span] | None:
    """Return the spans of words in a text; None if the text has other words.

    Args:
        words: all words, in order; white space in them does not count.
        text: the raw text.
    """
    letters = ["".join(word.split()) for word in words]
    if find_letters("".join(letters)) != find_letters(text):
        return None
    spans = [*pairwise(accumulate(map(len, letters), initial=0))]
    return move_spans(spans, find_letters("".join(letters)), without_mark(text))


def find_letters(text: str) -> str:
    """Return a text without white space, for comparing sentences.

    U+2581 becomes ``_``, as in subwords.
    """
    return without_mark("".join(text.split()))


def _join_pieces(pieces: Sequence[str]) -> str:
    if not any(map(_BYTE.fullmatch, pieces)):
        return "".join(pieces)
    return "".join(surface for surface, _ in _read_surfaces(pieces))


def is_raw(scheme: str) -> bool:
    """Return whether subwords of a style (scheme) were made of raw sentences, not of words."""
    return scheme.startswith(RAW)


def is_scheme(name: object) -> bool:
    """Return whether a value names a style of subword marks, such as ``subword_nmt``."""
    if not isinstance(name, str) or not is_raw(name):
        return name in SCHEMES
    from .splitters import SPLITTERS

    return name.removeprefix(RAW) in SPLITTERS


def detect_scheme(texts: Iterable[str]) -> str:
    """Return which program's subword marks come first in texts; ``none`` without any marks."""
    return next(find_schemes(texts), "none")


def choose_scheme(lines: Iterable[str]) -> str:
    """Return which program's subword marks a text has, judged by how many lines have marks.

    In pieces of sentencepiece, most lines have a mark. Of words split by subword-nmt, few may have
    one, but not just one in hundreds.

    Args:
        lines: the lines of the text; empty ones do not count.

    Returns:
        ``sentencepiece``, ``subword_nmt``, or ``none``.
    """
    total = pieces = continued = 0
    for line in lines:
        if line.strip():
            total += 1
            schemes = {*find_schemes([line])}
            pieces += "sentencepiece" in schemes
            continued += "subword_nmt" in schemes
    if 2 * pieces > total:
        return "sentencepiece"
    return "subword_nmt" if continued and 100 * continued >= total else "none"


def find_schemes(texts: Iterable[str]) -> Iterator[str]:
    """Yield, text by text, the programs (sentencepiece, subword-nmt) whose subword marks occur."""
    for text in texts:
        padded = f" {text} "
        marks = ((" ▁", "sentencepiece"), ("▁ ", "sentencepiece"), ("@@ ", "subword_nmt"))
        places = sorted((padded.find(mark), scheme) for mark, scheme in marks if mark in padded)
        yield from dict.fromkeys(scheme for _, scheme in places)


def without_mark(sentence: str) -> str:
    """Return a sentence with ``_`` for U+2581, since sentencepiece reserves this character."""
    return sentence.replace(MARK, REPLACEMENT)


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise ``ValueError`` if the value is not one of the choices."""
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; choose one of {', '.join(choices)}")


def find_word_heads(parents: Sequence[int], lengths: Sequence[int]) -> list[int]:
    """Recover the dependency heads of words from the parents of subwords by the rule ``chain``.

    This undoes the rule ``chain`` of `.subwords`. Under that rule only a word's last subword points
    out of the word: it points into the head, or, if the word is the root, into the word itself.
    Parents are 0-based; heads count from 1, and 0 is the root; words have subwords. `DataError`:
    the two differ in length, or a parent lies outside the sentence.
    """
    word_of = _number_words(lengths)
    if len(parents) != len(word_of):
        raise DataError(f"{len(parents)} parents for {len(word_of)} subwords")
    if any(not 0 <= parent < len(word_of) for parent in parents):
        raise DataError(f"a parent is not one of the {len(word_of)} subwords")
    heads = [word_of[parents[end - 1]] for end in accumulate(lengths)]
    return [0 if head == word else head + 1 for word, head in enumerate(heads)]


def link_words(
    links: Iterable[Link], source_lengths: Sequence[int], target_lengths: Sequence[int]
) -> set[Link]:
    """Return links between words: two words are linked if any of their subwords are.

    Subwords and words are counted from 0. Lengths are the numbers of subwords of each word.
    `DataError`: a link is outside the sentence.
    """
    source_word, target_word = map(_number_words, (source_lengths, target_lengths))
    try:
        return {(source_word[i], target_word[j]) for i, j in links}
    except IndexError:
        raise DataError(
            f"a link lies outside the {len(source_word)} source subwords and the "
            f"{len(target_word)} target subwords"
        ) from None


def _number_words(lengths: Iterable[int]) -> list[int]:
    return [word for word, length in enumerate(lengths) for _ in range(length)]
