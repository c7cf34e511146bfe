"""Distances, trees and layers' alignments of a model with latent phrase structure."""

from pathlib import Path

import pytest

from syncattn_fairseq.trees.brackets import read_trees
from syncattn_lab.cli import align, trees
from tests.end_to_end.commands import generate, hypotheses, lines, logged, train
from tests.end_to_end.corpora import TEST

FORCED = ("--score-reference", "--print-distances", "--print-layer-alignments")


@pytest.fixture(scope="module")
def lpsi(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lpsi")
    options = ["--encoder-layers=3", "--decoder-layers=3", "--max-update=20"]
    options += ["--sync-mse-weight=0.01", "--sync-rank-weight=0.01"]
    steps = logged(train(data, folder, "transformer_lpsi", *options))
    assert {"sync_mse_loss", "sync_rank_loss"} <= steps[0].keys()
    assert steps[-1]["loss"] < steps[0]["loss"]
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def forced(data: Path, lpsi: Path) -> str:
    return generate(data, lpsi, *FORCED, "--batch-size=64")


def test_beam_search_gives_the_same_in_any_batch(data, lpsi):
    together = hypotheses(generate(data, lpsi, "--batch-size=64"))
    assert len(together) == TEST
    assert hypotheses(generate(data, lpsi, "--batch-size=1")) == together


def test_distances_and_links_of_every_layer(forced, text):
    source = (text / "pieces" / "test.en").read_text().splitlines()
    target = (text / "pieces" / "test.de").read_text().splitlines()
    for number, found in lines(forced, "X").items():
        kinds = [f"{side} {level}" for side, level, _ in found]
        assert kinds == [f"{s} distance-{n}" for s in ("source", "hypothesis") for n in (1, 2)]
        for side, _, values in found:
            pieces = (source if side == "source" else target)[number].split()
            distances = [float(value) for value in values.split()]
            assert len(distances) == len(pieces)
            assert all(-1 <= distance <= 1 for distance in distances)
    for number, found in lines(forced, "L").items():
        assert [layer for layer, _ in found] == ["1", "2", "3"]
        for _, links in found:
            pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
            assert [t for _, t in pairs] == list(range(len(target[number].split())))
            assert all(s < len(source[number].split()) for s, _ in pairs)


def test_trees_and_alignments_come_of_what_is_printed(forced, text, tmp_path, capsys):
    decoded = tmp_path / "forced.txt"
    decoded.write_text(forced)
    for side, language in (("source", "en"), ("hypothesis", "de")):
        made, words = tmp_path / f"trees.{language}", text / "words" / f"test.{language}"
        arguments = ["induce", "--decoded", str(decoded), "--side", side, "--output", str(made)]
        assert (
            trees.main([*arguments, "--text", str(words), "--subword-marks", "sentencepiece"]) == 0
        )
        for tree, line in zip(read_trees(made), words.read_text().splitlines(), strict=True):
            assert tree is not None
            assert list(tree.leaves()) == line.split()
        gold = text / "words" / f"test.trees.{language}"
        assert trees.main(["score", "--gold", str(gold), "--system", "LPSI", str(made)]) == 0
        assert "LPSI" in capsys.readouterr().out
    gold = text / "words" / "test.align"
    arguments = ["--gold", str(gold), "--forward", "LPSI", str(decoded)]
    assert align.main([*arguments, "--subword-marks", "sentencepiece"]) == 0
    table = capsys.readouterr().out
    assert [f"LPSI layer {n} forward" in table for n in (1, 2, 3)] == [True] * 3
