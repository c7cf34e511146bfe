import logging
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.checkpoints.averaging import average_checkpoints
from syncattn_fairseq.patches.whole_checkpoints import find_intact, mend
from tests.patches.test_resuming import resume, save
from tests.test_checkpoints import Call


def flip_a_weight(data: bytearray) -> bytes:
    at = data.index(torch.full((10,), 9.0).numpy().tobytes())
    data[at] ^= 1
    return bytes(data)


DAMAGE = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "garbage": lambda data: bytes(range(256)) * 9,
    "text": lambda data: b"not a checkpoint\n",
    "flipped": flip_a_weight,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_error_of_loading_names_the_file(tmp_path, damage):
    path = save(tmp_path / "model.pt", 9)
    assert checkpoint_utils.load_checkpoint_to_cpu(str(path))["model"]["weight"][0] == 9
    path.write_bytes(DAMAGE[damage](bytearray(path.read_bytes())))
    with pytest.raises(DataError, match=r"model\.pt: ") as error:
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match=r"model\.pt: "):  # as fairseq-generate does
        checkpoint_utils.load_model_ensemble([str(path)])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.tensor([1, float("nan")]), "the parameter weight contains NaN; use another"),
        (
            torch.tensor([1, float("nan")], dtype=torch.float16),
            "the parameter weight contains NaN; use another",
        ),
        ([1.0], "the parameter weight is list, not a tensor; "),
    ],
)
def test_weights_are_numbers(tmp_path, weight, message):
    path = save(tmp_path / "model.pt", 1, model={"weight": weight})
    with pytest.raises(DataError, match=f"^{path}: {message}"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    with pytest.raises(DataError, match=f"^{path}: {message}"):
        average_checkpoints([path], tmp_path / "mean.pt")
    assert [*tmp_path.iterdir()] == [path]


def test_no_code_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = save(tmp_path / "model.pt", 1, extra=Call(os.mkdir, ("pwned",)))
    with pytest.raises(DataError, match=r"model\.pt: "):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert not Path("pwned").exists()


def test_training_goes_on_from_the_newest_intact(tmp_path, caplog):
    for updates in (2, 10, 9):
        save(tmp_path / f"checkpoint_1_{updates}.pt", updates)
    save(tmp_path / "checkpoint7.pt", 11)  # the newest, by what it says of itself
    save(tmp_path / "checkpoint_best.pt", 12, last_optimizer_state=None)  # to decode with
    save(tmp_path / "mean.pt", 13)  # not of this training
    save(tmp_path / "checkpoint_last.pt", 14)
    assert resume(tmp_path) == 14
    assert not caplog.records

    last, newest = tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint7.pt"
    last.write_bytes(last.read_bytes()[:500])
    with caplog.at_level(logging.WARNING):
        assert resume(tmp_path) == 11
    assert "checkpoint_last.pt: " in caplog.text and "continues from" in caplog.text
    assert caplog.text.count("\n") == 1

    data = bytearray(newest.read_bytes())
    at = data.index(torch.full((10,), 11.0).numpy().tobytes())
    data[at] ^= 1  # only its weights are damaged, not what it says of itself
    newest.write_bytes(data)
    assert [path.name for path in find_intact(tmp_path)][:2] == [newest.name, "checkpoint_1_10.pt"]
    assert resume(tmp_path) == 10

    with pytest.raises(DataError, match=r"checkpoint_last\.pt: "):  # a checkpoint that is named
        resume(tmp_path, restore_file=str(last))
    with pytest.raises(DataError, match=r"checkpoint_last\.pt: "):  # and one to decode with
        checkpoint_utils.load_checkpoint_to_cpu(str(last))


def test_nothing_intact_names_the_last(tmp_path):
    (tmp_path / "checkpoint_last.pt").write_bytes(b"")
    (tmp_path / "checkpoint1.pt").write_bytes(b"")
    with pytest.raises(DataError, match=r"checkpoint_last\.pt: "):
        resume(tmp_path)


def test_what_killed_trainings_left_is_removed(tmp_path):
    save(tmp_path / "checkpoint_last.pt", 1)
    child = os.fork()
    if child == 0:
        with replacing(tmp_path / "checkpoint_1_2.pt"):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (tmp_path / ".checkpoint_notes.tmp").touch()
    assert len(list(tmp_path.iterdir())) == 3
    resume(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".checkpoint_notes.tmp", "checkpoint_last.pt"]


def test_two_trainings_do_not_share_a_folder(tmp_path):
    save(tmp_path / "checkpoint_last.pt", 1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resume(tmp_path)
        os.write(writing, b"!")
        signal.pause()
    try:
        os.read(reading, 1)
        with pytest.raises(DataError, match=f"^{tmp_path}: another training saves its checkpoints"):
            resume(tmp_path)
        with pytest.raises(DataError, match="another training"):
            resume(tmp_path, restore_file=str(tmp_path / "checkpoint_last.pt"))
        assert resume(tmp_path, no_save=True) == 1  # it only reads
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert resume(tmp_path) == resume(tmp_path) == 1  # again, in the same process


def test_a_copy_that_is_killed_leaves_the_old_one(tmp_path, monkeypatch):
    new, last = save(tmp_path / "checkpoint_1_2.pt", 2), save(tmp_path / "checkpoint_last.pt", 1)

    def copy_half(source: str, target: str) -> None:
        Path(target).write_bytes(Path(source).read_bytes()[:999])
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(shutil, "copyfile", copy_half)
        PathManager.copy(str(new), str(last), overwrite=True)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert resume(tmp_path) == 1
    assert PathManager.copy(str(new), str(last), overwrite=True)
    assert resume(tmp_path) == 2
    assert sorted(tmp_path.iterdir()) == [new, last]


def test_a_checkpoint_is_written_whole_and_the_same_every_time(tmp_path):
    for name in ("a", "b"):
        checkpoint_utils.torch_persistent_save({"weight": torch.ones(9)}, str(tmp_path / name))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2
    full = tmp_path / "full"
    full.symlink_to("/dev/full")  # fairseq itself would replace what it names
    with pytest.raises((DataError, OSError), match=str(full)):
        checkpoint_utils.torch_persistent_save({"weight": torch.ones(99999)}, str(full))


def test_it_is_not_put_on_top_of_what_changes_checkpoints():
    with pytest.raises(RuntimeError, match="comes before what wraps torch_persistent_save"):
        mend()
