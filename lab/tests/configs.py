"""The corpora and systems of ``configs/``, and as few pairs of them as there is something to see.

A pair is merged file by file: what one system of a corpus shows of the corpus's files, and one
corpus of a system's, all others show too. Pairs with a file of their own are all there.
"""

from pathlib import Path

from syncattn_lab.recipes.corpus_facts import Corpus, load_corpus
from syncattn_lab.recipes.systems import SHARED

CORPORA = [load_corpus(path.parent) for path in sorted(SHARED.glob("*/_data.yaml"))]
#: Every system of every corpus.
SYSTEMS = [(corpus, name) for corpus in CORPORA for name in corpus.systems]


def _choose_pairs() -> list[tuple[Corpus, str]]:
    """Choose the pair that shows most of what none has shown yet, until all is seen."""
    parts: list[set[Path | tuple[str, str]]] = []
    for corpus, name in SYSTEMS:
        system = corpus.system(name)
        family = system.files[-1].parent.name
        parts.append({*system.files[-system.own :], (corpus.name, family)})
    seen: set[Path | tuple[str, str]] = set()
    pairs = []
    while True:
        most = max(range(len(parts)), key=lambda number: len(parts[number] - seen))
        if parts[most] <= seen:
            return pairs
        pairs.append(SYSTEMS[most])
        seen |= parts[most]


#: One system of each family of every corpus, one corpus of every system, and the pairs with files.
PAIRS = _choose_pairs()
