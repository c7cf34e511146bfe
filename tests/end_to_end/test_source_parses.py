"""Models whose encoder reads the parse of the source, with fairseq's own commands."""

from pathlib import Path

import pytest

from syncattn_fairseq.parsing.parsers import open_parser
from tests.end_to_end.commands import generate, hypotheses, interactive, logged, train
from tests.end_to_end.corpora import TEST


@pytest.fixture(scope="module")
def reading(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with every kind of heads that reads or learns the parse, and with labels."""
    folder = tmp_path_factory.mktemp("reading")
    kinds = "--pascal-heads=2 --parent-ignoring=0.2 --source-label-dim=5 --encoder-parser=lisa"
    kinds += " --encoder-dependency-layer=2 --cross-attention-tree-window=2 --src-dep-weight=1"
    output = train(data, folder, "transformer_pascal", *kinds.split(), "--max-update=30")
    (folder / "log").write_text(output)
    return folder / "checkpoint_best.pt"


@pytest.fixture(scope="module")
def batched(data: Path, reading: Path) -> str:
    return generate(data, reading, "--batch-size=64")


@pytest.fixture(scope="module")
def source(text: Path) -> str:
    return (text / "pieces" / "test.en").read_text()


@pytest.fixture(scope="module")
def unparsed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same corpus without heads and labels; their dictionaries stay."""
    folder = tmp_path_factory.mktemp("unparsed")
    for file in data.iterdir():
        if ".heads." not in file.name and not (".labels." in file.name and file.suffix != ".txt"):
            (folder / file.name).symlink_to(file)
    return folder


def test_the_parse_is_learnt_and_every_loss_is_logged(reading):
    valid = logged((reading.parent / "log").read_text(), "valid")
    assert valid[-1]["valid_src_dep_loss"] < valid[0]["valid_src_dep_loss"]
    assert valid[-1]["valid_loss"] < valid[0]["valid_loss"]
    assert "valid_tgt_dep_loss" not in valid[0]


def test_batches_of_one_give_the_same(data, reading, batched):
    assert sorted(hypotheses(batched)) == list(range(TEST))
    assert hypotheses(generate(data, reading, "--batch-size=1")) == hypotheses(batched)


def test_interactive_reads_parses_from_files(data, text, reading, source, batched):
    kinds = ("heads", "labels")
    files = [f"--input-{kind}={text / 'words' / f'test.{kind}.en'}" for kind in kinds]
    output = interactive(data, reading, source, *files)
    assert hypotheses(output) == hypotheses(batched)


def test_interactive_parses_on_the_fly(data, text, reading, source, stanza_models, tmp_path):
    spec = f"stanza:en:{stanza_models}"
    some = "".join(source.splitlines(keepends=True)[:10])
    on_the_fly = interactive(data, reading, some, f"--source-parser={spec}")

    words = (text / "words" / "test.en").read_text().splitlines()[:10]
    parses = open_parser(spec)([line.split() for line in words])
    for name in ("heads", "labels"):
        lines = [" ".join(map(str, getattr(parse, name))) for parse in parses]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    files = (f"--input-heads={tmp_path / 'heads'}", f"--input-labels={tmp_path / 'labels'}")
    assert hypotheses(interactive(data, reading, some, *files)) == hypotheses(on_the_fly)
    assert len(hypotheses(on_the_fly)) == 10


def test_without_parses_translation_stops_unless_told_not_to(unparsed, reading, source, batched):
    output = generate(unparsed, reading, fails=True)
    assert "test has no source heads, which the model reads; binarise the text" in output
    ignoring = hypotheses(generate(unparsed, reading, "--missing-parses=ignore"))
    assert ignoring != hypotheses(batched)
    output = interactive(unparsed, reading, source, "--missing-parses=ignore")
    assert hypotheses(output) == ignoring


def test_labels_may_be_missing_with_their_dictionary(unparsed, reading, source, tmp_path):
    for file in unparsed.iterdir():
        if ".labels." not in file.name:
            (tmp_path / file.name).symlink_to(file)
    expected = hypotheses(generate(unparsed, reading, "--missing-parses=ignore"))
    assert hypotheses(generate(tmp_path, reading, "--missing-parses=ignore")) == expected
    output = interactive(tmp_path, reading, source, "--source-parser=random:1", fails=True)
    assert f"error: {reading}: --source-label-dim 5: the data has no dictionary" in output


def test_one_sentence_without_a_parse_is_named(data, text, reading, source, tmp_path):
    heads = (text / "words" / "test.heads.en").read_text().splitlines()
    heads[3] = ""
    path = tmp_path / "heads"
    path.write_text("\n".join(heads) + "\n")
    labels = f"--input-labels={text / 'words' / 'test.labels.en'}"
    output = interactive(data, reading, source, f"--input-heads={path}", labels, fails=True)
    missing = "input: 1 of 10 sentences have no parse, which the model reads"
    assert f"{missing}; the first of them is sentence 4" in output
    assert "--source-parser stanza:LANG" in output


def test_training_without_parses_stops_at_once(unparsed, tmp_path):
    output = train(unparsed, tmp_path, "transformer_pascal", "--max-update=1", fails=True)
    assert "has no source heads, which the model reads" in output


def test_controls_that_read_no_parse_need_none(unparsed, tmp_path):
    options = ("--pascal-parents=self", "--max-update=1", "--disable-validation")
    train(unparsed, tmp_path, "transformer_pascal", *options)
    assert len(hypotheses(generate(unparsed, tmp_path / "checkpoint_last.pt"))) == TEST


def test_gold_heads_change_what_lisa_translates(data, reading, batched):
    gold = generate(data, reading, "--gold-source-heads", "--batch-size=64")
    assert hypotheses(gold) != hypotheses(batched)
