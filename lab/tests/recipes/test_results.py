import json

from syncattn_lab.recipes.cell_results import read_scores, read_test_nll, read_training

LOG = """\
$ fairseq-hydra-train
[2026-11-22 01:00:00,000][train_inner][INFO] - epoch 001:  10 / 20 loss=9, num_updates=10
[2026-11-22 01:00:00,000][valid][INFO] - epoch 001 | valid on 'valid' subset | loss 5.5 | \
nll_loss 4.5 | num_updates 20 | best_loss 5.5
[2026-11-22 01:00:00,000][train][INFO] - epoch 001 | loss 6.1 | num_updates 20 | train_wall 10 | \
gb_free 1 | wall 15
[2026-11-22 01:00:00,000][train][INFO] - epoch 001 | loss 6.1 | num_updates 20 | train_wall 12 | \
wall 16
[2026-11-22 01:00:00,000][train_inner][INFO] - epoch 002:  10 / 20 loss=5, num_updates=30, \
train_wall=5, wall=19
[2026-11-22 01:00:00,000][valid][INFO] - epoch 002 | valid on 'valid' subset | loss 5.7 | \
nll_loss 4.9 | num_updates 40 | best_loss 5.5
[2026-11-22 01:00:00,000][train][INFO] - epoch 002 | loss 5.1 | num_updates 40 | train_wall 8 | \
wall 7
[2026-11-22 01:00:00,000][valid][INFO] - epoch 003 | valid on 'valid' sub
[2026-11-22 01:00:00,000][train][INFO] - epoch 003 | loss 5.0 | num_upd
"""


def test_a_training_in_its_log(tmp_path):
    (tmp_path / "log").write_text(LOG)
    found = read_training(tmp_path / "log")
    assert found["valid"] == {"loss": 5.5, "nll_loss": 4.5}
    assert found["nll_by_update"] == {"20": 4.5, "40": 4.9}
    assert (found["updates"], found["seconds"], found["updates_per_second"]) == (40, 19 + 7, 2)
    done = "[t][fairseq_cli.train][INFO] - done training in {} seconds\n"
    again = "[t][train][INFO] - epoch 003 | num_updates 60 | train_wall 8 | wall 0\n"
    (tmp_path / "log").write_text(LOG + done.format(9.5) + again + done.format(8.5))
    assert read_training(tmp_path / "log")["seconds"] == 19 + 9.5 + 8.5
    as_json = '[t][train][INFO] - {"epoch": 1, "train_num_updates": "40", "train_train_wall": "8", '
    (tmp_path / "log").write_text(as_json + '"train_wall": "9"}\n')
    found = read_training(tmp_path / "log")
    assert (found["updates"], found["seconds"], found["updates_per_second"]) == (40, 9, 5)
    (tmp_path / "log").write_text(LOG + done.format("..."))
    assert read_training(tmp_path / "log")["seconds"] == 19 + 7
    (tmp_path / "log").write_text("killed\n")
    assert read_training(tmp_path / "log") == {"valid": {}}


def test_the_nll_of_the_test_text_is_in_the_log_of_decoding(tmp_path):
    line = "2026-11-27 02:46:19 | INFO | test | valid on 'test' subset | loss 5.8 | nll_loss 4.5\n"
    (tmp_path / "log").write_text("$ fairseq-validate\n" + line + line.replace("4.5", "4.25"))
    assert read_test_nll(tmp_path / "log") == {"test": {"nll_loss": 4.25}}, "of the last time"
    (tmp_path / "log").write_text("decoded before it was measured\n")
    assert read_test_nll(tmp_path / "log") == {}


def test_scores_of_a_cell(tmp_path):
    scores = {"BLEU": 30.0, "UAS source": 90.0}
    layers = {"layer_alignment": {"2": {"aer": 0.125}}}
    trees = {"target_brackets": {"1": {"sentence": {"f1": 0.5}}}}
    counted = {"target_baselines": {"counts": {"uas": 0.25}}}
    system = {"scores": scores, "signatures": {"BLEU": "s"}, **layers, **trees, **counted}
    (tmp_path / "scores.json").write_text(json.dumps({"systems": {"x": system}}))
    assert read_scores(tmp_path) == {
        "scores": {**scores, "AER layer 2": 12.5, "trees layer 1": 50.0, "UAS target counts": 25.0},
        "signatures": {"BLEU": "s"},
    }
    ways = {"cell": {"forward": {"aer": 1}}, "cell layer 3": {"forward": {"aer": 0.25}}}
    (tmp_path / "links.json").write_text(json.dumps({"systems": ways}))
    found = read_scores(tmp_path)["scores"]
    assert found["AER layer 3 forward"] == 25.0
    assert "AER cell" not in found and "AER forward" not in found
