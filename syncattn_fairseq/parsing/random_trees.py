"""Random trees in place of a parser's, as a control for systems that read or learn trees."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..base.errors import BadParse
from .parser import Parse, Parser, ParserSource, Sentences

LABEL = "dep"


@dataclass(frozen=True)
class RandomTrees(ParserSource):
    """A parser that draws a random recursive tree for each sentence, as a control (fake parse).

    Equal sentences have equal trees, wherever they stand; another seed draws other trees.
    """

    about: ClassVar = "a random tree, always the same for a sentence; a control"
    specs: ClassVar[tuple[str, ...]] = ("SEED",)

    seed: int = 1

    @classmethod
    def from_spec(cls, spec: str) -> RandomTrees | None:
        """Make the parser with the seed after ``random:``; None if the seed is no number."""
        return cls(int(spec)) if spec.isascii() and spec.isdecimal() and len(spec) < 10 else None

    def describe(self) -> dict[str, str]:
        """Return the parser's name and its seed."""
        return {"parser": "random", "seed": str(self.seed)}

    def open(self, worker: int | None = None) -> Parser:
        """Return the parser, which is the same in every process."""
        return _RandomParser(self.seed)


class _RandomParser(Parser):
    def __init__(self, seed: int) -> None:
        self.seed = seed

    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """Draw a random tree for each sentence, which depends only on its words and on the seed."""
        import numpy as np

        from ..data.controls import draw_tree  # imports PyTorch

        for index, words in enumerate(sentences):
            text = zlib.crc32("\n".join(words).encode("utf-8", "surrogatepass"))
            heads = draw_tree(len(words), np.random.default_rng([self.seed, text]))
            yield index, Parse(heads.tolist(), [LABEL] * len(words))
