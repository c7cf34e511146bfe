"""What the analyses behind study/findings.md compute, in small cases."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils

from lab.tests.evaluation.test_results import cell
from study import counted_parents, likelihood, locality, loops, ordinary_heads, trials
from study.where_heads_look import look, measure
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.cli.score import main as score
from syncattn_lab.evaluation.results_file import load_results
from tests.checkpoints import make_checkpoint
from tests.importing import ROOT


def test_where_the_heads_of_a_model_look(small_corpus):
    path = small_corpus.checkpoint("transformer_dbsa")
    rows = measure(path, str(small_corpus.data))
    assert [row[1:3] for row in rows[:3]] == [
        *(["encoder 1", "1 dependency"], ["encoder 1", "3 ordinary"], ["encoder 2", "4 ordinary"])
    ]
    assert [row[1] for row in rows[3:]] == ["decoder 1", "decoder 1", "decoder 2", "decoder 3"]
    assert len({row[3] for row in rows[:3]}) == len({row[3] for row in rows[3:]}) == 1, "flat"
    assert all(row[6] == "–" for row in rows[3:]), "the decoder's parents are not asked for"


def test_what_the_places_get():
    lengths, nan = (6, 4), float("nan")
    columns = max(lengths) + 2  # one for the end of sentence, one for padding
    words = torch.zeros(2, columns, dtype=torch.bool)
    for row, length in enumerate(lengths):
        words[row, :length] = True
    parents = torch.tensor(
        [[2, 0, 0, 5, 2.5, 2, nan, nan], [nan, 3, 0, 1, nan, nan, nan, nan]], dtype=torch.float64
    )
    attention = torch.rand(2, 3, columns, columns)
    visible = torch.tensor(lengths).unsqueeze(1) + 1
    sums, counts = look(attention, parents, words, visible)
    expected, seen = torch.zeros(3, 5), [0] * 5
    for row, length in enumerate(lengths):
        for t in range(length):
            places = [[1 / (length + 1)] * 3, attention[row, :, t, t]]
            near = [c for c in (t - 1, t + 1) if c >= 0]
            places.append(attention[row, :, t, near].sum(-1))
            parent = parents[row, t]
            if not parent.isnan():
                found = round(float(parent))
                mirror = 2 * t - found
                if abs(found - t) >= 2 and 0 <= mirror < length:
                    places += [attention[row, :, t, found], attention[row, :, t, mirror]]
            for number, place in enumerate(places):
                expected[:, number] += torch.as_tensor(place)
                seen[number] += 1
    assert counts.tolist() == seen == [10, 10, 10, 2, 2]
    torch.testing.assert_close(sums, expected)


def test_repeated_trigrams():
    assert loops.percent_repeated(["a b c a b c", "a b c", "a"]) == 20  # one of five


def test_missing_translations_are_one_line(tmp_path, monkeypatch):
    results = ROOT / "study/results/multi30k_tiny_en_de_3625.json"
    monkeypatch.setattr("sys.argv", ["loops.py", str(results), str(tmp_path), "lpsi"])
    with pytest.raises(SystemExit, match=r"lpsi.1.translations.txt: no such file; WORK is"):
        loops.main()


def test_the_likelihood_of_kept_checkpoints(small_corpus, tmp_path, monkeypatch, capsys):
    corpus = "multi30k_tiny_en_de_3625"
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin" / corpus).symlink_to(small_corpus.data)
    output = tmp_path / "results" / "nll.json"
    for number, system in enumerate(("distance_linear", "distance_tree")):
        for seed in range(6, 11):
            place = tmp_path / "checkpoints" / corpus / system / str(seed)
            place.mkdir(parents=True)
            (place / "checkpoint_best.pt").symlink_to(tmp_path / f"{(seed + number) % 2}.pt")
    for number in range(2):
        make_checkpoint(small_corpus, tmp_path / f"{number}.pt", "syntax_transformer", number)
    monkeypatch.setattr("sys.argv", ["", corpus, f"--work={tmp_path}", f"--output={output}"])
    likelihood.main()
    printed = capsys.readouterr().out
    rows = json.loads(output.read_text())
    means = [np.mean([row["test"] for row in part]) for part in (rows[:5], rows[5:])]
    difference = f"{means[1] - means[0]:+.3f}".replace("-", "−")
    assert "distance_tree − distance_linear" in printed and f" {difference} [" in printed
    assert [(row["system"], row["seed"]) for row in rows[::5]] == [
        *(("distance_linear", 6), ("distance_tree", 6))
    ]
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "0.pt")])
    for split in ("valid", "test"):
        task.load_dataset(split)
        losses = []
        for sample in (task.dataset(split).collater([one]) for one in task.dataset(split)):
            logs = model.eval()(**sample["net_input"])[0].log_softmax(-1)
            losses += (-logs.gather(-1, sample["target"].unsqueeze(-1))).flatten().tolist()
        assert rows[0][split] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert rows[0]["valid"] != rows[1]["valid"]
    monkeypatch.setattr(likelihood, "measure", lambda *_: pytest.fail("it is known"))
    likelihood.main()


def test_how_local_trees_are(tmp_path, monkeypatch, capsys):
    (tmp_path / "heads").write_text("2 3 0\n3 1 0\n0\n-1 -1\n\n")
    sentences = locality.read_heads(tmp_path / "heads")
    assert [heads.tolist() for heads in sentences] == [[2, 3, 0], [3, 1, 0]]
    text, tree = [1, 2, 1, 1, 2, 1], [1, 2, 1, 1, 1, 2]
    expected = float(np.corrcoef(text, tree)[0, 1]), (1 + 1 + 2 + 1) / 4
    trees = locality.list_trees(sentences)
    assert [*trees] == ["parse", "random", "mirrored", "another"]
    assert locality.measure(trees["parse"]) == pytest.approx(expected)
    assert locality.measure(trees["mirrored"]) == pytest.approx(expected)
    assert [x.tolist() for x in trees["another"]] == [[3, 1, 0], [2, 3, 0]]
    monkeypatch.setattr("sys.argv", ["", str(tmp_path / "heads")])
    locality.main()
    printed = capsys.readouterr().out
    assert "2 sentences, 6 pairs of words" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["mirrored", f"{expected[0]:.2f}", "1.25"] in rows


def test_the_table_of_trials(tmp_path, monkeypatch, capsys):
    def save(corpus: str, subwords: float, nats: dict[str, float], seed: int = 11) -> str:
        cells = [
            {**cell(name, seed, 20.0), "subwords_per_word": subwords}
            | {"valid": {"loss": 4.0, "nll_loss": value / np.log(2)}}
            for name, value in nats.items()
        ]
        path = tmp_path / f"{corpus}.json"
        path.write_text(json.dumps({"corpus": corpus, "cells": cells}))
        return str(path)

    large = save("large", 1.5, {"a": 3.0, "a:x.y=1:x.z=2": 2.8, "b": 2.4})
    small = save("small", 2.0, {"a": 2.0, "b": 2.0})
    monkeypatch.setattr("sys.argv", ["", large, small])
    trials.main()
    assert capsys.readouterr().out.splitlines() == [
        "| corpus | settings | a | b |",
        "|---|---|---|---|",
        "| large | as in its config | 4.500 | **3.600** |",
        "| large | x.y=1, x.z=2 | 4.200 | – |",
        "| small | as in its config | **4.000** | 4.000 |",
    ]
    other = Path(save("other", 1.5, {"a": 3.0}, seed=12)).read_text()
    cells = json.loads(Path(large).read_text())["cells"] + json.loads(other)["cells"]
    Path(large).write_text(json.dumps({"corpus": "large", "cells": cells}))
    with pytest.raises(DataError, match="large.json: a has several seeds; a trial has one"):
        trials.make_table([Path(large)])


def test_parses_without_syntax_as_results(tmp_path):
    texts = {"train": ("a@@ b c\nd\nq c\n", "2 0\n\n2 0\n"), "test": ("x@@ b c\n", "2 0\n")}
    files = []
    for name, (pieces, heads) in texts.items():
        files += [str(tmp_path / f"{name}.{kind}") for kind in ("pieces", "heads")]
        Path(files[-2]).write_text(pieces)
        Path(files[-1]).write_text(heads)
    output = tmp_path / "new" / "mine.json"
    words = ["mine", "--source", *files, "--target", *files, "--output", str(output)]
    counted_parents.main([*words, "--first", "3"])
    cells = {one["system"]: one["scores"] for one in load_results(output)["cells"]}
    assert [*cells] == ["best_offset", "counts", "random_trees"]
    assert cells["counts"] == {"UAS source": 50, "UAS target": 100}  # "b" was seen just once
    Path(files[1]).write_text("2 0\n\n0\n")
    with pytest.raises(DataError, match="train.heads:3: 1 heads, but 2 words"):
        counted_parents.main(words)
    counted_parents.main([*words, "--first", "2"])  # the third sentence does not count
    Path(files[3]).write_text("")
    with pytest.raises(DataError, match="test.heads: 0 lines, but .*test.pieces has 1"):
        counted_parents.main([*words, "--first", "2"])


def test_the_best_ordinary_head_of_each_training(small_corpus, tmp_path):
    corpus, output = "atis_en_tr_late", tmp_path / "new" / "heads.json"
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin" / corpus).symlink_to(small_corpus.data)
    for seed in (6, 7):
        place = tmp_path / "checkpoints" / corpus / "dbsa" / str(seed)
        place.mkdir(parents=True)
        made = make_checkpoint(small_corpus, tmp_path / "made.pt", "transformer_dbsa")
        made.rename(place / "checkpoint_average.pt")
    words = [corpus, "dbsa", f"--work={tmp_path}", f"--output={output}"]
    with pytest.raises(DataError, match=r"lpsi: has no SEED/checkpoint_average.pt; train the sys"):
        ordinary_heads.main([corpus, "lpsi", *words[2:]])
    assert not output.exists()
    ordinary_heads.main(words)
    cells = load_results(output)["cells"]
    assert [(x["system"], x["seed"]) for x in cells] == [("best_head_of_dbsa", n) for n in (6, 7)]
    table = tmp_path / "table.json"
    path = str(tmp_path / "checkpoints" / corpus / "dbsa" / "6" / "checkpoint_average.pt")
    score(["heads", str(tmp_path / "data-bin" / corpus), path, f"--json={table}"])
    expected = dict.fromkeys(ordinary_heads.NAMES, 0.0)
    for view in json.loads(table.read_text())["checkpoints"][path]["views"]:
        for head in view["heads"]:
            key = view["part"], view["rows"]
            if head["kind"] != "dependency":
                expected[key] = max(expected[key], 100 * head["uas"])
    assert len(expected) == 3 and all(expected.values())
    assert [*cells[0]["scores"]] == ["UAS source", "UAS target input", "UAS target"]
    for key, name in ordinary_heads.NAMES.items():
        assert cells[0]["scores"][name] == pytest.approx(expected[key], abs=1e-3)
