"""Draw where the heads of a SyncAttn model attend, as an SVG file.

Usage: draw_attention.py DATA-BIN CHECKPOINT WORDS SENTENCE OUTPUT.svg

DATA-BIN and CHECKPOINT are fairseq's; WORDS is the folder of the test set's words, gold heads and
links; SENTENCE is its number, from 0.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from torch import Tensor

import syncattn_fairseq.plugin  # noqa: F401  (registers task and model)
from syncattn_fairseq.data.words import detect_scheme, word_lengths
from syncattn_fairseq.evaluation.alignment import read_alignments

CELL = 17
FONT = 'font-family="sans-serif" font-size="11" fill="#333"'


def between_words(attention: Tensor, rows: list[int], columns: list[int]) -> Tensor:
    """Add up attention to the subwords of a word; a word attends as its last subword does."""
    last = torch.tensor(rows).cumsum(0) - 1
    return torch.stack([part.sum(-1) for part in attention[last].split(columns, dim=-1)], dim=-1)


def panel(
    title: str, attention: Tensor, rows: list[str], columns: list[str], gold: set[tuple[int, int]]
) -> tuple[str, int, int]:
    """Draw one matrix; return SVG, width and height."""
    left = 7 * max(map(len, rows)) + 12
    top = 7 * max(map(len, columns)) + 40
    parts = [f'<text x="0" y="14" {FONT} font-weight="bold">{escape(title)}</text>']
    for i, word in enumerate(rows):
        y = top + i * CELL
        parts.append(
            f'<text x="{left - 6}" y="{y + 12}" text-anchor="end" {FONT}>{escape(word)}</text>'
        )
        for j in range(len(columns)):
            x, p = left + j * CELL, attention[i, j].item()
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" '
                f'fill="#1f4e9c" fill-opacity="{0.04 + 0.96 * p:.3f}"/>'
            )
            if (i, j) in gold:
                centre = f'cx="{x + CELL / 2 - 0.5}" cy="{y + CELL / 2 - 0.5}"'
                parts.append(
                    f'<circle {centre} r="4.5" fill="none" stroke="#e07b00" stroke-width="1.6"/>'
                )
    for j, word in enumerate(columns):
        x = left + j * CELL + 12
        parts.append(
            f'<text transform="translate({x},{top - 6}) rotate(-90)" {FONT}>{escape(word)}</text>'
        )
    return "\n".join(parts), left + CELL * len(columns), top + CELL * len(rows)


def tree(heads: list[int]) -> set[tuple[int, int]]:
    """Return (word, head) pairs from 0; the root is its own head."""
    return {(i, head - 1 if head else i) for i, head in enumerate(heads)}


@torch.no_grad()
def main(data: str, checkpoint: str, words: Path, number: int, output: Path) -> None:
    """Draw one sentence of the test set."""
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task(
        [checkpoint], arg_overrides={"data": data}
    )
    model.eval()
    task.load_dataset("test")
    dataset: Any = task.dataset("test")
    batch = dataset.collater([dataset[number]])
    extra = model(**batch["net_input"])[1]
    text, lengths, heads = {}, {}, {}
    for side, dictionary, key in (
        ("en", task.source_dictionary, "source"),
        ("de", task.target_dictionary, "target"),
    ):
        tokens = [dictionary[t] for t in dataset[number][key][:-1]]
        lengths[side] = word_lengths(tokens, detect_scheme(dictionary.symbols))
        text[side] = (words / f"test.{side}").read_text("utf-8").splitlines()[number].split()
        line = (words / f"test.heads.{side}").read_text("utf-8").splitlines()[number]
        heads[side] = [int(head) for head in line.split()]
    sure, possible = read_alignments(words / "test.align")
    links = {(j, i) for i, j in sure[number] | possible[number]}

    panels = [
        ("Source head E", extra["src_dependency"][0, 0], "en", "en", tree(heads["en"])),
        ("Cross-attention C", extra["attn"][0][0], "de", "en", links),
        ("Target head D", extra["tgt_dependency"][0, 0], "de", "de", tree(heads["de"])),
    ]
    drawn, x, height = [], 0, 0
    for title, attention, rows, columns, gold in panels:
        matrix = between_words(attention[:-1, :-1], lengths[rows], lengths[columns])
        content, width, tall = panel(title, matrix, text[rows], text[columns], gold)
        drawn.append(f'<g transform="translate({x},0)">{content}</g>')
        x, height = x + width + 24, max(height, tall)
    output.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x}" height="{height + 4}">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(drawn) + "\n</svg>\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
