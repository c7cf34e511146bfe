import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.printed.training_log import Point, read_training_log

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


NOT_FINITE = """\
2026-01-01 | INFO | valid | epoch 001 | loss inf | nll_loss nan | sync_loss 1e+03 | num_updates 150
2026-01-01 | INFO | valid | {"valid_loss": null, "valid_sync_loss": "2", "valid_num_updates": "160"}
2026-01-01 | INFO | valid | {"valid_loss": "3", "valid_num_upd
"""
POINTS = {
    SIMPLE: [
        *(("loss", "train", 50, 11.11), ("src_dep_loss", "train", 50, 2.5e-05)),
        *(("loss", "valid", 150, 7.8), ("sync_loss", "valid", 150, 0.1)),
    ],
    JSON: [("loss", "train", 50, 11.11), ("loss", "valid", 150, 7.8), ("loss", "train", 60, 9.0)],
    NOT_FINITE: [("sync_loss", "valid", 150, 1000.0), ("sync_loss", "valid", 160, 2.0)],
    "x | INFO | valid | epoch 1 | src_uas 66.1 | num_updates 9\n": [("src_uas", "valid", 9, 66.1)],
}


@pytest.mark.parametrize(("text", "points"), POINTS.items())
def test_finite_numbers_of_each_kind_of_log_are_read(tmp_path, text, points):
    (tmp_path / "log").write_text(text)
    assert read_training_log(tmp_path / "log") == [Point(*point) for point in points]


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
    with pytest.raises(DataError, match="the log has no losses"):
        read_training_log(tmp_path / "log")
