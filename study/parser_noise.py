"""Train systems on parses that are partly wrong, and print their scores.

    python -m study.parser_noise builtin_en_de pascal dbsa --rates 0.2 0.4 --seeds 1 2 3
    python -m study.parser_noise multi30k_tiny_en_de_3625 dbsa --rates 1

For each rate, that share of the words (in training, validation and test text, on both sides) is
attached to a random other word, so that there is still a tree; errors of a real parser are less
random. With rate 1, only the root stays. Each rate has a folder of its own in ``--work``, with the
results; run it again and it continues. UAS in its tables is measured against the wrong heads.
"""

import argparse
import shutil
import subprocess
from pathlib import Path

import numpy as np

from syncattn_fairseq.base.files import replacing


def corrupt_heads(heads: list[int], rate: float, generator: np.random.Generator) -> list[int]:
    """Attach each word, with probability ``rate``, to a random word that is not its descendant.

    The result is a tree with the same root.
    """
    changed = list(heads)

    def depends(word: int, on: int) -> bool:
        while word not in (0, on):
            word = changed[word - 1]
        return word == on

    for word, head in enumerate(heads, 1):
        if head and generator.random() < rate:
            places = range(1, len(heads) + 1)
            others = [place for place in places if place != head and not depends(place, on=word)]
            if others:
                changed[word - 1] = int(generator.choice(others))
    return changed


def corrupt_file(path: Path, right: Path, rate: float) -> None:
    """Corrupt a file of dependency heads, a sentence in each line; ``right`` keeps the original."""
    if not right.exists():
        with replacing(right) as temporary:
            shutil.copy(path, temporary)
    generator = np.random.default_rng(1)
    lines = []
    for line in right.read_text(encoding="utf-8").splitlines():
        heads = corrupt_heads([*map(int, line.split())], rate, generator)
        lines.append(" ".join(map(str, heads)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Train the systems on corrupted parses at each rate, by ``syncattn-recipe``."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("corpus", help="a folder of configs/")
    made.add_argument("systems", nargs="+")
    made.add_argument("--rates", nargs="+", type=float, default=[0.2, 0.4])
    made.add_argument("--seeds", nargs="+", default=["1", "2", "3"])
    made.add_argument("--jobs", default="1")
    made.add_argument("--work", type=Path, default=Path("noise"))
    args = made.parse_args()
    for rate in args.rates:
        work = args.work / args.corpus / str(rate)
        copies = work / "right"
        copies.mkdir(parents=True, exist_ok=True)
        recipe = ["syncattn-recipe", args.corpus, *args.systems, "--work", str(work)]
        if not (work / "corrupted").exists():
            subprocess.run([*recipe, "--to", "binarise"], check=True)
            for path in sorted((work / "corpora" / args.corpus / "words").glob("*.heads.*")):
                corrupt_file(path, copies / path.name, rate)
            subprocess.run([*recipe, "--from", "binarise", "--to", "binarise"], check=True)
            (work / "corrupted").touch()
        train = ["--jobs", args.jobs, "--cpu", "--baseline", args.systems[0]]
        subprocess.run([*recipe, *train, "--seeds", *args.seeds], check=True)


if __name__ == "__main__":
    main()
