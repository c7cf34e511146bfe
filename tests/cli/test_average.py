from pathlib import Path

import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.cli.average import main
from tests.checkpoints import Corpus, make_checkpoint
from tests.cli.errors import read_error


@pytest.fixture(scope="module")
def trained(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of fairseq's own, saved after updates 1, 2 and 3."""
    folder = tmp_path_factory.mktemp("average")
    (folder / "ckpt").mkdir()
    for n in (1, 2, 3):
        path = folder / "ckpt" / f"checkpoint_1_{n}.pt"
        make_checkpoint(small_corpus, path, "transformer", updates=n)
    return folder


def test_mean_of_a_real_model(trained, small_corpus, capsys):
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

    model = syncattn_fairseq.load(output, small_corpus.data, small_corpus.subwords, device="cpu")
    assert len(model.translate(small_corpus.lines("test.en"))) == 12


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
