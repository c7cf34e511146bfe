import errno
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.locks import claiming, lock, locked, remove_locked


def test_only_one_process_at_a_time(tmp_path):
    path = tmp_path / "lock"
    with locked(path, "busy"):
        with pytest.raises(DataError, match="busy"), locked(path, "busy"):
            pass
        path.unlink()
    with locked(path, "busy"):
        assert path.exists()
    with pytest.raises(BlockingIOError), locked(path, "busy"):
        raise BlockingIOError  # of the block


def test_a_lock_that_is_removed_before_it_is_opened_is_made_again(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "lock"
    mkdir, removed = Path.mkdir, []

    def mkdir_in_vain(folder: Path, parents: bool) -> None:
        mkdir(folder, parents=parents)
        if not removed:
            folder.rmdir()
            removed.append(folder)

    monkeypatch.setattr(Path, "mkdir", mkdir_in_vain)
    with locked(path, "busy"):
        assert path.exists() and removed == [path.parent]


def test_the_lock_is_removed_last(tmp_path, monkeypatch):
    lock, unlink = tmp_path / "folder" / "lock", os.unlink

    def unlink_and_enter(path: Path, **options: Any) -> None:
        unlink(path, **options)
        if not lock.exists():
            assert not list(lock.parent.iterdir())
            others.enter_context(locked(lock, "busy"))
            (lock.parent / "theirs").touch()

    with ExitStack() as others, locked(lock, "busy"):
        for number in range(9):
            (lock.parent / f"folder {number}").mkdir()
            (lock.parent / f"folder {number}" / "file").touch()
            (lock.parent / f"file {number}").touch()
        (lock.parent / "link").symlink_to(tmp_path)
        monkeypatch.setattr(os, "unlink", unlink_and_enter)
        remove_locked(lock)
        assert sorted(path.name for path in lock.parent.iterdir()) == ["lock", "theirs"]


def test_what_is_called_before_waiting(tmp_path):
    waited: list[str] = []

    def busy() -> None:
        waited.append("busy")
        raise InterruptedError

    path = tmp_path / "new" / "lock"
    with (
        locked(path, busy, shared=True),
        locked(path, busy, shared=True),
        pytest.raises(InterruptedError),
        locked(path, busy),
    ):
        raise AssertionError
    with locked(path, busy), pytest.raises(InterruptedError), locked(path, busy, shared=True):
        raise AssertionError
    assert waited == ["busy", "busy"]


def test_a_folder_that_nobody_can_make_is_an_error(tmp_path):
    (tmp_path / "broken").symlink_to(tmp_path / "away")
    for folder in (Path("/proc/nowork"), tmp_path / "broken", tmp_path / "broken" / "below"):
        with pytest.raises(FileNotFoundError), locked(folder / "lock", "busy"):
            pass


@pytest.mark.parametrize("fault", [errno.ENOLCK, errno.EBADF])  # no locks; NFS, of a folder
def test_a_file_system_without_locks_stops_nobody(tmp_path, monkeypatch, fault):
    def refuse(*_):
        raise OSError(fault, "no locks")

    monkeypatch.setattr("fcntl.flock", refuse)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    assert lock(descriptor, "busy")
    os.close(descriptor)


def test_errors_of_a_claim_name_the_file(tmp_path):
    path = tmp_path / ("o" * 252)  # with what a hidden name adds, too long
    with pytest.raises(OSError) as error, claiming(path):
        pass
    assert error.value.filename == str(path)
