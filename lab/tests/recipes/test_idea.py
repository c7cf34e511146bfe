"""An idea of one's own beside the controls that fit it."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lab.tests.evaluation.test_results import cell
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.testing import build_model, make_batch
from syncattn_lab.cli.recipe import main
from syncattn_lab.evaluation.intervals import fit_blocks
from syncattn_lab.recipes import operations
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.idea import TREES, read_idea
from syncattn_lab.recipes.operations import count_operations
from syncattn_lab.recipes.plan import load_plan
from syncattn_lab.recipes.systems import PLUGIN, SHARED
from tests.cli.errors import read_error
from tests.importing import forgetting_plugins

#: An idea may be one of the package's own; a plugin would be registered in this process.
OWN = PLUGIN
CORPUS = load_corpus(SHARED / "builtin_en_de")
FAST = "task.fast=true"
TREE = f"{OWN}:model.distance_bias_layers=2:model.distance_bias_distance=tree"


def read(text: str, *words: str, seeds: Sequence[int] = (1, 2), ideas: str | Path = "ideas"):
    return read_idea(text, CORPUS, words, seeds, Path(ideas))


def test_heads_that_read_the_parse_are_compared_with_other_trees():
    idea = read(f"mine={TREE}")
    assert idea.row.text == f"mine=transformer:common.user_dir={TREE}:{FAST}"
    window, decay = "model.local_layers=2", "model.constant_gate_layers=2"
    assert [row.text for row in idea.controls] == [
        f"plain=transformer:{FAST}",
        f"plain_rotary=transformer:model.positions=rotary:{FAST}",
        f"mine_window=transformer:{window}:model.local_decoder_layers=none:{FAST}",
        f"mine_decay=transformer:{decay}:model.constant_gate_decoder_layers=none:{FAST}",
        *(
            f"mine_{trees}=transformer:common.user_dir={TREE}:model.source_trees={trees}:{FAST}"
            for trees in TREES
        ),
    ]


def test_controls_stand_where_the_idea_does():
    layers = "model.forget_gate_layers=1"
    words = "task.fast=false", "model.dropout=0.3"
    idea = read(f"{OWN}:{layers}", *words)
    assert [row.text for row in (idea.row, *idea.controls)] == [
        ":".join([f"syncattn_fairseq{text}", *words])
        for text in (
            f"=transformer:common.user_dir={OWN}:{layers}",
            "_plain=transformer",
            "_rotary=transformer:model.positions=rotary",
            "_window=transformer:model.local_layers=1:model.local_decoder_layers=same",
            "_decay=transformer:model.constant_gate_layers=1:"
            "model.constant_gate_decoder_layers=same",
        )
    ]
    in_cross_attention = read(f"{OWN}:model.cross_attention_tree_window=2")
    labels = [row.label.removeprefix("syncattn_fairseq_") for row in in_cross_attention.controls]
    assert labels == ["plain", "plain_rotary", *TREES], "no control stands there"
    without_layers = read(f"{OWN}:criterion.label_smoothing=0.2")
    assert [row.label for row in without_layers.controls] == ["plain", "plain_rotary"]


def test_the_plan_is_written_once(tmp_path):
    idea = read(f"mine={TREE}", ideas=tmp_path)
    for _ in range(2):
        idea.write_plan()
        assert load_plan(tmp_path / "mine") == idea.plan
    with pytest.raises(DataError, match="the plan of this idea has other seeds or settings"):
        read(f"mine={TREE}", seeds=[1, 2, 3], ideas=tmp_path).write_plan()


def test_the_page_says_whether_the_idea_helps(tmp_path, capsys, monkeypatch):
    """Within seeds, whose own differences are far larger than those of systems."""
    idea = read(f"mine={TREE}")
    generator = np.random.default_rng(1)
    seeds = np.array([0.2, 0.0, -0.1])
    likelihoods = {
        row.label: 3.0 + seeds + 0.002 * generator.standard_normal(3)
        for row in (idea.row, *idea.controls)
    }
    likelihoods["mine"] -= 0.1
    likelihoods["mine_decay"] = likelihoods["mine"] + [0.001, -0.001, 0.0]

    def write(bleu: float, left_out: str = "") -> None:
        cells = [
            cell(name, seed, 30.0, valid={"nll_loss": number}, scores={"BLEU": bleu, "chrF": 50.0})
            for name, numbers in likelihoods.items()
            for seed, number in enumerate(numbers.tolist(), start=1)
            if f"{name} {seed}" != left_out
        ]
        results.write_text(json.dumps({"corpus": "builtin_en_de", "cells": cells}))

    results = tmp_path / "results.json"
    words = ["builtin_en_de", "--idea", f"mine={TREE}", f"--work={tmp_path}", "--table"]
    words += [f"--results={results}", "--seeds", "1", "2", "3"]
    write(30.0)
    assert main(words) == 0
    page = (tmp_path / "ideas" / "mine" / "builtin_en_de.html").read_text()
    assert "mine helps, but it is not shown to be better than mine_decay, which may be" in page
    blocks = fit_blocks([math.log(2) * numbers for numbers in likelihoods.values()])
    assert blocks
    difference = math.log(2) * float((likelihoods["mine"] - likelihoods["mine_random"]).mean())
    said = f"{blocks.interval(difference).format(3)} nats per subword, p &lt;0.001."
    assert f"mine is better than mine_random: {said}" in page
    assert f"show a difference of {blocks.detectable(7):.3f} with 80 % power, after corr" in page
    assert "builtin_en_de, 850 updates, seeds 1, 2, 3; rows" in page and "hardly learnt" not in page
    assert "<td>1 min 30 s</td>" in page and page.count("<svg") == 1
    assert "band" not in page and "<script" not in page
    table = capsys.readouterr().out
    assert "mine − mine_decay" in table and "Welch" not in table
    monkeypatch.setattr(operations, "count_operations", lambda model: 0)  # counted once is enough
    write(3.0)
    assert main(words) == 0
    page = (tmp_path / "ideas" / "mine" / "builtin_en_de.html").read_text()
    assert "plain has hardly learnt to translate: train longer for a verdict" in page
    write(30.0, left_out="plain 3")
    assert main(words) == 1
    assert (
        "the page cannot be written yet: some seeds of mine or plain have no"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("idea", "words", "fault"),
    [
        ("nowhere:model.x=1", (), "nowhere has no __init__.py; give the folder of your plugin"),
        (TREE, ("pascal",), "pascal: --idea chooses the systems"),
        (f"{OWN}", (), "no setting switches the idea on; add settings, such as :model."),
        (
            f"{TREE}:optimization.max_update=9",
            (),
            "give this setting before --idea, for all systems",
        ),
        (f"{TREE}:task.fast=false", (), "give this setting before --idea, for all systems"),
        (TREE, ("--plan",), "--idea needs --seeds, and cannot be used with --plan"),
        (f"lpsi={TREE}", (), "there is already a config named lpsi; choose another name"),
        (f"{TREE}:model.distance_bias_layer=1", (), "there is no such option"),
    ],
)
def test_ideas_that_cannot_be_tested(idea, words, fault, capsys):
    status = main(["builtin_en_de", *words, "--idea", idea, "--seeds", "1", "2"])
    assert fault in read_error(capsys, status)


@pytest.mark.parametrize("trees", TREES)
def test_all_heads_read_the_trees_of_the_control(trees):
    own = build_model(distance_bias_layers="1", distance_bias_distance="tree")
    control = build_model(
        distance_bias_layers="1", distance_bias_distance="tree", source_trees=trees
    )
    ours, theirs = (
        make_batch(model, [0, 1, 2])["net_input"]["src_tree_distances"] for model in (own, control)
    )
    assert ours.shape == theirs.shape and not ours.equal(theirs)


def test_operations_are_counted():
    window, learnt = (
        build_model(**{f"{kind}_layers": "1,2"}) for kind in ("local", "distance_bias")
    )
    assert count_operations(window) < count_operations(learnt)


def test_a_plugin_is_an_idea(capsys):
    idea = f"{PLUGIN.parent / 'examples' / 'user_dir'}:model.root_layers=1,2"
    with forgetting_plugins():
        assert main(["builtin_en_de", "--idea", idea, "--seeds", "1", "2", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    trained = [line for line in out.splitlines() if line.endswith("seed 2: train")]
    assert len(trained) == 5 + len(TREES)
    names = "user_dir, plain, plain_rotary, user_dir_window, user_dir_decay"
    assert f"trainings of {names}" in err and err.endswith(": 16\n")
