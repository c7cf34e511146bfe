"""A training goes on with the data that it began with, or says in one line what is another."""

import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import preprocess
from syncattn_fairseq.data.fingerprint import NAME
from tests.checkpoints import Corpus, make_task
from tests.patches.test_resuming import resume, save

ITERATOR = {"train_iterator": {"epoch": 1, "version": 2, "iterations_in_epoch": 3}}


@pytest.fixture
def path(small_corpus: Corpus, tmp_path: Path) -> Path:
    """The checkpoint of a training on the small corpus."""
    task_state = make_task(small_corpus.data).state_dict()
    return save(tmp_path / "checkpoint_last.pt", 7, task_state=task_state, extra_state=ITERATOR)


@pytest.fixture
def smaller(small_corpus: Corpus, tmp_path: Path) -> Path:
    """Data with fewer sentences, and the same dictionaries."""
    texts = tmp_path / "texts"
    texts.mkdir()
    for kind in ("pieces", "words"):
        for name in ("en", "de") if kind == "pieces" else ["heads.en"]:
            lines = (small_corpus.folder / kind / f"train.{name}").read_text().splitlines(True)
            (texts / f"train.{name}").write_text("".join(lines[:20]))
    data = [
        f"--{s}dict={small_corpus.data}/dict.{x}.txt" for s, x in (("src", "en"), ("tgt", "de"))
    ]
    data += [f"--trainpref={texts}/train", f"--destdir={tmp_path / 'smaller'}"]
    assert preprocess.main(["-s=en", "-t=de", *data]) == 0
    return tmp_path / "smaller"


def load(path: Path, data: Path | str, **options: Any) -> Any:
    """Load the checkpoint as fairseq's trainer does that trains on these data."""
    settings = Namespace(finetune_from_model=None, reset_dataloader=False,
                         load_checkpoint_on_all_dp_ranks=False)  # fmt: skip
    vars(settings).update(options)
    zero = Namespace(zero_sharding="none")
    cfg = Namespace(checkpoint=settings, model=Namespace(), distributed_training=zero)
    cfg.ema = Namespace(store_ema=False)
    trainer = Mock(cfg=cfg, task=make_task(data), data_parallel_world_size=1, data_parallel_rank=0)
    trainer.tpu = trainer.is_fsdp = False
    trainer.model = Mock(spec=["load_state_dict", "set_num_updates"])
    trainer.get_criterion.return_value = torch.nn.Module()
    return Trainer.load_checkpoint(trainer, str(path), True)


def test_the_same_data_go_on(small_corpus, path, own_data):
    assert load(path, small_corpus.data) == ITERATOR
    assert load(path, own_data) == ITERATOR  # a copy
    (own_data / NAME).unlink()  # data of an earlier version
    assert load(path, own_data) == ITERATOR


def test_a_smaller_text_does_not(path, smaller, small_corpus):
    other = rf"{smaller}/(train.align.en-de|train.en-de.de)"
    told = rf"^{path}: the training has read another {other} than the present one; continue"
    with pytest.raises(DataError, match=told):
        load(path, smaller)
    assert load(path, smaller, reset_dataloader=True) == ITERATOR
    assert load(path, smaller, finetune_from_model=str(path)) == ITERATOR
    with pytest.raises(DataError, match=r"were in 1 folders, and are in 2 now"):
        load(path, f"{small_corpus.data}:{smaller}")


@pytest.mark.parametrize("options", [{}, {"reset_dataloader": True}, {"finetune_from_model": ""}])
def test_another_dictionary_does_not(path, own_data, options):
    lines = (own_data / "dict.en.txt").read_text().splitlines(keepends=True)
    (own_data / "dict.en.txt").write_text("".join(reversed(lines)))
    (own_data / NAME).unlink()
    if "finetune_from_model" in options:
        options = {"finetune_from_model": str(path)}
    with pytest.raises(DataError, match=f"^{path}: {own_data}/dict.en.txt differs from the file"):
        load(path, own_data, **options)


def test_fairseq_itself_goes_on_with_anything(path, smaller, monkeypatch):
    """Once this fails, the patch is not needed."""
    monkeypatch.setattr(Trainer, "load_checkpoint", Trainer.load_checkpoint.__wrapped__)
    assert load(path, smaller) == ITERATOR
    assert checkpoint_utils.load_checkpoint_to_cpu(str(path))["task_state"]["fingerprint"]


def test_what_ends_beyond_the_text_is_one_line(tmp_path, monkeypatch):
    """Of an earlier version, which does not say what it was trained on."""
    path = save(tmp_path / "checkpoint_last.pt", 1)

    def fail(*args: Any, **options: Any) -> Any:
        raise RuntimeError("Cannot resume training due to dataloader mismatch, please report this")

    monkeypatch.setattr("tests.patches.test_resuming.Trainer.get_train_iterator", fail)
    with pytest.raises(DataError, match=f"^{path}: the checkpoint is from further in an epoch"):
        resume(tmp_path)


def test_the_record_beside_checkpoints_is_of_their_data(tmp_path, monkeypatch):
    """It is stored when the checkpoint is known to be of these data, and only there."""
    data, folder, mine = (tmp_path / name for name in ("data", "folder", "mine"))
    data.mkdir()
    folder.mkdir()
    settings = Namespace(data=str(data), source_lang="en", target_lang="de")
    monkeypatch.setattr("tests.patches.test_resuming.Trainer.task", Namespace(cfg=settings))
    (folder / "preparation.json").write_text("1")
    save(tmp_path / "start.pt", 1)

    def start() -> float:
        return resume(folder, finetune_from_model=str(tmp_path / "start.pt"))

    told = f"^{folder}/preparation.json: belongs to another text, since {data} has no such file"
    with pytest.raises(DataError, match=told):
        start()
    (data / "preparation.json").write_text("2")
    (data / "subwords.de").write_text("3")
    mine.write_text("mine")
    (folder / "subwords.de").symlink_to(mine)
    with pytest.raises(DataError, match=f"^{folder}/subwords.de: is a symbolic link where this"):
        start()
    (folder / "subwords.de").unlink()
    assert start() == 1
    assert (folder / "preparation.json").read_text() == "2" and mine.read_text() == "mine"

    save(folder / "checkpoint_last.pt", 2)
    shutil.rmtree(data)
    data.mkdir()
    assert resume(folder) == 2  # the record was removed from the data since
    monkeypatch.setattr("tests.patches.test_resuming.Trainer.load_checkpoint", Mock(
        side_effect=DataError("of other data")))  # fmt: skip
    (data / "preparation.json").write_text("4")
    with pytest.raises(DataError, match="of other data"):
        resume(folder)
    assert (folder / "preparation.json").read_text() == "2"


def test_a_training_does_not_write_over_the_model_that_it_starts_from(tmp_path):
    path = save(tmp_path / "checkpoint_best.pt", 1)
    told = f"^--finetune-from-model {path}: this training would overwrite that checkpoint"
    with pytest.raises(DataError, match=told):
        resume(tmp_path, finetune_from_model=str(path))
    assert resume(tmp_path, finetune_from_model=str(save(tmp_path / "mine.pt", 3))) == 3
    save(tmp_path / "checkpoint_last.pt", 2)
    assert resume(tmp_path, finetune_from_model=str(path)) == 2  # it goes on


def test_a_link_to_a_model_is_not_written_through(tmp_path):
    model = save(tmp_path / "model.pt", 1)
    content = model.read_bytes()
    folder = tmp_path / "folder"
    folder.mkdir()
    best, last = folder / "checkpoint_best.pt", folder / "checkpoint_last.pt"
    for link in (best, last):
        link.symlink_to(model)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(last))
    checkpoint_utils.torch_persistent_save(state, str(best))
    checkpoint_utils.PathManager.copy(str(best), str(last), overwrite=True)
    assert not best.is_symlink() and not last.is_symlink()
    assert model.read_bytes() == content and last.read_bytes() == best.read_bytes()
