"""What recipes learn from a model: which parses it reads, and what it shows."""

import re

import pytest

from lab.tests.recipes.test_cell import BUILTIN, make_cell
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.recipes.cell import list_stages
from tests.importing import forgetting_plugins

BOTH = ["heads.de", "heads.en"]
SOURCE = ["heads.en"]
#: By system, if not nothing.
NEEDS = {
    **dict.fromkeys(("dbsa", "syncattn", "syncattn_softmax"), BOTH),
    **dict.fromkeys(("lisa", "supervised_gate", "transformer_tree_window"), SOURCE),
    **dict.fromkeys(("rnn_syntax_directed", "rnn_syntax_directed_double"), SOURCE),
    **{f"distance_{of}": SOURCE for of in ("tree", "random", "mirrored", "another")},
    **dict.fromkeys(("dasa", "dasa_random", "dasa_mirrored", "dasa_released"), SOURCE),
    **dict.fromkeys(("rotary_distance_tree", "rotary_distance_random"), SOURCE),
    **dict.fromkeys(("planted_tree", "planted_random"), SOURCE),
    **{f"pascal{of}": SOURCE for of in ("", "_ignoring", "_random", "_shuffled")},
    "sh": ["labels.en"],
    "guided_alignment": ["align"],
    "multi_task": ["multitask"],
}
#: Systems that show distances, and those that show parses.
DISTANCES = [name for name in BUILTIN.known_systems() if "lpsi" in name or "synch_" in name]
ONE_SIDE = ["lpsi_encoder", "lpsi_decoder"]
PARSES = ["dbsa", "lisa", "syncattn", "syncattn_softmax", "syncattn_without_parses"]
PARSES += ["planted_tree", "planted_linear", "planted_random"]


@pytest.mark.parametrize("name", BUILTIN.known_systems())
def test_what_a_system_needs_and_shows(name):
    cell = make_cell(name)
    assert sorted(cell.settings.needs) == NEEDS.get(name, [])
    if name.startswith("rnn_") or name == "multi_task":
        assert cell.settings.scored_analyses == set()
        return
    assert cell.settings.scored_analyses == {
        "links",
        *(["distances"] if name in DISTANCES and name not in ONE_SIDE else []),
        *(["parses"] if name in PARSES else []),
    }


@pytest.mark.parametrize(
    ("row", "needs"),
    [
        ("dbsa:criterion.tgt_dep_weight=0", SOURCE),
        ("dbsa:criterion.src_dep_weight=0", ["heads.de"]),
        ("dbsa:model.decoder_dependency_layer=0", SOURCE),
        ("transformer:model.pascal_layers=2", SOURCE),
        ("transformer:model.pascal_layers=2:model.pascal_parents=self", []),
        (
            "transformer:model.supervised_gate_layers=all:model.source_label_dim=8",
            [*SOURCE, "labels.en"],
        ),
        ("transformer:model._name=transformer_dbsa", BOTH),
        ("transformer:model._name=transformer", []),  # fairseq's own
    ],
)
def test_changes_change_what_is_needed(row, needs):
    assert sorted(make_cell(row).settings.needs) == needs


def test_layers_whose_trees_are_induced():
    cell = make_cell("lpsi:model.distance_layers=2:model.distance_sync_layers=2")
    [step] = cell._score()
    assert "--target-trees" in str(step)
    assert cell.settings.model.exposed["tgt_distances"] == [2]


def test_options_that_do_not_fit_the_model_are_refused_before_training():
    named = re.escape("lpsi.yaml, with model.distance_layers=9: --distance-layers 9: ")
    with pytest.raises(DataError, match=rf"^\S*{named}"):
        _ = make_cell("lpsi:model.distance_layers=9").settings.needs
    with pytest.raises(DataError, match="^command line: model.x: there is no such option"):
        _ = make_cell("lpsi:model.x=9").settings.needs


HEAD = """
from dataclasses import dataclass, field

import syncattn_fairseq.plugin
from syncattn_fairseq.criterions.terms import Term, register_term
from syncattn_fairseq.data.fields import NOTHING, LABELS, TREE_DISTANCES, SourceFields
from syncattn_fairseq.modules import register_part
from syncattn_fairseq.modules.heads import Heads
from fairseq.dataclass import FairseqDataclass


@dataclass
class StrangersOptions:
    strangers_layers: str = field(default="", metadata={"help": "layers"})


@register_part("strangers")
class StrangersHeads(Heads):
    Options = StrangersOptions
    title = "strangers"
    encoder_layers = "strangers_layers"
    exposes = "strangers"

    @classmethod
    def list_fields(cls, cfg):
        if not cls.list_layers(cfg, "encoder"):
            return NOTHING
        return SourceFields(fields=frozenset([TREE_DISTANCES, LABELS]))


@dataclass
class LossOptions(FairseqDataclass):
    strangers_weight: float = field(default=0.0, metadata={"help": "weight"})


@register_term("strangers_loss")
class StrangersTerm(Term):
    Options = LossOptions
    weight_option = "strangers_weight"

    def list_parses(self, exposed):
        return {"target"} if self.weight and "src_strangers" in exposed else set()

    def applies(self, extra, sample):
        return False

    def __call__(self, extra, sample):
        raise NotImplementedError
"""


def test_a_strangers_head_and_loss_say_what_they_need(tmp_path):
    """A plugin is one file, and recipes know nothing of it."""
    plugin = tmp_path / "strangers_plugin"
    plugin.mkdir()
    (plugin / "__init__.py").write_text(HEAD)
    with forgetting_plugins():
        own = f"transformer:common.user_dir={plugin}"
        assert make_cell(own).settings.needs == set()
        assert make_cell(f"{own}:criterion.strangers_weight=1").settings.needs == set()
        heads = f"{own}:model.strangers_layers=1"
        assert make_cell(heads).settings.needs == {"heads.en", "labels.en"}
        cell = make_cell(f"{heads}:criterion.strangers_weight=1")
        assert cell.settings.needs == {"heads.en", "heads.de", "labels.en"}
        _, stages = list_stages(BUILTIN, [cell], 1, 1)
        kinds = ("record", "heads-de", "heads-en", "labels-en")
        assert {log.name for log in stages[cell][0].after} == {
            "binarise",
            *(f"binarise-{kind}" for kind in kinds),
        }
