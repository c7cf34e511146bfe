"""Pairs out of archives."""

from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.lab.recipes.text_formats import collect
from tests.lab.recipes.packing import tar


def pack(archive: Path, members: dict[str, str]) -> None:
    archive.write_bytes(tar({name: text.encode() for name, text in members.items()}, "w:gz"))


def pairs(folder: Path, name: str, place: str) -> list[tuple[str, str]]:
    return list(collect(folder, name, place, ("en", "de")))


def test_each_side_has_its_file(tmp_path):
    members = {"d/news.de-en.en": "a\u2028b\n\nc\r\n", "d/news.de-en.de": "ä\u0085\nö\nü"}
    pack(tmp_path / "t.tgz", members)
    expected = [("a b", "ä"), ("", "ö"), ("c", "ü")]
    assert pairs(tmp_path, "plain", "t.tgz!d/news.de-en.{language}") == expected


def test_roles_name_the_sides_of_a_test_set(tmp_path):
    members = {"test-src.en.sgm": "<seg>s</seg>", "test-ref.de.sgm": "<seg>r</seg>"}
    pack(tmp_path / "t.tgz", {**members, "test-src.de.sgm": "<seg>other way round</seg>"})
    assert pairs(tmp_path, "sgm", "t.tgz!test-{role}.{language}.sgm") == [("s", "r")]


@pytest.mark.parametrize(
    ("english", "german", "counts"),
    [("a\nb\nc\n", "ä\n", (3, 1)), ("a\n", "ä\n\nü", (1, 3)), ("", "ä\n", (0, 1))],
)
def test_both_sides_have_as_many_sentences(tmp_path, english, german, counts):
    pack(tmp_path / "t.tgz", {"x.en": english, "x.de": german})
    with pytest.raises(DataError) as caught:
        pairs(tmp_path, "plain", "t.tgz!x.{language}")
    assert f"{counts[0]} in t.tgz!x.en but {counts[1]} in t.tgz!x.de" in str(caught.value)


def test_a_bad_line_is_named_with_its_archive(tmp_path):
    pack(tmp_path / "t.tgz", {"x.en": "<seg>a</seg>\n<seg>b", "x.de": "<seg>ä</seg>\n"})
    with pytest.raises(DataError, match=r"^t\.tgz!x\.en:2: '<seg>' has no partner"):
        pairs(tmp_path, "sgm", "t.tgz!x.{language}")


@pytest.mark.parametrize("name", ["plain", "sgm"])
def test_a_text_without_pairs_is_an_error(tmp_path, name):
    pack(tmp_path / "t.tgz", {"x.en": "", "x.de": ""})
    place = "t.tgz!x.{language}"
    with pytest.raises(DataError) as caught:
        pairs(tmp_path, name, place)
    assert str(caught.value) == f"{place}: no pairs of en and de; is {name} its format?"


def test_one_file_is_not_both_sides(tmp_path):
    (tmp_path / "x").write_text("a\n", encoding="utf-8")
    with pytest.raises(DataError, match="^x: the same file for both sides; put {language} into"):
        pairs(tmp_path, "plain", "x")
