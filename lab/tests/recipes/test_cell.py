from pathlib import Path
from typing import Any

import pytest

from syncattn_lab.recipes.cell import Cell
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.launch import Machines
from syncattn_lab.recipes.request import Row, read_row
from syncattn_lab.recipes.row_settings import RowSettings
from syncattn_lab.recipes.systems import SHARED

BUILTIN = load_corpus(SHARED / "builtin_en_de")


@pytest.mark.parametrize(
    "schedule, continues",
    [({}, True), ({"_name": "fixed"}, True), ({"_name": "polynomial_decay"}, False)],
)
def test_only_a_schedule_without_an_end_can_continue(schedule, continues):
    changes = {f"lr_scheduler.{name}": value for name, value in schedule.items()}
    training, decoding, _ = make_cell("transformer", changes).stages()
    assert ("optimization.max_update" in training.limits) == continues
    assert not decoding.limits and not decoding.resumes


def make_cell(text: str, changes: dict[str, Any] | None = None, seed: int | None = None) -> Cell:
    row = read_row(text, BUILTIN.known_systems())
    return Cell(RowSettings(row, BUILTIN, changes or {}), Machines(cpu=True), seed)


@pytest.mark.parametrize(
    ("text", "label", "model", "output"),
    [
        ("lisa", "lisa", "lisa/1", "lisa/1"),
        ("lisa:model.dropout=0.2", "", "lisa-model.dropout_0.2/1", "lisa-model.dropout_0.2/1"),
        ("lisa:generation.beam=2", "", "lisa/1", "lisa/1/generation.beam_2"),
        ("low=lisa:model.dropout=0.2", "low", "low/1", "low/1"),
        ("beam-2=lisa:generation.beam=2", "beam-2", "lisa/1", "lisa/1/beam-2"),
        ("x+y=lisa:generation.beam=2:model.dropout=0.2", "x+y", "x+y/1", "x+y/1"),
    ],
)
def test_folders_of_a_row(text, label, model, output):
    cell = make_cell(text)
    assert cell.folder == Path("checkpoints/builtin_en_de", model)
    assert cell.output == Path("checkpoints/builtin_en_de", output)
    assert cell.name == f"{label or text}, seed 1"


def test_what_a_named_row_is():
    row = read_row("a=dbsa:model.x=[1,2]:criterion.y=b=c")
    assert row == Row("a=dbsa:model.x=[1,2]:criterion.y=b=c", "dbsa", row.changes, "a")
    assert row.changes == ("model.x=[1,2]", "criterion.y=b=c") and row.label == "a"
    assert read_row("dbsa:model.x=a=b") == Row("dbsa:model.x=a=b", "dbsa", ("model.x=a=b",))


def test_a_changed_plugin_is_another_training(tmp_path):
    plugin = tmp_path / "mine_of_rows"
    (plugin / "__pycache__").mkdir(parents=True)
    (plugin / "__init__.py").write_text("import syncattn_fairseq.plugin\n")
    (plugin / "x.py").write_text("a")

    def checksum() -> str:
        cell = make_cell(f"mine=lisa:common.user_dir={plugin}")
        found: str = (cell.stages()[0].settings or {})["plugin"]
        return found

    first = checksum()
    (plugin / "__pycache__" / "x.pyc").write_text("b")
    assert checksum() == first and len(first) == 64
    seen = {first}
    (plugin / "x.py").write_text("b")
    seen.add(checksum())
    (plugin / "x.py").rename(plugin / "y.py")
    seen.add(checksum())
    assert len(seen) == 3
    assert "plugin" not in (make_cell("lisa").stages()[0].settings or {})


def test_each_training_has_its_own_folder_for_tensorboard():
    changes = {"common.tensorboard_logdir": "tb"}
    cell = make_cell("lisa", changes, 3)
    step = cell.stages()[0].steps[-1]
    assert "++common.tensorboard_logdir=tb/builtin_en_de/lisa/3" in step.commands[0]
    assert (cell.stages()[0].settings or {})["common.tensorboard_logdir"] == "tb"
    [plain] = (s for s in make_cell("lisa").stages()[0].steps if "train" in s.commands[0][0])
    assert "tensorboard" not in str(plain)
