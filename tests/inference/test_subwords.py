from pathlib import Path

import pytest

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.export import export
from syncattn_fairseq.inference.segmenters import is_file_name, open_segmenter
from tests.checkpoints import make_checkpoint

pytest.importorskip("subword_nmt", reason="needs the extra subword-nmt")


def write(folder: Path, content: bytes) -> Path:
    path = folder / "codes"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("content", [b"#version: 0.2\nh e\ne x\n", b"h e\r\ne x", b"h e\n\n\n"])
def test_codes_split_words(tmp_path, content):
    segmenter = open_segmenter(write(tmp_path, content))
    assert segmenter(["her  x", ""]) == [["he@@", "r", "x"], []]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", ""),
        (b"#version: 0.2\n", ""),
        (b"\n", ""),
        (b"#version: 0.2\ne r\nh e r\n", ":3"),
        (b"e r\n\nh e\n", ":2"),
        (b"word\n", ":1"),
        (b"#version: x\ne r\n", ":1"),
        (b"#version: 0.9\ne r\n", ":1"),
        (b"#version:\ne r\n", ":1"),
        (b"e r\n\xff h\n", ":2"),
    ],
)
def test_what_are_no_codes_is_refused(tmp_path, content, line):
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=f"^{path}{line}: ") as error:
        open_segmenter(path)
    assert "\n" not in str(error.value)


def test_empty_codes_do_not_end_the_program(small_corpus, tmp_path):
    """subword-nmt calls ``sys.exit``."""
    path = make_checkpoint(small_corpus, tmp_path / "model.pt", "transformer")
    export(path, small_corpus.data, "fairseq", tmp_path / "out")
    for language in ("en", "de"):
        (tmp_path / "out" / f"subwords.{language}").touch()
    with pytest.raises(DataError, match=r"subwords\.en: no subwords to join"):
        syncattn_fairseq.load(tmp_path / "out", device="cpu")


@pytest.mark.parametrize(
    ("name", "good"),
    [
        *((name, True) for name in ("en", "zh-Hans", "en_XX", "日本語", "de.bpe")),
        *((name, False) for name in ("", "../x", "a/b", "a b", "a\n", "a" * 101, 7, None, ["en"])),
    ],
)
def test_languages_are_parts_of_file_names(name, good):
    assert is_file_name(name) == good
