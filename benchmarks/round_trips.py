"""Measure what raw sentences become as words by Moses's rules, and as pieces of raw text.

Reads a folder of treebanks in CoNLL-U with raw text (``# text``), a file for each language such as
``fi.conllu``. Prints, for each language, how many sentences come back exactly from words and
detokenisation, by the first rules (those of published recipes) and by today's, and from pieces.
Also prints, of pieces, how many of the treebank's trees and of random trees stay trees with one
root, how many pieces have characters of two words of the treebank, and how many words own no piece.
The pieces are learnt from the same sentences, so these rates are of small vocabularies.

Usage: ``python benchmarks/round_trips.py FOLDER``.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import sentencepiece

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.controls import draw_tree
from syncattn_fairseq.data.parses import check_tree
from syncattn_fairseq.data.pieces import apply_pieces, learn_raw_pieces
from syncattn_fairseq.data.preparation import Preparation
from syncattn_fairseq.data.spans import Span, Units, find_owners, find_units
from syncattn_fairseq.data.splitters import find_splitter
from syncattn_fairseq.data.words import read_pieces
from syncattn_fairseq.parsing.formats import FORMATS, Analysis
from syncattn_fairseq.parsing.realign import place_words

#: Pieces besides characters: bytes, symbols, and merges.
_PIECES = 1000
COLUMNS = (
    *("language", "sentences", "Moses, first rules", "Moses", "raw", "trees", "random trees"),
    *("pieces a sentence", "pieces of two words", "words without a piece"),
)


def read_treebank(path: Path) -> list[Analysis]:
    """Read the sentences of a treebank that have both their raw text and a tree."""
    with path.open(encoding="utf-8") as lines:
        return [x for x in FORMATS["conllu"](lines, str(path)) if x.text and x.heads]


def count_exact(language: str, texts: Sequence[str], rules: int) -> int:
    """Count the sentences that are unchanged after Moses's rules split and join them again."""
    preparation = Preparation("moses", language, rules=rules)
    back = preparation.detokenise(preparation.tokenise(texts))
    return sum(map(str.__eq__, texts, back))


def stays_tree(units: Units, heads: Sequence[int]) -> bool:
    """Tell whether a parse is still a tree with one root if words that share a piece are merged."""
    try:
        check_tree(units.map_heads(heads))
    except DataError:
        return False
    return True


def crosses(piece: Span, words: Sequence[Span]) -> bool:
    """Tell whether a subword piece contains characters of two words."""
    return len({word for word in words if word[0] < piece[1] and piece[0] < word[1]}) > 1


def measure(path: Path) -> list[str]:
    """Measure how sentences of one treebank survive splitting and joining; return a table row."""
    language, analyses = path.stem, read_treebank(path)
    texts = [" ".join(analysis.text.split()) for analysis in analyses]
    splitter, lack = find_splitter(language)
    with tempfile.TemporaryDirectory() as folder:
        training = Path(folder, "text")
        training.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        size = _PIECES + len({*"".join(texts)})
        model, _ = learn_raw_pieces([(training, None if lack else splitter)], size)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    exact = trees = drawn = placed = pieces = crossing = words = without = 0
    generator = np.random.default_rng(1)
    for analysis, text in zip(analyses, texts, strict=True):
        joined, spans = read_pieces(apply_pieces(processor, text))
        exact += joined == analysis.text
        parse = place_words(text, analysis)
        if parse is None:
            continue
        units = find_units(spans, parse.spans)
        placed += 1
        trees += stays_tree(units, parse.heads)
        drawn += stays_tree(units, draw_tree(len(parse.heads), generator).tolist())
        pieces += len(spans)
        crossing += sum(crosses(span, parse.spans) for span in spans)
        words += len(parse.spans)
        without += len(parse.spans) - len({*find_owners(spans, parse.spans)})
    counts = [len(texts), count_exact(language, texts, 1), count_exact(language, texts, 2), exact]
    shares = ((crossing, pieces), (without, words))
    return [
        language,
        *map(str, counts),
        *(f"{count} of {placed}" for count in (trees, drawn)),
        f"{pieces / max(1, placed):.1f}",
        *(f"{100 * part / max(1, whole):.2f} %" for part, whole in shares),
    ]


def main() -> None:
    """Measure the round trips of the sentences of all treebanks, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="treebanks, named by their languages: fi.conllu")
    folder = parser.parse_args().folder
    print("|", " | ".join(COLUMNS), "|")
    print("|" + "---|" * len(COLUMNS))
    for path in sorted(folder.glob("*.conllu")):
        print("|", " | ".join(measure(path)), "|", flush=True)


if __name__ == "__main__":
    main()
