from pathlib import Path

import pytest
from fairseq.data import Dictionary

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.tasks.input_parses import InputParses

TEXTS = ["▁the ▁ma n ▁sleep s", "▁yes", ""]


WORDS, LABELS = Dictionary(), Dictionary()
for piece in " ".join(TEXTS).split():
    WORDS.add_symbol(piece)
for label in ("det", "nsubj", "root"):
    LABELS.add_symbol(label)


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_files_are_read_along_with_the_input(tmp_path):
    heads_file = write(tmp_path / "heads", "2 3 0", "0", "", "0")
    labels_file = write(tmp_path / "labels", "det nsubj root", "new", "", "root")
    parses = InputParses(WORDS, LABELS, heads_file, labels_file)
    heads, kinds = parses(TEXTS)
    assert [m.tolist() for m in heads] == [[2, 3, -1, 0, -1], [0], []]
    det, nsubj, root = (LABELS.index(label) for label in ("det", "nsubj", "root"))
    assert [m.tolist() for m in kinds] == [[det, nsubj, -1, root, -1], [LABELS.unk()], []]
    heads, kinds = parses(["▁yes"])
    assert (heads[0].tolist(), kinds[0].tolist()) == ([0], [root]), "the next line"


def test_without_files_and_parser_there_is_no_parse():
    heads, labels = InputParses(WORDS, None)(TEXTS)
    assert [m.tolist() for m in heads] == [[-2, -2, -1, -2, -1], [-2], []]
    assert labels == []


def test_an_empty_line_is_no_parse(tmp_path):
    heads, _ = InputParses(WORDS, None, write(tmp_path / "heads", ""))(["▁yes"])
    assert heads[0].tolist() == [-2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2 0", r"heads:1: has 2 entries, but the input has 3 words"),
        ("2 3 1", r"heads:1: 0 words have head 0"),
        ("2 x 0", r"heads:1: expected one integer per word"),
    ],
)
def test_a_parse_that_is_not_of_its_line_is_named(tmp_path, line, message):
    parses = InputParses(WORDS, None, write(tmp_path / "heads", line))
    with pytest.raises(DataError, match=message):
        parses(TEXTS[:1])


def test_a_file_that_ends_before_the_input_is_named(tmp_path):
    parses = InputParses(WORDS, None, write(tmp_path / "heads", "2 3 0"))
    with pytest.raises(DataError, match="heads: ends after 1 lines, but the input has more"):
        parses(TEXTS)


def test_an_unknown_parser_is_refused():
    with pytest.raises(DataError, match="is not a parser"):
        InputParses(WORDS, None, parser="spacy")
