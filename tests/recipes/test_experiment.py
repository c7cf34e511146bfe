from __future__ import annotations

from pathlib import Path

import pytest

from syncattn_fairseq.recipes.corpus import load_corpus
from syncattn_fairseq.recipes.experiment import Cell, Experiment
from syncattn_fairseq.recipes.launch import Machines

PLUGIN = Path(__file__).parents[2] / "syncattn_fairseq"


@pytest.mark.parametrize(
    "schedule, continues",
    [({}, True), ({"_name": "fixed"}, True), ({"_name": "polynomial_decay"}, False)],
)
def test_only_a_schedule_without_an_end_can_continue(
    schedule: dict[str, str], continues: bool
) -> None:
    corpus = load_corpus(PLUGIN / "configs" / "multi30k_tiny_en_de")
    changes = {f"lr_scheduler.{name}": value for name, value in schedule.items()}
    cell = Cell(Experiment(corpus, PLUGIN, Machines(cpu=True), changes), "transformer")
    training, decoding, _ = cell.stages()
    assert ("optimization.max_update" in training.limits) == continues
    assert not decoding.limits and not decoding.resumes
