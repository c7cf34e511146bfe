"""Texts and dictionaries are those of `fairseq-preprocess`, byte for byte."""

import gc
import tracemalloc
from pathlib import Path

from fairseq.binarizer import (
    AlignmentDatasetBinarizer,
    BinarizeSummary,
    FileBinarizer,
    VocabularyDatasetBinarizer,
)
from fairseq.data import Dictionary
from fairseq.tokenizer import tokenize_line
from fairseq.utils import parse_alignment
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base import text as texts
from syncattn_fairseq.data import encode_texts, mmap_blocks
from syncattn_fairseq.data.encode_texts import encoding_blocks

# What the checks of a text let through: white space of many kinds, and no control characters.
LINES = st.lists(
    st.text(st.sampled_from("ab@▁é猫<unk>  \t\v\x1c\x85\u00a0\u3000\u2028"), max_size=12),
    min_size=1,
    max_size=9,
)


def binarise(path: Path, output: Path, workers: int, size: int | None = None) -> tuple[bytes, ...]:
    """Count words, binarise, and return what was written."""
    summary = write(path, output, workers, size)
    files = [Path(f"{output}.{suffix}").read_bytes() for suffix in ("bin", "idx", "txt")]
    return (*files, str(summary).encode())


def write(path: Path, output: Path, workers: int, size: int | None = None) -> BinarizeSummary:
    """Count words, and write the dictionary and the binarised text."""
    dictionary = Dictionary()
    Dictionary.add_file_to_dictionary(str(path), dictionary, tokenize_line, workers)
    dictionary.finalize(threshold=2)
    summary = FileBinarizer.multiprocess_dataset(
        str(path),
        "mmap",
        VocabularyDatasetBinarizer(dictionary),
        str(output),
        vocab_size=size or len(dictionary),
        num_workers=workers,
    )
    dictionary.save(f"{output}.txt")
    return summary


@given(LINES, st.booleans(), st.sampled_from([None, 70_000, 2**32]))
def test_files_are_those_of_fairseq(tmp_path_factory, lines, ended, size):
    folder = tmp_path_factory.mktemp("texts")
    text = "\n".join(lines) + "\n" * ended
    (folder / "text").write_text(text or "a", encoding="utf-8", newline="")
    theirs = binarise(folder / "text", folder / "theirs", 1, size)
    with encoding_blocks():
        assert binarise(folder / "text", folder / "ours", 1, size) == theirs
    assert {path.suffix for path in folder.iterdir()} == {"", ".bin", ".idx", ".txt"}


def test_several_processes_write_the_same(tmp_path, monkeypatch):
    (tmp_path / "text").write_text("".join(f"a b{n % 7} c{n}\n\n" for n in range(500)))
    theirs = binarise(tmp_path / "text", tmp_path / "theirs", 2)
    defaults = texts.read_blocks.__kwdefaults__ | {"characters": 900}
    monkeypatch.setattr(texts.read_blocks, "__kwdefaults__", defaults)  # many blocks
    with encoding_blocks():
        assert binarise(tmp_path / "text", tmp_path / "ours", 2) == theirs


def test_fairseq_does_the_rest_and_comes_back(tmp_path):
    text = tmp_path / "text"
    text.write_text("0-1 1-1\n")
    before = FileBinarizer.multiprocess_dataset, Dictionary.add_file_to_dictionary
    with encoding_blocks():
        dictionary = Dictionary()
        Dictionary.add_file_to_dictionary(str(text), dictionary, list, 1)
        assert "-" in dictionary.indices
        links = AlignmentDatasetBinarizer(parse_alignment)
        summary = FileBinarizer.multiprocess_dataset(str(text), "mmap", links, f"{text}.align")
        assert summary.num_tok == 4
    assert before == (FileBinarizer.multiprocess_dataset, Dictionary.add_file_to_dictionary)


def test_memory_does_not_grow_with_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(encode_texts, "_COUNTED", 2**18)
    monkeypatch.setattr(mmap_blocks, "_SENTENCES", 2**11)
    peaks = []
    for lines in 16_000, 64_000:  # of which the shorter one has several blocks, too
        (tmp_path / "text").write_text(f"{'w' * 90} a b\n" * lines)
        gc.collect()
        tracemalloc.start()
        with encoding_blocks():
            write(tmp_path / "text", tmp_path / "ours", 1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
