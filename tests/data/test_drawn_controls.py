"""Controls come from files, and are those that were drawn when each sentence was read."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.data import drawn_controls
from syncattn_fairseq.data.controls import CONTROLS
from syncattn_fairseq.data.dataset import SyntaxPairDataset
from syncattn_fairseq.data.fields import PARENT_POSITIONS, LossField, SourceFields
from syncattn_fairseq.data.mmap_blocks import have_sums
from tests.checkpoints import make_task
from tests.data import frozen_controls

NAMES = sorted([*CONTROLS, "another"])


def load(folder: Path, controls: list[str], split: str = "test", **options: Any) -> Any:
    """Load a split whose controls the encoder and a loss of the target read."""
    task = make_task(folder, **options)
    fields = {replace(PARENT_POSITIONS, name=name, control=name) for name in controls}
    task.fields |= SourceFields(fields=frozenset(fields))
    task.loss_fields |= {
        LossField(f"target_{name}", "target", PARENT_POSITIONS.collate, name) for name in controls
    }
    task.load_dataset(split)
    return task.datasets[split]


def check(dataset: Any, controls: list[str], numbers: Any) -> None:
    for index in numbers:
        item = dataset[index]
        for side in ("source", "target"):
            for name in controls:
                expected = frozen_controls.draw(name, index, item[side], dataset.heads[side])
                assert item[f"{side}_{name}_marks"].equal(expected)


def test_they_are_those_of_the_study(own_data, caplog):
    caplog.set_level(logging.INFO)
    drawn = load(own_data, NAMES)
    assert len(drawn.drawn) == 8
    check(drawn, NAMES, range(0, len(drawn), 7))
    told = [r.getMessage() for r in caplog.records if "drew the trees" in r.getMessage()]
    sentences = f"drew the trees of {len(drawn)} sentences"
    assert len(told) == 8 and f"{own_data}/test.another.en-de.en: {sentences}" in told
    files = {path.name: path.read_bytes() for path in own_data.iterdir()}
    caplog.clear()
    again = load(own_data, NAMES)
    assert not [r for r in caplog.records if "drew the trees" in r.getMessage()]
    assert files == {path.name: path.read_bytes() for path in own_data.iterdir()}
    assert not [name for name in files if name.endswith(".lock")]
    check(again, NAMES, [0, len(again) - 1])


def test_a_loader_that_draws_gives_the_same(own_data, monkeypatch):
    monkeypatch.setattr(drawn_controls, "have_sums", lambda *files: False)
    monkeypatch.setattr(drawn_controls, "write_dataset", _refuse)
    dataset = load(own_data, NAMES)
    assert not dataset.drawn, "as in a folder that is read only"
    check(dataset, NAMES, range(0, len(dataset), 7))


def _refuse(*args: Any) -> None:
    raise PermissionError("read only")


@pytest.mark.parametrize("name", ["test.random.en-de.en.bin", "test.heads.en-de.en.sha256"])
def test_files_that_changed_are_drawn_anew(own_data, name):
    load(own_data, ["random"])
    drawn = own_data / "test.random.en-de.en.bin"
    content, changed = drawn.read_bytes(), (own_data / name).read_bytes()
    changed = changed.replace(b"  test.", b"  renamed.") if name.endswith("256") else changed[::-1]
    (own_data / name).write_bytes(changed)
    check(load(own_data, ["random"]), ["random"], range(5))
    assert drawn.read_bytes() == content
    assert have_sums(
        own_data / "test.random.en-de.en.sha256",
        [own_data / "test.heads.en-de.en.sha256", drawn.with_suffix(".idx"), drawn],
    )


def test_cut_text_is_drawn_as_it_is_read(own_data):
    dataset = load(own_data, ["random"], truncate_source=True, max_source_positions=6)
    assert [*dataset.drawn] == [("target", "random")]
    assert not [*own_data.glob("*.random.*.en.bin")]


def test_heads_without_checksums_are_drawn_as_they_are_read(own_data):
    (own_data / "test.heads.en-de.en.sha256").unlink()
    dataset = load(own_data, ["random"])
    assert [*dataset.drawn] == [("target", "random")]
    check(dataset, ["random"], range(5))


@given(
    st.lists(st.lists(st.sampled_from([-2, -1, 0, 1, 2, 3]), max_size=6), min_size=1, max_size=6)
)
def test_any_marks_give_the_same_as_ever(rows):
    heads = [torch.tensor(row, dtype=torch.long) for row in rows]
    tokens = [torch.arange(len(row) + 1) * 7 for row in rows]
    dataset = SyntaxPairDataset.__new__(SyntaxPairDataset)
    dataset.__dict__.update(heads={"source": heads}, _alike={}, dataset=heads)
    for index, marks in enumerate(heads):
        for name in NAMES:
            ours = dataset.draw("source", name, index, tokens[index], marks)
            assert ours.equal(frozen_controls.draw(name, index, tokens[index], heads))
            assert ours.dtype == marks.dtype


def test_processes_wait_for_the_one_that_draws(own_data, caplog, monkeypatch):
    """A second one finds the files and draws nothing."""
    load(own_data, ["random"])
    asked = []
    have = drawn_controls.have_sums

    def seem_missing(*files: Any) -> bool:
        asked.append(files)
        return len(asked) % 2 == 0 and have(*files)

    monkeypatch.setattr(drawn_controls, "have_sums", seem_missing)
    monkeypatch.setattr(drawn_controls, "write_dataset", _refuse)
    assert len(load(own_data, ["random"]).drawn) == 2 and len(asked) == 4
