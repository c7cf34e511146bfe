"""Lines are counted as they are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_lines, same_line_count


@given(st.text(st.sampled_from("aé\n\r\u2028\x0b"), min_size=1, max_size=12))
def test_the_count_is_that_of_the_lines(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_bytes(content.encode())
    assert same_line_count(path) == len(list(read_lines(path)))


def test_what_is_not_utf_8_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\r\n\xe9\nb\n")
    with pytest.raises(DataError, match="text:2: not UTF-8"):
        same_line_count(path)
