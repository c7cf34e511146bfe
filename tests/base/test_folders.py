import errno
import os
import signal
from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError, describe
from syncattn_fairseq.base.folders import filling, making
from tests.importing import fork


def fill(folder: Path, text: str) -> None:
    with filling(folder) as files:
        for name in ("a", "b"):
            (files / name).write_text(text)


def held(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_all_files_appear_or_none(tmp_path):
    folder = tmp_path / "above" / "folder"
    with pytest.raises(ZeroDivisionError), filling(folder) as files:
        (files / "a").touch()
        raise ZeroDivisionError
    assert not folder.exists()
    fill(folder, "1")
    (folder / "other").write_text("0")
    fill(folder, "2")
    assert held(folder) == {"a": "2", "b": "2", "other": "0"}
    with pytest.raises(ZeroDivisionError), filling(folder) as files:
        (files / "a").touch()
        raise ZeroDivisionError
    assert held(folder) == {"a": "2", "b": "2", "other": "0"}


def test_no_file_goes_through_a_link(tmp_path):
    fill(tmp_path / "folder", "1")
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "folder" / "b").unlink()
    (tmp_path / "folder" / "b").symlink_to(tmp_path / "mine")
    with pytest.raises(DataError, match=f"^{tmp_path}/folder/b: is a symbolic link where this"):
        fill(tmp_path / "folder", "2")
    assert held(tmp_path / "folder") == {"a": "1", "b": "mine"}


def test_what_a_killed_run_began_is_thrown_away(tmp_path):
    def begin() -> None:
        with filling(tmp_path) as files:
            (files / "stray").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    assert fork(begin) == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [".unfinished"]
    fill(tmp_path, "1")
    assert held(tmp_path) == {"a": "1", "b": "1"}


def test_what_a_killed_run_completed_is_kept(tmp_path, monkeypatch, capsys):
    replace = os.replace

    def replace_once(source: Path, target: Path) -> None:
        replace(source, target)
        os.kill(os.getpid(), signal.SIGKILL)

    def begin() -> None:
        monkeypatch.setattr(os, "replace", replace_once)
        fill(tmp_path, "1")

    assert fork(begin) == -signal.SIGKILL
    assert sorted(path.name for path in tmp_path.iterdir()) == [".unfinished", "a"]
    with pytest.raises(ZeroDivisionError), filling(tmp_path):
        assert (tmp_path / "b").exists()
        raise ZeroDivisionError
    assert held(tmp_path) == {"a": "1", "b": "1"}
    assert "moved here the files of an earlier run" in capsys.readouterr().out


def test_what_cannot_be_moved_is_kept(tmp_path, monkeypatch):
    replace = os.replace

    def replace_a(source: Path, target: Path) -> None:
        if target.name != "a":
            raise OSError("no permission")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_a)
        with pytest.raises(OSError, match="no permission"):
            fill(tmp_path, "1")
    with filling(tmp_path):
        assert (tmp_path / "b").exists()
    assert held(tmp_path) == {"a": "1", "b": "1"}


def test_a_folder_in_the_way_is_told_before_anything_is_moved(tmp_path):
    (tmp_path / "b").mkdir()
    with pytest.raises(DataError, match=f"^{tmp_path}/b: a folder has the name of a file"):
        fill(tmp_path, "1")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("begin", [making, filling])
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "new: No space left on device"),
        (
            RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0"),
            "full?",
        ),
        (
            ValueError("Io(Os { code: 28, message: 'No space left on device' })"),
            "is the disk full?",
        ),
    ],
)
def test_a_full_disk_is_named_with_the_folder(tmp_path, begin, error, line):
    with pytest.raises((OSError, DataError)) as raised, begin(tmp_path / "new"):
        raise type(error)(*error.args)  # a new one each time
    told = raised.value
    text = describe(told) if isinstance(told, OSError) else str(told)
    assert text.startswith(str(tmp_path / "new")) and text.endswith(line)
    assert not (tmp_path / "new").exists()
    with pytest.raises(RuntimeError, match="^other$"), begin(tmp_path / "new"):
        raise RuntimeError("other")


def test_a_folder_is_made_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "above" / "folder"

    def begin() -> None:
        with making(folder) as files:
            (files / "stray").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    assert fork(begin) == -signal.SIGKILL
    assert [path.name for path in folder.parent.iterdir()] == [".folder.unfinished"]
    with pytest.raises(ZeroDivisionError), making(folder) as files:
        (files / "a").touch()
        raise ZeroDivisionError
    assert not list(folder.parent.iterdir())
    with making(folder) as files:
        (files / "a").write_text("1")
        with (
            pytest.raises(DataError, match="another process is writing this folder"),
            making(folder),
        ):
            pass
        assert not folder.exists()
    assert held(folder) == {"a": "1"} and list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize("name", ["", "complete", "files", "files/a", "lock"])
@pytest.mark.parametrize("making_it", [False, True], ids=["filling", "making"])
def test_a_strangers_link_leads_nowhere(tmp_path, name, making_it):
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("1")
    unfinished = tmp_path / ".folder.unfinished" if making_it else folder / ".unfinished"
    link = unfinished / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    with pytest.raises(DataError, match=rf"^{link}: is a symbolic link where this command"):
        if making_it:
            with making(folder):
                pass
        else:
            fill(folder, "1")
    assert held(elsewhere) == {"kept": "1"}
