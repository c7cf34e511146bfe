import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.cli.average import main
from tests.cli.errors import read_error

TRAIN = """
import sys
from fairseq_cli import preprocess, train
sys.argv = (
    "preprocess -s en -t de --trainpref train --validpref train --testpref train --destdir bin"
).split()
preprocess.cli_main()
sys.argv = (
    "train bin --cpu --arch transformer_tiny --optimizer adam --lr 0.01 --batch-size 4 "
    "--required-batch-size-multiple 1 --max-update 3 --save-interval-updates 1 --save-dir ckpt "
    "--disable-validation --share-decoder-input-output-embed"
).split()
train.cli_main()
"""


def run(*command: str, folder: Path) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a real model of fairseq, saved after updates 1, 2 and 3."""
    folder = tmp_path_factory.mktemp("average")
    for language in ("en", "de"):
        lines = [f"{language} {n} {n + 1}\n" for n in range(14)]
        (folder / f"train.{language}").write_text("".join(lines), encoding="utf-8")
    run("-c", TRAIN, folder=folder)
    return folder


def test_mean_of_a_real_model(trained, capsys):
    checkpoints, output = trained / "ckpt", trained / "mean.pt"
    arguments = ["--last", "2", "--dir", str(checkpoints), "--by", "update"]
    assert main(["--output", str(output), *arguments]) == 0
    assert "mean of 2 checkpoints (updates 2, 3), without optimizer" in capsys.readouterr().out

    one, two = (torch.load(checkpoints / f"checkpoint_1_{n}.pt")["model"] for n in (2, 3))
    mean = torch.load(output)["model"]
    assert list(mean) == list(two)
    assert any(not torch.equal(one[key], two[key]) for key in one)
    for key, value in mean.items():
        assert value.dtype == two[key].dtype
        torch.testing.assert_close(value.double(), (one[key].double() + two[key].double()) / 2)

    generate = "-m fairseq_cli.generate bin --cpu --path mean.pt --required-batch-size-multiple 1"
    plugin = Path(syncattn_fairseq.__file__).parent
    decoded = run(*generate.split(), "--user-dir", str(plugin), folder=trained)
    assert decoded.count("H-") == 14


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--last", "9", "--dir", "ckpt"], "ckpt: 0 checkpoints by epoch, too few to average 9\n"),
        (["--last", "2", "--dir", "ckpt"], "too few to average 2; --by update has 3\n"),
        (["ckpt/checkpoint_9_9.pt"], "checkpoint_9_9.pt"),
    ],
)
def test_one_line_says_what_is_wrong(trained, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(trained)
    assert message in read_error(capsys, main(["--output", "wrong.pt", *arguments]))
    assert not (trained / "wrong.pt").exists()


@pytest.mark.parametrize("arguments", [[], ["a.pt", "--last", "2", "--dir", "."], ["--last", "2"]])
def test_contradictory_arguments(arguments):
    with pytest.raises(SystemExit):
        main(["--output", "wrong.pt", *arguments])
