import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.printed.training_log import Point, read_training_log

SIMPLE = """\
2026-01-01 | INFO | fairseq.trainer | begin training epoch 1
2026-01-01 | INFO | train_inner | epoch 001:     50 / 300 loss=11.11, src_dep_loss=2.5e-05, \
ppl=1959.35, num_updates=50, lr=0.00075, wall=18
2026-01-01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 7.8 | sync_loss 0.1 | \
num_updates 150 | best_loss 7.8
2026-01-01 | INFO | train | epoch 001 | loss 7.9 | num_updates 300
"""
JSON = """\
2026-01-01 | INFO | train_inner | {"epoch": 1, "loss": "11.11", "num_updates": "50"}
2026-01-01 | INFO | valid | {"epoch": 1, "valid_loss": "7.8", "valid_num_updates": "150", \
"valid_best_loss": "7.8"}
[2026-01-01][train_inner][INFO] - {"epoch": 1, "loss": "9", "num_updates": "60"}
"""


def test_simple(tmp_path):
    (tmp_path / "log").write_text(SIMPLE)
    assert read_training_log(tmp_path / "log") == [
        Point("loss", "train", 50, 11.11),
        Point("src_dep_loss", "train", 50, 2.5e-05),
        Point("loss", "valid", 150, 7.8),
        Point("sync_loss", "valid", 150, 0.1),
    ]


def test_json_and_hydra(tmp_path):
    (tmp_path / "log").write_text(JSON)
    assert read_training_log(tmp_path / "log") == [
        Point("loss", "train", 50, 11.11),
        Point("loss", "valid", 150, 7.8),
        Point("loss", "train", 60, 9.0),
    ]


def test_what_is_not_a_finite_number_is_skipped(tmp_path):
    (tmp_path / "log").write_text(
        "2026-01-01 | INFO | valid | epoch 001 | loss inf | nll_loss nan | sync_loss 1e+03 | "
        "num_updates 150\n"
        '2026-01-01 | INFO | valid | {"valid_loss": null, "valid_sync_loss": "2", '
        '"valid_num_updates": "160"}\n'
        '2026-01-01 | INFO | valid | {"valid_loss": "3", "valid_num_upd\n'
    )
    assert read_training_log(tmp_path / "log") == [
        Point("sync_loss", "valid", 150, 1000.0),
        Point("sync_loss", "valid", 160, 2.0),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "| INFO | valid | loss ... | wall 1.2.3 | num_updates 1",
        "| INFO | valid | loss 1 | num_updates nan",
        "| INFO | valid | loss 1 | num_updates 1e400",
        f"| INFO | valid | loss {'9' * 400} | num_updates 1",
        '| INFO | valid | {"loss": "1.7e308", "num_updates": "3"}',
        '| INFO | valid | {"loss": "1", "num_updates": "inf"}',
        f'| INFO | valid | {{"loss": {"9" * 400}, "num_updates": "3"}}',
        '| INFO | valid | {"loss": ' + "[" * 100_000,
        r'| INFO | valid | {"\ud800loss": "1", "a\nloss": "1", "num_updates": "3"}',
    ],
)
def test_what_fairseq_never_logs_is_skipped(tmp_path, line):
    (tmp_path / "log").write_text(f"{line}\n{SIMPLE}")
    assert len(read_training_log(tmp_path / "log")) == 4


def test_a_log_of_something_else(tmp_path):
    (tmp_path / "log").write_text("H-0\t-1\tx\n")
    (tmp_path / "log").write_text("x | INFO | valid | epoch 001 | src_uas 66.1 | num_updates 9\n")
    assert read_training_log(tmp_path / "log") == [Point("src_uas", "valid", 9, 66.1)]
    (tmp_path / "log").write_text("H-0\t-1\tx\n")
    with pytest.raises(DataError, match="no loss was logged here"):
        read_training_log(tmp_path / "log")
