"""Read the output of ``fairseq-generate`` and ``fairseq-interactive``, in the corpus's order.

::

    S-12  the man sleeps .        the source's subwords
    T-12  der Mann schläft .      the reference's, if there is one
    H-12  -0.2  der Mann schläft .      a hypothesis's score and subwords
    D-12  -0.2  Der Mann schläft.       the same after fairseq's own post-processing
    A-12  0-0 1-1 2-2 3-3         links of subwords (--print-alignment hard), from 0

Columns are separated by tabs; 12 is the number of the sentence. Earlier versions of this package
printed X- and L- lines, too, with parses, distances and links of layers; these are not read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.numbers import read_whole
from syncattn_fairseq.base.packed import BLOCK, Packed, pack, unpack
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.words import MARK, Link, choose_scheme, join_text, link_words

from .sentences import PrintedSentence, PrintedSide, make_link, make_side

_LINE = re.compile(r"([STHDA])-([0-9]{1,9})\t(.*)")
#: Any line of a sentence.
_PRINTED = re.compile(r"([STHDPAXLE])-[0-9]{1,9}\t")
#: Lines of earlier versions: the kind of what they hold.
_EARLIER = re.compile(r"([XL])-[0-9]{1,9}\t")
#: How many sentences are read before they are compressed.
_AT_ONCE = 10 * BLOCK

_Fields: TypeAlias = dict[str, Any]
"""What was read of a sentence, by the letter that its line begins with."""


def is_fairseq_output(lines: Iterable[str]) -> bool:
    """Tell whether lines are the output of fairseq's decoder, with lines of hypotheses."""
    filled, found = 0, Counter[str]()
    for line in lines:
        filled += bool(line.strip())
        if match := _PRINTED.match(line):
            found[match[1]] += 1
            if len(found) > 1 and "H" in found:
                return True
    return "H" in found and 2 * found.total() > filled


def read_fairseq_output(
    path: str | Path,
    scheme: str | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Sequence[PrintedSentence]:
    """Read the output of fairseq's decoder; only the first hypothesis of each n-best list is kept.

    Args:
        path: the file.
        scheme: how subwords are marked. None: as most lines show.
        warn: called with what the file holds that is not read.

    Raises:
        DataError: a sentence is missing or appears twice, or a line cannot be read.
    """
    packed, last, earlier = _read_fields(path)
    if earlier:
        warn(
            f"{path}: has {earlier} lines of an earlier version (X- or L-), which are not read; "
            "print parses, distances and links of layers again: syncattn-translate --jsonl"
        )
    schemes = {
        kind: scheme or choose_scheme(_list_texts(packed, kind, kind)) for kind in ("S", "H")
    }
    if "subword_nmt" in schemes.values():  # short texts may show no mark on one side
        for kind, shown in schemes.items():
            schemes[kind] = "subword_nmt" if shown == "none" else shown
    # After --remove-bpe, translations are not in subwords.
    written = choose_scheme(_list_texts(packed, "D", "H"))
    schemes["D"] = scheme if scheme and written != "none" else written
    sentences: Packed[PrintedSentence] = Packed()
    for block in range(last // BLOCK + 1):
        known = _unpack_block(packed.pop(block, ()))
        for number in range(block * BLOCK, min((block + 1) * BLOCK, last + 1)):
            if "H" not in known[number]:
                raise DataError(
                    f"{path}: sentence {number} has no H- line; decode with "
                    "--required-batch-size-multiple 1, or fairseq drops part of the last batch"
                )
            with naming(f"{path}: sentence {number}"):
                sentences.append(_make_sentence(known[number], schemes))
    return sentences


def _read_fields(path: str | Path) -> tuple[dict[int, list[bytes]], int, int]:
    """Return the fields of all sentences by block, the last sentence, and lines not read."""
    last, earlier = -1, 0
    fields: dict[int, _Fields] = {}
    packed: dict[int, list[bytes]] = defaultdict(list)
    seen: dict[tuple[str, int], bytearray] = defaultdict(lambda: bytearray(BLOCK))
    latest: dict[str, int] = {}  # the sentence of the latest line of each kind
    for number, line in enumerate(read_lines(path), 1):
        earlier += bool(_EARLIER.match(line))
        try:
            content = _read_line(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from None
        if content is None:
            continue
        sentence, kind, value = content
        block, offset = divmod(sentence, BLOCK)
        if not seen[kind, block][offset]:
            seen[kind, block][offset] = True
            fields.setdefault(sentence, {})[kind] = value
        elif kind in "ST" or latest[kind] != sentence:
            raise DataError(
                f"{path}:{number}: sentence {sentence} appears twice; give a file with the "
                "output of one run"
            )
        latest[kind], last = sentence, max(last, sentence)
        if len(fields) == _AT_ONCE:
            _pack_fields(fields, packed)
    _pack_fields(fields, packed)
    return packed, last, earlier


def _read_line(line: str) -> tuple[int, str, Any] | None:
    """Return the sentence, the kind and the value of a line; None for any other line."""
    match = _LINE.match(line)
    if not match:
        return None
    kind, sentence, value = match[1], int(match[2]), match[3]
    if kind in "HD":
        _, tab, text = value.partition("\t")
        if not tab:
            raise ValueError("expected a score, a tab and the text")
        return sentence, kind, text
    if kind == "A":
        return sentence, kind, _read_links(value)
    return sentence, kind, value


def _read_links(text: str) -> set[Link]:
    """Read fairseq's links, ``0-0 1-0``, source and target, from 0."""
    links = set()
    for token in text.split(" "):  # a tab would start another column, which is an error
        if token:
            source, _, target = token.partition("-")
            try:
                links.add(make_link(read_whole(source), read_whole(target)))
            except ValueError:
                fault = f"expected links like 3-4, got {text[:60]!r}"
                raise ValueError(f"{fault}; decode with --print-alignment hard") from None
    return links


def _pack_fields(fields: dict[int, _Fields], packed: dict[int, list[bytes]]) -> None:
    """Pack the fields of sentences into their blocks; the sentences may come in any order."""
    blocks: dict[int, dict[int, _Fields]] = defaultdict(dict)
    for sentence, known in fields.items():
        blocks[sentence // BLOCK][sentence] = known
    for block, part in blocks.items():
        packed[block].append(pack(part))
    fields.clear()


def _unpack_block(parts: Iterable[bytes]) -> dict[int, _Fields]:
    known: dict[int, _Fields] = defaultdict(dict)
    for part in parts:
        for sentence, some in unpack(part).items():
            known[sentence] |= some
    return known


def _list_texts(packed: Mapping[int, Sequence[bytes]], kind: str, other: str) -> Iterator[str]:
    """Yield each sentence's text from one kind of line, or else from another kind."""
    for parts in packed.values():
        for fields in _unpack_block(parts).values():
            yield str(fields.get(kind, fields.get(other, "")))


def _make_sentence(known: _Fields, schemes: Mapping[str, str]) -> PrintedSentence:
    """Make a sentence of its fields; schemes say how lines of each kind mark subwords."""
    source = make_side(known["S"].split(), schemes["S"]) if "S" in known else PrintedSide()
    target = make_side(known["H"].split(), schemes["H"])
    translation = str(known.get("D", known["H"]))
    if schemes["D"] != "none":
        translation = join_text(translation.split(), schemes["D"])
    elif "<0x" in translation and translation == _join_pieces(known["H"]):
        # fairseq leaves the bytes of characters as they are.
        translation = join_text(known["H"].split(), schemes["H"])
    links = None
    if "A" in known:
        links = link_words(known["A"], source.lengths, target.lengths)
    # The reference has <<unk>> for words that the dictionary lacks.
    forced = "T" in known and known["T"].replace("<<unk>>", "<unk>") == known["H"]
    return PrintedSentence(translation, source, target, links, forced=forced)


def _join_pieces(text: str) -> str:
    """Join pieces as fairseq's ``--remove-bpe sentencepiece`` does."""
    return text.replace(" ", "").replace(MARK, " ").strip()
