"""Decoding with fairseq's own commands."""

from pathlib import Path

import pytest

from syncattn_fairseq.inference.record import read_record
from tests.end_to_end import commands
from tests.end_to_end.commands import generate, hypotheses, interactive, lines, run
from tests.end_to_end.corpora import TEST

PRINTED = ("--print-alignment", "--nbest=2")


@pytest.fixture(scope="module")
def batched(data: Path, syncattn: Path) -> str:
    return generate(data, syncattn / "checkpoint_best.pt", "--batch-size=64", *PRINTED)


def test_every_sentence_comes_out(batched):
    assert sorted(lines(batched, "H")) == list(range(TEST))


@pytest.mark.parametrize("task", [[], ["--task=translation"]])
def test_no_task_loses_sentences(data, syncattn, task):
    user_dir, named, cpu = commands.TASK
    options = [user_dir, *task, f"--path={syncattn / 'checkpoint_best.pt'}", cpu, "--max-len-b=5"]
    output = run("fairseq-generate", data, *options)
    assert sorted(lines(output, "H")) == list(range(TEST))


def test_batches_of_one_give_the_same(data, syncattn, batched):
    single = generate(data, syncattn / "checkpoint_best.pt", "--batch-size=1", *PRINTED)
    assert hypotheses(single) == hypotheses(batched)
    assert lines(single, "A") == lines(batched, "A")


def test_interactive_numbers_sentences_and_gives_the_same(data, text, syncattn, batched):
    source = (text / "pieces" / "test.en").read_text()
    output = interactive(data, syncattn / "checkpoint_best.pt", source, "--nbest=2")
    assert hypotheses(output) == hypotheses(batched)


def test_our_command_translates_as_fairseqs_does(data, text, syncattn):
    """And says what the heads find, one head for each word."""
    model = syncattn / "checkpoint_best.pt"
    expected = hypotheses(generate(data, model, "--batch-size=64", "--remove-bpe=sentencepiece"))
    options = ["--data-bin", data, "--subwords", text / "bpe.model", "--beam=4", "--max-len=20"]
    words = text / "words" / "test.en"
    output = run("syncattn-translate", "--path", model, *options, "--jsonl", "--input", words)
    rows = [line for line in output.splitlines() if line.startswith("{")]
    records = [*map(read_record, rows)]
    assert len(records) == TEST
    for number, record in enumerate(records):
        assert [record.target.text] == [line.strip() for line in expected[number]]
        assert len(record.source.heads) == len(record.source.words)
        for position, head in enumerate(record.target.heads, 1):
            assert head <= position, "a decoder sees no future"


def test_forced_reference_prints_its_links(data, text, syncattn):
    output = generate(data, syncattn / "checkpoint_best.pt", "--score-reference", *PRINTED)
    pieces = (text / "pieces" / "test.de").read_text().splitlines()
    links = lines(output, "A")
    assert len(links) == TEST
    for number, [[line]] in links.items():
        targets = [int(link.split("-")[1]) for link in line.split()]
        assert targets == list(range(len(pieces[number].split())))


def test_ensembles_and_averages_decode(data, syncattn, tmp_path):
    average = tmp_path / "average.pt"
    run("syncattn-average", f"--output={average}", "--last=3", f"--dir={syncattn}", "--by=update")
    both = f"{average}:{syncattn / 'checkpoint_last.pt'}"
    output = generate(data, both, "--print-alignment")
    assert len(lines(output, "H")) == len(lines(output, "A")) == TEST


def test_links_of_one_head(data, syncattn, batched):
    options = (syncattn / "checkpoint_best.pt", "--batch-size=64", "--print-alignment", "--nbest=2")
    heads = [generate(data, *options, f"--alignment-head={number}") for number in (1, 2)]
    mean, first, second = (lines(text, "A") for text in (batched, *heads))
    assert mean.keys() == first.keys() == second.keys()
    assert mean != first != second != mean


def test_half_precision_decodes(data, syncattn):
    output = generate(data, syncattn / "checkpoint_best.pt", "--fp16")
    assert len(lines(output, "H")) == TEST


def test_gold_heads_change_the_translation(data, syncattn, batched):
    options = ("--gold-source-heads", "--batch-size=64", "--nbest=2")
    output = generate(data, syncattn / "checkpoint_best.pt", *options)
    scores = {number: found[0][0] for number, found in lines(output, "H").items()}
    plain = {number: found[0][0] for number, found in lines(batched, "H").items()}
    assert scores.keys() == plain.keys()
    assert sum(scores[n] != plain[n] for n in scores) > TEST / 2


def test_decoding_needs_no_parse(data, syncattn, batched, tmp_path):
    for file in data.iterdir():
        if ".heads." not in file.name:
            (tmp_path / file.name).symlink_to(file)
    output = generate(tmp_path, syncattn / "checkpoint_best.pt", "--nbest=2")
    assert hypotheses(output) == hypotheses(batched)
    output = generate(tmp_path, syncattn / "checkpoint_best.pt", "--gold-source-heads", fails=True)
    assert "test has no source heads for --gold-source-heads" in output


def test_fairseqs_own_model_trains_and_decodes(data, tmp_path):
    commands.train(data, tmp_path, "transformer_tiny", "--max-update=1", "--disable-validation")
    checkpoint = tmp_path / "checkpoint_last.pt"
    assert len(lines(generate(data, checkpoint), "H")) == TEST
