"""The recurrent model with fairseq's own commands."""

from pathlib import Path

import pytest

from tests.end_to_end.commands import generate, hypotheses, interactive, lines, logged, train
from tests.end_to_end.corpora import TEST


@pytest.fixture(scope="module")
def rnn(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rnn")
    output = train(data, folder, "rnn_syntax_directed_double", "--tree-window=2", "--max-update=30")
    (folder / "log").write_text(output)
    return folder / "checkpoint_best.pt"


def test_it_learns(rnn):
    valid = logged((rnn.parent / "log").read_text(), "valid")
    assert valid[-1]["valid_loss"] < valid[0]["valid_loss"]
    assert valid[-1]["valid_saturated_positions"] < 20
    assert -1 <= valid[-1]["valid_position_correlation"] <= 1


def test_batches_and_single_sentences_give_the_same(data, text, rnn):
    batched = generate(data, rnn, "--batch-size=64", "--print-alignment")
    assert sorted(hypotheses(batched)) == list(range(TEST))
    assert len(lines(batched, "A")) == TEST
    source = (text / "pieces" / "test.en").read_text()
    heads = f"--input-heads={text / 'words' / 'test.heads.en'}"
    assert hypotheses(interactive(data, rnn, source, heads)) == hypotheses(batched)
