from pathlib import Path

import pytest
import torch

from syncattn_fairseq.cli.average import main
from tests.cli.errors import read_error
from tests.test_checkpoints import save


@pytest.fixture(autouse=True)
def _checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that was saved after updates 1, 2 and 3."""
    monkeypatch.chdir(tmp_path)
    Path("ckpt").mkdir()
    for n in (1, 2, 3):
        save(Path(f"ckpt/checkpoint_1_{n}.pt"), n, {"w": torch.tensor([2.0**n])})


def test_the_mean_of_the_last(capsys):
    assert main(["--output", "mean.pt", "--last", "2", "--dir", "ckpt", "--by", "update"]) == 0
    assert "mean of 2 checkpoints (updates 2, 3), without optimizer" in capsys.readouterr().out
    assert torch.load("mean.pt")["model"]["w"] == (4 + 8) / 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--last", "9", "--dir", "ckpt"],
            "ckpt: has 0 checkpoints of the kind --by epoch, but 9 are to be averaged\n",
        ),
        (
            ["--last", "2", "--dir", "ckpt"],
            "2 are to be averaged; for --by update the folder has 3\n",
        ),
        (["ckpt/checkpoint_9_9.pt"], "checkpoint_9_9.pt"),
    ],
)
def test_one_line_says_what_is_wrong(capsys, arguments, message):
    assert message in read_error(capsys, main(["--output", "wrong.pt", *arguments]))
    assert not Path("wrong.pt").exists()


@pytest.mark.parametrize("arguments", [[], ["a.pt", "--last", "2", "--dir", "."], ["--last", "2"]])
def test_contradictory_arguments(arguments):
    with pytest.raises(SystemExit):
        main(["--output", "wrong.pt", *arguments])
