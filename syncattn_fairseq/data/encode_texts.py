"""Binarise texts for ``fairseq-preprocess`` a block of lines at a time, byte for byte as it does.

fairseq makes a tensor of every line and counts one word at a time, which takes ten times as long,
and holds the sizes of all lines in lists of Python.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from fairseq.binarizer import BinarizeSummary, FileBinarizer, VocabularyDatasetBinarizer
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import best_fitting_int_dtype
from fairseq.tokenizer import tokenize_line

from ..base.text import read_blocks
from ..base.worker_pool import map_in_order
from .mmap_blocks import write_dataset
from .words import UNKNOWN

Block: TypeAlias = tuple[list[str], ...]
"""The lines of one text (`read_blocks`)."""

#: Number of characters of the blocks in which words are counted. Adding up counts takes time, so
#: these blocks are large.
_COUNTED = 2**21


@contextmanager
def encoding_blocks() -> Iterator[None]:
    """Within the block, let ``fairseq-preprocess`` binarise texts and count words by this module.

    Its texts must have passed the checks of :mod:`.preprocess_texts`, so that both read the same
    lines. Whatever is no text in the ``mmap`` format, fairseq binarises.
    """
    places = (FileBinarizer, "multiprocess_dataset"), (Dictionary, "add_file_to_dictionary")
    theirs = [vars(owner)[name] for owner, name in places]
    FileBinarizer.multiprocess_dataset = partial(_binarise, FileBinarizer.multiprocess_dataset)
    Dictionary.add_file_to_dictionary = partial(_add_words, Dictionary.add_file_to_dictionary)
    try:
        yield
    finally:
        for (owner, name), function in zip(places, theirs, strict=True):
            setattr(owner, name, function)


def _add_words(
    theirs: Callable[..., None], path: str, dictionary: Dictionary, tokenize: Any, workers: int
) -> None:
    if tokenize is not tokenize_line:
        theirs(path, dictionary, tokenize, workers)
        return
    counted: Counter[str] = Counter()
    blocks = read_blocks(path, characters=_COUNTED)
    for words in map_in_order(partial(_count, dictionary.eos_word), blocks, workers, together=1):
        counted.update(words)
    for word, count in sorted(counted.items()):
        dictionary.add_symbol(word, count)


def _count(end: str, block: Block) -> Counter[str]:
    counted = Counter({end: len(block[0])})
    for line in block[0]:
        counted.update(line.split())
    return counted


def _binarise(
    theirs: Callable[..., BinarizeSummary],
    path: str,
    dataset_impl: str,
    binarizer: Any,
    output_prefix: str,
    vocab_size: int | None = None,
    num_workers: int = 1,
) -> BinarizeSummary:
    if dataset_impl != "mmap" or not isinstance(binarizer, VocabularyDatasetBinarizer):
        return theirs(path, dataset_impl, binarizer, output_prefix, vocab_size, num_workers)
    summary = BinarizeSummary(replaced=Counter())
    encode = partial(_encode, binarizer.dict.indices, binarizer.dict.unk(), binarizer.dict.eos())

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        read = read_blocks(path)
        for tokens, sizes, replaced in map_in_order(encode, read, num_workers, together=1):
            summary.num_seq += len(sizes)
            summary.num_tok += len(tokens)
            summary.replaced[UNKNOWN] += replaced
            yield tokens, sizes

    write_dataset(Path(output_prefix), best_fitting_int_dtype(vocab_size), blocks())
    return summary


def _encode(
    indices: Mapping[str, int], unknown: int, end: int, block: Block
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the token indices of a block, the length of each line, and how many are unknown."""
    tokens: list[int] = []
    sizes = []
    said = 0
    for line in block[0]:
        words = line.split()
        tokens += map(indices.get, words, repeat(unknown))
        tokens.append(end)
        sizes.append(len(words) + 1)
        if UNKNOWN in line:
            said += words.count(UNKNOWN)
    replaced = tokens.count(unknown) - said
    return np.array(tokens, np.int64), np.array(sizes, np.int32), replaced
