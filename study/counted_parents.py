"""Score parses that know no syntax on a text: counts, the best fixed offset and random trees.

    python -m study.counted_parents atis_en_tr --source pieces/train.en words/train.heads.en \
        pieces/test.en words/test.heads.en --target pieces/train.tr words/train.heads.tr \
        pieces/test.tr words/test.heads.tr --output study/results/counts/atis_en_tr.json

Each side has the subwords and the heads of the training and the test text. `--first` takes the
first pairs of the training text only. UAS is that of `syncattn-score`, of words.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.parses import read_heads
from syncattn_fairseq.data.words import choose_scheme, count_subwords
from syncattn_lab.evaluation.attachment_baselines import OffsetTable, score_baselines
from syncattn_lab.evaluation.results_file import record

SIDES = ("source", "target")
Sentence = tuple[list[str], list[int], Sequence[int]]


def read_text(pieces: str, heads: str, first: int | None = None) -> Iterator[Sentence]:
    """Yield each parsed sentence: its subwords, the number of subwords per word, its heads.

    Raises:
        DataError: the files have different numbers of lines or words.
    """
    texts, trees = [*read_lines(pieces)], [*read_heads(heads)]
    if len(texts) != len(trees):
        raise DataError(f"{heads}: {len(trees)} lines, but {pieces} has {len(texts)}")
    scheme = choose_scheme(texts)
    for number, (text, tree) in enumerate(islice(zip(texts, trees, strict=True), first), 1):
        lengths = count_subwords(text.split(), scheme)
        with naming(f"{heads}:{number}"):
            if tree and len(tree) != len(lengths):
                raise DataError(f"{len(tree)} heads, but {len(lengths)} words")
        if tree:
            yield text.split(), lengths, tree


def measure(side: str, files: Sequence[str], first: int | None) -> dict[str, float]:
    """Return the UAS, in per cent, of each kind of parse that knows no syntax, by its name.

    Args:
        side: ``source`` or ``target``, where a row does not see the word that it predicts.
        files: subwords and heads of the training text, and those of the test text.
        first: how many sentences of the training text count; None for all.
    """
    table = OffsetTable(sees_word=side == "source", left_only=side == "target")
    for sentence in read_text(files[0], files[1], first):
        table.add(*sentence)
    test = [*read_text(files[2], files[3])]
    text = [(subwords, lengths) for subwords, lengths, _ in test]
    scores = score_baselines([heads for *_, heads in test], side == "target", table, text)
    names = {name: "_".join(name.split()[:2]) for name in scores}
    return {names[name]: round(100 * score.uas, 4) for name, score in scores.items()}


def record_scores(
    path: Path, corpus: str, scores: Mapping[tuple[str, int], Mapping[str, float]]
) -> None:
    """Add the scores of parses, which nothing was trained for, to a results file.

    Args:
        path: the file, made if missing.
        corpus: the name of the corpus.
        scores: by the name of what parses, which takes a system's place, and its seed; each by the
            name of the score.
    """
    untrained: dict[str, Any] = {"overrides": {}, "valid": {}, "signatures": {}}
    untrained |= {"commit": "", "hardware": ""}
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [
        {"system": name, "seed": seed, **untrained, "scores": found}
        for (name, seed), found in scores.items()
    ]
    record(path, corpus, cells)


def main(words: Sequence[str] | None = None) -> None:
    """Write a results file with the UAS of parses that know no syntax.

    ``words`` are the command's arguments; None: those of the process.
    """
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("corpus")
    for side in SIDES:
        made.add_argument(f"--{side}", nargs=4, required=True, metavar="FILE")
    made.add_argument("--first", type=int)
    made.add_argument("--output", type=Path, required=True)
    args = made.parse_args(words)
    sides = {side: measure(side, getattr(args, side), args.first) for side in SIDES}
    names = sides["source"]
    scores = {
        (name, 1): {f"UAS {side}": found[name] for side, found in sides.items()} for name in names
    }
    record_scores(args.output, args.corpus, scores)


if __name__ == "__main__":
    main()
