"""Parsers for tests: each word depends on the one before it."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from syncattn_fairseq.base.errors import BadParse
from syncattn_fairseq.parsing.parser import FAILED, Parse, Parser, Sentences

CONLLU = """\
import sys
for line in sys.stdin:
    words = line.rstrip("\\n").split(" ")
    if "crash" in words:
        sys.exit("cannot parse " + words[-1])
    if "silence" in words:
        continue
    for number, word in enumerate(words, 1):
        print(number, word, "_", "_", "_", "_", number - 1, "dep", "_", "_", sep="\\t")
    print(flush=True)
"""
"""A program that writes CoNLL-U."""


class Chain(Parser):
    """Fails on sentences with the word "fail"; with "die" or "kill", the process dies."""

    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        for index in reversed(range(len(sentences))):
            words = sentences[index]
            if "die" in words:
                os._exit(3)
            if "kill" in words:
                os.kill(os.getpid(), 9)
            if "wait" in words:
                time.sleep(0.1)
            if "fail" in words:
                yield index, BadParse(FAILED, f"cannot parse {words[-1]}")
            elif "cycle" in words:
                yield index, Parse(list(range(2, len(words) + 1)) + [1], ["dep"] * len(words))
            else:
                yield index, Parse(list(range(len(words))), ["dep"] * len(words))


@dataclass(frozen=True)
class ChainSource:
    description: dict[str, str] = field(default_factory=dict)
    models: tuple[Path, ...] = ()

    def files(self) -> list[Path]:
        return list(self.models)

    def describe(self) -> dict[str, str]:
        return {"parser": "chain", **self.description}

    def modules(self) -> list[str]:
        return []

    def open(self, worker: int) -> Parser:
        return Chain()
