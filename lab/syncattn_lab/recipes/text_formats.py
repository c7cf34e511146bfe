"""Read parallel text from archives, with a reader for each format.

A reader yields the sentences of a binary stream, each on one line, and names the stream and its
line in a `DataError`.
"""

import codecs
import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import MAX_LINE, check_first_line, join_line
from syncattn_fairseq.parsing.formats import FORMATS, Analysis

from .archives import SEPARATOR, open_member

#: Bytes at the beginning of a file from which its kind is recognised.
_HEAD = 64
#: The tags that begin and end a segment of SGML, and the entities in its text.
_SEGMENT = re.compile(r"<seg\b[^<>]*>|</seg\s*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
#: Notes about TED talks, and the tags of titles and descriptions.
_NOTE = re.compile("<(?:url>|talkid>|keywords>|speaker>|reviewer|translator|/?doc)")
_TITLE = re.compile("</?(?:title|description)>")
#: A number or date in full-width brackets at the end of a sentence of ASPEC: noise of the source.
_DATE = re.compile("(?<=.)［[０-９．]+］$")


def decoded_lines(
    file: BinaryIO, name: str, encoding: str = "utf-8", is_xml: bool = False
) -> Iterator[str]:
    r"""Yield the decoded lines of a text file, which end at ``\n`` alone, as for ``wc -l``.

    Args:
        file: the binary file.
        name: the file's name, for messages.
        encoding: the encoding of the text.
        is_xml: whether the text is XML or the like; otherwise such a file is refused.

    Raises:
        DataError: a line is not in the encoding, or too long; or the file is of another kind.
    """
    for number, line in enumerate(iter(partial(file.readline, MAX_LINE + 1), b""), 1):
        if len(line) > MAX_LINE:
            raise DataError(
                f"{name}:{number}: the line has more than {MAX_LINE:,} bytes; check that the "
                "file is text"
            )
        if number == 1:
            head = line.removeprefix(codecs.BOM_UTF8)[:_HEAD].decode("utf-8", "surrogateescape")
            check_first_line(head, name, is_xml)
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError:
            raise DataError(
                f"{name}:{number}: not UTF-8; if the text is in Latin-1, give the format latin1"
            ) from None
        yield text.removeprefix("\ufeff") if number == 1 else text


def read_plain(file: BinaryIO, name: str, encoding: str = "utf-8") -> Iterator[str]:
    """Yield the sentences of plain text with a sentence on each line."""
    return map(join_line, decoded_lines(file, name, encoding))


def read_segments(file: BinaryIO, name: str) -> Iterator[str]:
    """Yield the text of each ``<seg>`` of WMT's SGML or IWSLT's XML, with entities resolved.

    `DataError`: a tag ``<seg>`` or ``</seg>`` has no partner. Usually neither format is well-formed
    XML: the text has ``&`` and ``<`` without escapes.
    """
    text = "".join(decoded_lines(file, name, is_xml=True))  # test sets: a megabyte or so
    begin = None
    for tag in _SEGMENT.finditer(text):
        if tag[0].startswith("</") == (begin is None):
            raise _unpaired(name, text, tag if begin is None else begin)
        if begin is None:
            begin = tag
        else:
            segment = text[begin.end() : tag.start()]
            yield join_line(_ENTITY.sub(lambda entity: html.unescape(entity[0]), segment))
            begin = None
    if begin is not None:
        raise _unpaired(name, text, begin)


def _unpaired(name: str, text: str, tag: re.Match[str]) -> DataError:
    line = text.count("\n", 0, tag.start()) + 1
    return DataError(
        f"{name}:{line}: {tag[0][:60]!r} has no matching tag; give each <seg> its </seg>"
    )


def read_ted_talks(file: BinaryIO, name: str) -> Iterator[str]:
    """Yield the sentences of IWSLT's TED talks for training, without the notes about talks.

    The file is such as ``train.tags.de-en.de``.

    Titles and descriptions count as text, as in fairseq's recipes for IWSLT14 and IWSLT17, which
    give the usual 160,239 pairs.
    """
    for line in decoded_lines(file, name):
        if not _NOTE.search(line):
            yield join_line(_TITLE.sub("", line))


def read_ted_segments(file: BinaryIO, name: str) -> Iterator[str]:
    """Yield the sentences of IWSLT's development and test sets, with straight apostrophes."""
    for segment in read_segments(file, name):
        yield segment.replace("\u2019", "'")


def read_aspec(
    file: BinaryIO, name: str, languages: tuple[str, str], dates: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of ASPEC, a corpus of Japanese and English.

    Its lines are ``score ||| document ||| number ||| Japanese ||| English``. Development and test
    sets have no score.

    Args:
        file: the file.
        name: the file's name, for messages.
        languages: the source and the target language; the pairs have this order.
        dates: whether to keep dates at the end of Japanese sentences; WAT's baseline removes dates.

    Raises:
        DataError: a line has fewer than two columns, or the languages are not ja and en.
    """
    if set(languages) != {"ja", "en"}:
        raise DataError(
            f"{name}: the languages of aspec are ja and en, not {' and '.join(languages)}"
        )
    for number, line in enumerate(decoded_lines(file, name), 1):
        columns = line.rsplit("|||", 2)
        if len(columns) < 2:
            raise DataError(f"{name}:{number}: no ||| between Japanese and English")
        japanese, english = join_line(columns[-2]), join_line(columns[-1])
        if not dates:
            japanese = _DATE.sub("", japanese).rstrip()
        yield (japanese, english) if languages[0] == "ja" else (english, japanese)


def _read_analyses(
    file: BinaryIO, name: str, write: Callable[[Analysis], Iterator[object]]
) -> Iterator[str]:
    """Yield a line for each sentence of a CoNLL-U treebank, of the items that ``write`` yields."""
    for analysis in FORMATS["conllu"](decoded_lines(file, name), name):
        if analysis.words:
            yield " ".join(map(str, write(analysis)))


def read_sentences(file: BinaryIO, name: str) -> Iterator[str]:
    """Yield the untokenised sentences (``# text``) of a treebank in CoNLL-U."""
    for analysis in FORMATS["conllu"](decoded_lines(file, name), name):
        if analysis.words:
            yield join_line(analysis.text)


def _join_words(analysis: Analysis) -> Iterator[str]:
    """Yield the words of a sentence, with ``_`` for white space inside a word."""
    return (join_line(word).replace(" ", "_") or "_" for word in analysis.words)


#: Readers of formats that have one language in a file. They keep empty sentences, since source and
#: target are read line by line. An empty line of heads (0 for the root) or labels is no tree.
TEXTS: dict[str, Callable[[BinaryIO, str], Iterator[str]]] = {
    "plain": read_plain,
    "latin1": partial(read_plain, encoding="latin-1"),
    "sgm": read_segments,
    "iwslt_tags": read_ted_talks,
    "iwslt_xml": read_ted_segments,
    "conllu": partial(_read_analyses, write=_join_words),
    "conllu_text": read_sentences,
    "conllu_heads": partial(_read_analyses, write=lambda analysis: iter(analysis.heads or ())),
    "conllu_labels": partial(_read_analyses, write=lambda analysis: iter(analysis.labels)),
}

#: Readers of formats that have several languages in a file. They yield pairs of the two given
#: languages, in that order.
PAIRS: dict[str, Callable[[BinaryIO, str, tuple[str, str]], Iterator[tuple[str, str]]]] = {
    "aspec": read_aspec,
    "aspec_undated": partial(read_aspec, dates=False),
}

#: Values of ``{role}`` in an address, for the source and the target.
ROLES = ("src", "ref")


def collect(
    archives: Path,
    format_name: str,
    address: str,
    languages: tuple[str, str],
    keep_empty: bool = False,
) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of a text, each sentence as a single line.

    Args:
        archives: folder of the archives.
        format_name: a name in `TEXTS` or `PAIRS`.
        address: the address of the text, ``ARCHIVE!MEMBER`` (`open_member`); ``{language}`` and
            ``{role}`` are filled in if source and target have files of their own.
        languages: the source and the target language.
        keep_empty: whether pairs of two empty sentences are yielded as well.

    Raises:
        DataError: source and target differ in length or are empty, or a file is not in its format.
    """
    empty = True
    for pair in _read(archives, format_name, address, languages):
        empty = False
        if keep_empty or any(pair):
            yield pair
    if empty:
        raise DataError(
            f"{address}: has no pairs of {' and '.join(languages)}; check that its format is "
            f"{format_name}"
        )


def collect_lines(archives: Path, address: str) -> list[str]:
    """Return the nonblank lines of a file, such as word alignments, which may be in an archive."""
    with open_member(archives, address) as file:
        return [line for line in TEXTS["plain"](file, address) if line]


def name_sides(address: str, languages: tuple[str, str]) -> list[str]:
    """Return the address of the source and that of the target, with placeholders filled in."""
    return [
        address.replace("{language}", language).replace("{role}", role)
        for language, role in zip(languages, ROLES, strict=True)
    ]


def list_archives(folder: Path, addresses: Iterable[str], languages: tuple[str, str]) -> list[Path]:
    """List the files and archives that hold the source and the target of texts.

    Addresses of texts are relative to ``folder``, or absolute.
    """
    names = [name for address in addresses for name in name_sides(address, languages)]
    return [folder / name.partition(SEPARATOR)[0] for name in dict.fromkeys(names)]


def _read(
    archives: Path, format_name: str, address: str, languages: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    if format_name in PAIRS:
        with open_member(archives, address) as file:
            yield from PAIRS[format_name](file, address, languages)
        return
    names = name_sides(address, languages)
    if names[0] == names[1]:
        raise DataError(
            f"{address}: names the same file for both sides; put {{language}} into the name"
        )
    read = TEXTS[format_name]
    with open_member(archives, names[0]) as first, open_member(archives, names[1]) as second:
        sources, targets = read(first, names[0]), read(second, names[1])
        for number, (source, target) in enumerate(zip_longest(sources, targets)):
            if source is None or target is None:
                counts = (
                    number + (source is not None) + sum(1 for _ in sources),
                    number + (target is not None) + sum(1 for _ in targets),
                )
                have = " but ".join(f"{n} in {name}" for name, n in zip(names, counts, strict=True))
                raise DataError(f"the sides differ in length: {have}; fetch the files again")
            yield source, target
