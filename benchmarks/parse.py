"""Measure sentences per second of ``syncattn-parse``'s parser against a plain loop over Stanza.

Both take turns on the same text, with the same models, on the same device; the second row of the
loop shows how much of a ratio is noise. The loop gives Stanza 1,000 sentences at a time, in the
order of the text. Also prints how many heads and labels are the same in both, and how many heads
are those of ``--heads``. Usage: ``python benchmarks/parse.py --lang de --input TEXT --stanza-dir
DIR``.
"""

import argparse
import sys
from itertools import islice
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import common  # noqa: E402
from syncattn_fairseq.base.text import read_lines  # noqa: E402
from syncattn_fairseq.data.parses import read_heads  # noqa: E402
from syncattn_fairseq.parsing.parser import MAX_WORDS, Parse  # noqa: E402
from syncattn_fairseq.parsing.stanza_parser import StanzaModels, StanzaParser  # noqa: E402


def plain_loop(parser: StanzaParser, sentences: list[list[str]]) -> list[Parse]:
    """Parse sentences by a plain loop over Stanza, as a simple script would."""
    found = []
    for start in range(0, len(sentences), 1000):
        for sentence in parser.pipeline(sentences[start : start + 1000]).sentences:
            words = sentence.words
            found.append(Parse([word.head for word in words], [word.deprel for word in words]))
    return found


def ours(parser: StanzaParser, sentences: list[list[str]]) -> list[Parse]:
    """Parse sentences as ``syncattn-parse`` does."""
    found = dict(parser.analyse(sentences))
    parses = [found[index] for index in range(len(sentences))]
    return [parse for parse in parses if isinstance(parse, Parse)]


def main() -> None:
    """Measure ``syncattn-parse``'s parser and a plain loop over Stanza, and print their speeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lang", required=True)
    parser.add_argument("--stanza-dir", required=True)
    parser.add_argument("--input", type=Path, required=True, help="one sentence per line, in words")
    parser.add_argument("--heads", type=Path, help="known heads of these words")
    parser.add_argument("--lines", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    lines = islice(zip(read_lines(args.input), _heads(args), strict=False), args.lines)
    pairs = [(line.split(), heads) for line, heads in lines if 0 < len(line.split()) <= MAX_WORDS]
    sentences = [words for words, _ in pairs]
    models = StanzaModels(args.lang, args.stanza_dir)
    plain = StanzaParser(models, args.device)
    vars(plain.pipeline.processors["depparse"].trainer.model).pop("predict", None)
    fast = StanzaParser(models, args.device)
    expected, found = plain_loop(plain, sentences), ours(fast, sentences)
    seconds = common.interleaved(
        {
            "plain loop": lambda: plain_loop(plain, sentences),
            "plain loop again": lambda: plain_loop(plain, sentences),
            "syncattn-parse": lambda: ours(fast, sentences),
        },
        args.rounds,
        torch.device(args.device),
        warmup=0,
    )
    words = sum(map(len, sentences))
    print(f"{len(sentences):,} sentences, {words:,} words, {common.hardware(args)}")
    common.print_ratios(seconds, invert=True)
    for name, values in seconds.items():
        best = min(values)
        print(f"{name:34}{len(sentences) / best:9.0f} sentences/s{words / best:9.0f} words/s, best")
    _compare("heads as in the plain loop", [p.heads for p in expected], [p.heads for p in found])
    _compare("labels as in the plain loop", [p.labels for p in expected], [p.labels for p in found])
    if args.heads:
        known = [(heads, parse.heads) for (_, heads), parse in zip(pairs, found, strict=True)]
        _compare(f"heads as in {args.heads}", *map(list, zip(*known, strict=True)))


def _heads(args: argparse.Namespace) -> object:
    return read_heads(args.heads) if args.heads else ([] for _ in read_lines(args.input))


def _compare(what: str, expected: list[list], found: list[list]) -> None:
    pairs = [
        pair
        for one, other in zip(expected, found, strict=True)
        for pair in zip(one or (), other, strict=bool(one))
    ]
    same = sum(one == other for one, other in pairs)
    print(f"{what}: {same:,} of {len(pairs):,} words ({same / len(pairs):.4%})")


if __name__ == "__main__":
    main()
