from pathlib import Path
from types import SimpleNamespace

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.segmenters import (
    SubwordModel,
    Words,
    is_file_name,
    open_segmenter,
    open_segmenters,
)
from syncattn_fairseq.export.pipeline import _add_subwords

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
    path, empty = small_corpus.checkpoint("transformer"), write(tmp_path, b"")
    with pytest.raises(DataError, match=f"{empty}: the file has no pairs of subwords to join"):
        small_corpus.load(path, subwords=empty)


def test_symbols_of_a_dictionary_are_no_words(tmp_path):
    segmenter = open_segmenter(write(tmp_path, b"< /\n</ s\n</s >\n< unk>\n"))
    assert segmenter(["a </s> b"]) == [["a", "<unk>", "b"]]
    words = open_segmenters(None, (), ("en", "de"), (["<s>", "<pad>", "</s>", "<unk>", "a"],) * 2)[
        0
    ]
    assert words(["a </s> b <pad> <unk>"]) == [["a", "<unk>", "b", "<unk>", "<unk>"]]
    assert words.unknown == {"<unk>": 3, "b": 1}
    assert words.describe_unknown().startswith("4 subwords of the text are not in the model's dict")
    words(["a </s> b <pad> <unk>"])  # to parse it, say
    assert words.unknown.total() == 4


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("▁the ▁old", "sed 's/ //g; s/▁/ /g'"),
        ("▁ 猫", "sed 's/ //g; s/▁/ /g'"),
        ("the▁ o ld▁", "sed 's/ //g; s/▁/ /g'"),
        ("the o@@ ld", "sed 's/@@ //g'"),
    ],
)
def test_text_in_subwords_is_refused(tmp_path, text, remedy):
    for segmenter in (open_segmenter(write(tmp_path, b"h e\n")), Words()):
        with pytest.raises(
            DataError, match="^sentence 2: the text is in subwords already"
        ) as error:
            segmenter(["of @@ and a_b▁c ▁", text])
        assert str(error.value).endswith(f"; give words: {remedy}")


def test_a_vocabulary_restricts_the_subwords_of_codes(tmp_path):
    codes = write(tmp_path, b"#version: 0.2\nh e\nhe r</w>\n")
    vocabulary = tmp_path / "vocabulary"
    vocabulary.write_text("her 3\nhe@@ 9\nr 5\nx 4\n")
    assert SubwordModel(codes, vocabulary).open()(["her x"]) == [["her", "x"]]
    assert SubwordModel(codes, vocabulary, 4).open()(["her x"]) == [["he@@", "r", "x"]]
    model = SubwordModel(codes, vocabulary, 4)
    folder = tmp_path / "exported"
    folder.mkdir()
    task = SimpleNamespace(schemes=("subword_nmt", "subword_nmt"))
    _add_subwords(
        SimpleNamespace(subwords=(model,) * 2, source="en", target="de", task=task), folder
    )
    for segmenter in open_segmenters(None, [folder], ("en", "de"), (["he@@"], ["r@@"])):
        assert segmenter(["her x"]) == [["he@@", "r", "x"]]
    with pytest.raises(DataError, match=f"^{vocabulary}: no subword has a count of 10"):
        SubwordModel(codes, vocabulary, 10).open()
    vocabulary.write_text("her 3\nhe@@\n")
    with pytest.raises(DataError, match=f"^{vocabulary}:2: expected a subword and its count"):
        SubwordModel(codes, vocabulary).open()


@pytest.mark.parametrize(
    ("name", "good"),
    [
        *((name, True) for name in ("en", "zh-Hans", "en_XX", "日本語", "de.bpe")),
        *((name, False) for name in ("", "../x", "a/b", "a b", "a\n", "a" * 101, 7, None, ["en"])),
    ],
)
def test_languages_are_parts_of_file_names(name, good):
    assert is_file_name(name) == good
