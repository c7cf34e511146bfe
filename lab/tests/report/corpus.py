"""Decoded files and gold of a few sentences that are hard to show."""

from pathlib import Path
from typing import Any

from lab.tests.printed.making import line

SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img/src=x/onerror=alert(2)>"
LONG = 45
FLAT = "(S (N 昨日) (N 本) (P を) (V 読んだ))"

SOURCE = [
    "the dog barked",
    f"{SCRIPT} {IMAGE} 'x'",
    "昨日 本 を 読んだ",
    "הילד קורא ספר",
    "w " * LONG,
]
TARGET = ["der Hund bellte", f"a {SCRIPT} &amp;", "I read", "the boy reads", "v " * LONG]
SYSTEMS = ("plain", "parser", "latent")
TRANSLATED = {
    ("parser", 0): "bellte Hund der",
    **{(system, 2): "you" for system in SYSTEMS},
    ("latent", 3): "x",
}
"""The translations that are not the reference."""


def write_corpus(folder: Path) -> list[str]:
    """Write three systems' outputs and gold, and return the arguments that name them."""
    source, target = ([line.split() for line in lines] for lines in (SOURCE, TARGET))
    write(folder / "ref", [" ".join(words) for words in target])
    write(folder / "heads.s", [_chain(words) for words in source[:-1]] + [""])
    write(folder / "heads.t", ["2 0 2", *map(_chain, target[1:-1]), ""])
    write(folder / "labels.s", [" ".join([SCRIPT] * len(words)) for words in source[:-1]] + [""])
    write(folder / "trees.s", ["(S (NP (DT the) (NN dog)) (VBD barked))", "", FLAT, "", ""])
    write(folder / "align", ["0-0 1-1 2?2", "", "3-0 3?1", "0-0 1-1", ""])
    for system in SYSTEMS:
        beam, forced = [], []
        for n, (words, reference) in enumerate(zip(source, target, strict=True)):
            shown = [f"S-{n}\t{' '.join(words)}"]
            text = TRANSLATED.get((system, n), " ".join(reference))
            beam += [*shown, f"H-{n}\t-1\t{text}", f"D-{n}\t-1\t{text}"]
            count = min(len(words), len(reference))
            analysis: dict[str, Any] = {"links": [(i, i) for i in range(count)]}
            analysis["layer_links"] = {
                (layer, 0): [(len(words) - 1 if layer == 1 else i, i) for i in range(count)]
                for layer in (1, 2, 10)
            }
            if system == "parser":
                analysis["source_heads"] = [0] * len(words)
                analysis["target_heads"] = [*range(len(reference))]
            if system == "latent":
                for side, tokens in (("source", words), ("target", reference)):
                    gaps = [(i * 7 % 5) / 5 for i in range(len(tokens))]
                    analysis[f"{side}_distances"] = {1: gaps}
            texts = {"target": " ".join(reference), "source": " ".join(words)}
            forced.append(line(**texts, scheme="none", **analysis).rstrip("\n"))
        write(folder / f"{system}.beam", beam)
        write(folder / f"{system}.forced", forced)
    arguments = ["--references", "ref", "--source-heads", "heads.s", "--target-heads", "heads.t"]
    arguments += ["--source-labels", "labels.s", "--source-trees", "trees.s"]
    arguments += ["--alignments", "align"]
    for name, system in (("Plain", "plain"), (f"P {SCRIPT}", "parser"), ("LPSI", "latent")):
        arguments += ["--system", name, f"{system}.beam", f"{system}.forced"]
    return arguments


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _chain(words: list[str]) -> str:
    """Each word's head is the one before it."""
    return " ".join(map(str, range(len(words))))
