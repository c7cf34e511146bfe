"""Read the output of ``fairseq-generate`` and ``fairseq-interactive``, in the corpus's order."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.inputs import keeping_pipes
from syncattn_fairseq.base.packed import BLOCK, Packed, pack, unpack
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.analysis_lines import (
    DistancesOf,
    HeadsOf,
    Link,
    LinksOf,
    Topic,
    read_line,
    read_links,
)

_LINE = re.compile(r"([STHDA])-([0-9]{1,9})\t(.*)")
#: How many sentences are read before they are compressed.
_AT_ONCE = 10 * BLOCK


@dataclass(frozen=True)
class DecodedSentence:
    """One sentence of a decoder's output; None for lines that were not printed."""

    hypothesis: str
    """H- line: the tokens, as subwords unless fairseq was told to join them."""
    translation: str
    """D- line, the hypothesis after fairseq's own post-processing; otherwise the H- line."""
    source: str = ""
    """S- line: the tokens, like those of the hypothesis."""
    source_heads: list[int] | None = None
    """X- line: 1-based head of each source word, 0 = root."""
    hypothesis_heads: list[int] | None = None
    links: set[Link] | None = None
    """A- line: source and target positions of linked subwords, 0-based."""
    layer_links: dict[LinksOf, set[Link]] = field(default_factory=dict)
    """L- lines: the same for decoder layers, or for single heads."""
    source_distances: dict[int, list[float]] = field(default_factory=dict)
    """X- lines: syntactic distances of the source's subwords, for each gated layer, from 1."""
    hypothesis_distances: dict[int, list[float]] = field(default_factory=dict)
    is_reference: bool = False
    """Whether the hypothesis is the T- line, as always in forced decoding."""


_Fields: TypeAlias = dict[str | Topic, Any]
"""What was read of a sentence, by the kind of line."""


def read_decoded(path: str | Path) -> Sequence[DecodedSentence]:
    """Read a decoder's output; from an n-best list, the first hypothesis of each sentence.

    A file without any H- line is taken as plain text, one translation per line. `DataError`: it is
    empty, a sentence is missing or appears twice, or a line cannot be read.
    """
    number, last = 0, -1
    fields: dict[int, _Fields] = {}
    packed: dict[int, list[bytes]] = defaultdict(list)  # more fields, by the block of the sentence
    seen: dict[tuple[str | Topic, int], bytearray] = defaultdict(lambda: bytearray(BLOCK))
    latest: dict[str | Topic, int] = {}  # the sentence of the latest line of each kind
    with keeping_pipes():
        for number, line in enumerate(read_lines(path), 1):
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
            elif kind in ("S", "T") or latest[kind] != sentence:
                raise DataError(
                    f"{path}:{number}: sentence {sentence} appears twice; the file must hold one "
                    "output"
                )
            latest[kind], last = sentence, max(last, sentence)
            if len(fields) == _AT_ONCE:
                _pack_fields(fields, packed)
        if not number:
            raise DataError(f"{path}: the file is empty; give what fairseq-generate printed")
        if "H" not in latest:
            return Packed(
                DecodedSentence(hypothesis=line, translation=line) for line in read_lines(path)
            )
    _pack_fields(fields, packed)
    decoded: Packed[DecodedSentence] = Packed()
    for block in range(last // BLOCK + 1):
        known: dict[int, _Fields] = defaultdict(dict)
        for part in packed.pop(block, ()):
            for sentence, some in unpack(part).items():
                known[sentence] |= some
        for sentence in range(block * BLOCK, min((block + 1) * BLOCK, last + 1)):
            if "H" not in known[sentence]:
                raise DataError(
                    f"{path}: sentence {sentence} has no H- line; decode with "
                    "--required-batch-size-multiple 1, or fairseq drops part of the last batch"
                )
            decoded.append(_make_sentence(known[sentence]))
    return decoded


def _pack_fields(fields: dict[int, _Fields], packed: dict[int, list[bytes]]) -> None:
    """Move fields of sentences to others of the same blocks, which may come in any order."""
    blocks: dict[int, dict[int, _Fields]] = defaultdict(dict)
    for sentence, known in fields.items():
        blocks[sentence // BLOCK][sentence] = known
    for block, part in blocks.items():
        packed[block].append(pack(part))
    fields.clear()


def _make_sentence(known: Mapping[str | Topic, Any]) -> DecodedSentence:
    def by_layer(side: str) -> dict[int, list[float]]:
        topics = [topic for topic in known if isinstance(topic, DistancesOf) and topic.side == side]
        return {topic.layer: known[topic] for topic in topics}

    return DecodedSentence(
        hypothesis=known["H"],
        translation=known.get("D", known["H"]),
        # The reference has <<unk>> for words that the dictionary lacks.
        is_reference="T" in known and known["T"].replace("<<unk>>", "<unk>") == known["H"],
        source=known.get("S", ""),
        source_heads=known.get(HeadsOf("source", "word")),
        hypothesis_heads=known.get(HeadsOf("hypothesis", "word")),
        links=known.get("A"),
        layer_links={t: set(links) for t, links in known.items() if isinstance(t, LinksOf)},
        source_distances=by_layer("source"),
        hypothesis_distances=by_layer("hypothesis"),
    )


def _read_line(line: str) -> tuple[int, str | Topic, Any] | None:
    """Return the sentence, the kind and the value of a line; None for any other line."""
    if ours := read_line(line):
        return ours
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
        try:
            return sentence, kind, set(read_links(value))
        except ValueError as error:
            raise ValueError(f"{error}; decode with --print-alignment hard") from None
    return sentence, kind, value
