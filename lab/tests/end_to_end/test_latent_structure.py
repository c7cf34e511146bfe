"""Distances, trees and layers' alignments of a model with latent phrase structure."""

import json
from pathlib import Path

import pytest

from syncattn_lab.cli import score
from tests.end_to_end.commands import generate, hypotheses, logged, run, train
from tests.end_to_end.corpora import TEST


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
def forced(data: Path, lpsi: Path, text: Path) -> str:
    """What the model finds in the references."""
    pieces = text / "pieces"
    return run(
        *("syncattn-translate", "--path", lpsi, "--data-bin", data, "--in-subwords"),
        *("--input", pieces / "test.en", "--force", pieces / "test.de"),
        *("--jsonl", "--every-layer", "--batch-size", 64),
    )


def test_beam_search_gives_the_same_in_any_batch(data, lpsi):
    together = hypotheses(generate(data, lpsi, "--batch-size=64"))
    assert len(together) == TEST
    assert hypotheses(generate(data, lpsi, "--batch-size=1")) == together


def test_distances_and_links_of_every_layer(forced, text):
    records = [json.loads(line) for line in forced.splitlines()]
    for side, language in (("source", "en"), ("target", "de")):
        pieces = (text / "pieces" / f"test.{language}").read_text().splitlines()
        words = (text / "words" / f"test.{language}").read_text().splitlines()
        for record, subwords, line in zip(records, pieces, words, strict=True):
            found = record[side]
            assert (found["subwords"], found["words"]) == (subwords.split(), line.split())
            assert sum(found["lengths"]) == len(found["subwords"])
            assert list(found["distances"]) == ["1", "2"]
            for distances in found["distances"].values():
                assert len(distances) == len(found["subwords"])
                assert all(-1 <= distance <= 1 for distance in distances)
    for record in records:
        assert list(record["layer_links"]) == ["1", "2", "3"]
        for links in (record["links"], *record["layer_links"].values()):
            counts = [len(record[side]["words"]) for side in ("source", "target")]
            assert {target for _, target in links} == {*range(counts[1])}
            assert all(source < counts[0] for source, _ in links)


def test_trees_and_alignments_come_of_what_is_printed(forced, text, tmp_path, capsys):
    decoded = tmp_path / "forced.jsonl"
    decoded.write_text(forced)
    for side, language in (("source", "en"), ("target", "de")):
        gold = text / "words" / f"test.trees.{language}"
        arguments = ["--gold", str(gold), "--system", "LPSI", str(decoded), "--side", side]
        assert score.main(["trees", *arguments]) == 0
        table = capsys.readouterr().out
        assert [f"LPSI layer {n}" in table for n in (1, 2, 3)] == [True, True, False]
    gold = text / "words" / "test.align"
    assert score.main(["links", "--gold", str(gold), "--forward", "LPSI", str(decoded)]) == 0
    table = capsys.readouterr().out
    assert [f"LPSI layer {n} forward" in table for n in (1, 2, 3)] == [True] * 3
