import os
from pathlib import Path

import pytest

from syncattn_lab.report import remembered
from syncattn_lab.report.remembered import remember


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "syncattn-lab" / "x.json"


def test_a_value_is_made_once_for_a_source_and_versions(monkeypatch):
    made = []

    def make():
        made.append(len(made))
        return {"a": [len(made), "é"]}

    first = remember("x", make, "code")
    assert first == {"a": [1, "é"]} == remember("x", make, "code")
    assert remember("y", make, "code") == {"a": [2, "é"]}
    assert remember("x", make, "other code") == {"a": [3, "é"]} == remember("x", make, "other code")
    monkeypatch.setattr(remembered, "version", lambda name: "9.9")
    assert remember("x", make, "other code") == {"a": [4, "é"]}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"key": 1}', "\udcff"])
def test_a_damaged_file_is_made_again(cache, text):
    cache.parent.mkdir()
    cache.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert remember("x", lambda: 1) == 1
    assert remember("x", lambda: 2) == 1


def test_no_cache_is_needed(cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert [remember("x", lambda: 1), remember("x", lambda: 2)] == [1, 2]
    assert not cache.exists()


def test_the_cache_is_where_others_are(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert remember("x", lambda: 1) == 1
    assert (tmp_path / "home" / ".cache" / "syncattn-lab" / "x.json").is_file()
