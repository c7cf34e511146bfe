"""The queue of the experiment on a model that already translates, with a tiny one."""

from pathlib import Path

import numpy as np
import pytest

from study import start
from study.start import SEEDS, SYSTEMS, Pretraining, make_command, take_others
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.cli import bpe, import_, preprocess
from syncattn_fairseq.data.parses import check_tree, read_heads
from syncattn_lab.evaluation.results_file import load_results

SETTINGS = Pretraining(pieces=30, width=8, layers=1, tokens=200, updates=3, warmup=2, saved=2)


def test_another_sentence_has_as_many_words():
    trees = [[0, 1], [2, 0], [], [2, 0, 2], [], [0, 1, 2, 3]] + [[0, 1, 1]]
    taken = take_others(trees, 0)
    assert taken[:2] == [[2, 0], [0, 1]] and taken[3] == [0, 1, 1] and taken[6] == [2, 0, 2]
    assert taken[2] == taken[4] == []
    assert taken[5] == [2, 3, 4, 0]  # no other has four words: mirrored
    many = [[0, 1, *[1] * (n % 2), *[2] * (n % 3)] for n in range(60)]
    drawn = take_others(many, 1)
    assert [*map(len, drawn)] == [*map(len, many)] and drawn == take_others(many, 1)
    assert drawn != take_others(many, 2)
    for tree in drawn:
        check_tree(tree)


def test_batches_hold_all_pairs_and_no_more_tokens():
    generator = np.random.default_rng(1)
    pairs = [[[0] * n, [0] * m] for n, m in generator.integers(1, 30, (90, 2))]
    batches = [*start._list_batches(pairs, Pretraining(tokens=100, updates=70))]
    assert len(batches) == 70 and batches == [
        *start._list_batches(pairs, Pretraining(tokens=100, updates=70))
    ]
    seen: list[int] = []
    while len(seen) < len(pairs):
        seen += batches.pop(0)
    assert sorted(seen) == [*range(90)]
    for batch in batches:
        longest = max(len(side) for number in batch for side in pairs[number])
        assert len(batch) == 1 or longest * len(batch) <= 100


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The folder of a recipe with a text and its parses."""
    work = tmp_path_factory.mktemp("work")
    texts = work / "corpora" / start.CORPUS
    (texts / "raw").mkdir(parents=True)
    (texts / "words").mkdir()
    lines = ["A man’s dog, here.", "The dog: a man sees it.", "It is here.", "Dogs sleep a lot!"]
    words = ["A man ’s dog , here .", "The dog : a man sees it .", "It is here ."]
    words += ["Dogs sleep a lot !"]
    for split, count in (("train", 5), ("valid", 1), ("test", 2)):
        for language in start.LANGUAGES:
            files = {"raw": lines, "words": words}
            for folder, rows in files.items():
                text = "".join(f"{line}\n" for line in rows * count)
                (texts / folder / f"{split}.{language}").write_text(text, encoding="utf-8")
            rows = []
            for number, line in enumerate(words * count):
                size = len(line.split())
                heads = [*range(size)] if number % 8 < 4 else [2, 0, *[2] * (size - 2)]
                rows.append(" ".join(map(str, heads)))
            (texts / "words" / f"{split}.heads.{language}").write_text("\n".join(rows) + "\n")
    return work


COMMANDS = {
    "syncattn-import": import_.main,
    "syncattn-bpe": bpe.main,
    "syncattn-preprocess": preprocess.main,
}


class Interrupted(Exception):
    pass


def test_a_model_is_made_and_fine_tuned(work, tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(start, "PRETRAINED", 12)
    trained = []

    def run(command, *words):
        if command == "fairseq-train":
            trained.append(words)
        else:
            assert not COMMANDS[command]([*words])

    monkeypatch.setattr(start, "_run", run)
    # The training of the MarianMT is interrupted, and goes on to where it would have ended.
    texts = tuple(
        [*read_lines(work / "corpora" / start.CORPUS / "raw" / f"train.{language}")][:12]
        for language in start.LANGUAGES
    )
    start.pretrain(tmp_path / "at once", texts, SETTINGS)
    whole = start._list_batches

    def interrupt(*arguments):
        yield from [*whole(*arguments)][:2]
        raise Interrupted

    with monkeypatch.context() as context:
        context.setattr(start, "_list_batches", interrupt)
        with pytest.raises(Interrupted):
            start.bring_model(work, SETTINGS)
    model = start.bring_model(work, SETTINGS)
    states = [
        transformers.MarianMTModel.from_pretrained(folder).state_dict()
        for folder in (tmp_path / "at once", work / "start" / "marian")
    ]
    for name, tensor in states[0].items():
        assert tensor.equal(states[1][name]), name
    assert start.bring_model(work, SETTINGS) == model  # nothing is done again
    assert not (work / "start" / "marian" / "state.pt").exists()

    start.prepare(work, model)
    right, other = (
        [*read_heads(work / "start" / x / "train.heads.en")] for x in ("right", "other")
    )
    assert len(right) == 8 and right != other and [*map(len, right)] == [*map(len, other)]
    for split in ("valid", "test"):
        files = [work / "start" / x / f"{split}.heads.de" for x in ("right", "other")]
        assert files[0].read_text() == files[1].read_text()

    results = tmp_path / "results"
    monkeypatch.setattr(start, "average", lambda *_: model / "model.pt")
    start.run(work, results, model)
    cells = load_results(results / "fine_tuned.json")["cells"]
    assert [(x["system"], x["seed"]) for x in cells] == [(a, b) for b in SEEDS for a in SYSTEMS]
    [imported] = load_results(results / "imported.json")["cells"]
    assert {x["test"]["nll_loss"] for x in (*cells, imported)} == {imported["test"]["nll_loss"]}
    assert 4 < imported["test"]["nll_loss"] < 9  # bits; of some 50 subwords, nothing is learnt
    assert len(trained) == len(cells)
    others = [f"{work}/data-bin/start.other" in words for words in trained]
    assert others == [system == "other_tree" for _ in SEEDS for system in SYSTEMS]
    # What is there is not done again.
    del cells[3]
    start._write(results / "fine_tuned.json", cells)
    start.run(work, results, model)
    assert len(trained) == 10 and "--seed=42" in trained[-1]


def test_cells_share_all_but_their_system(tmp_path):
    (tmp_path / "options.txt").write_text("--encoder-layers 3\n--zero-start\n")
    commands = [make_command(Path("w"), tmp_path, system, 41) for system in SYSTEMS]
    kept = [
        [word for word in words if not word.startswith(("--arch", "--save-dir", "w/data-bin"))]
        for words in commands
    ]
    plain = kept[[*SYSTEMS].index("plain")]
    for words in kept:
        assert [word for word in words if "-dep-weight" not in word] == plain
    assert {"--encoder-layers", "3", "--zero-start", "--max-update=480", "--cpu"} <= {*plain}
    assert start.UPDATES - start.AVERAGED * start.APART > 60  # after the warm-up


def test_parsed_words_of_another_text_are_refused(work, tmp_path):
    name = "corpora/multi30k_en_de"
    for folder in ("raw", "words"):
        (tmp_path / name / folder).mkdir(parents=True)
    for file in ("raw/test.en", "words/test.heads.en"):
        (tmp_path / name / file).write_text("1\n")
    (tmp_path / name / "words/test.en").write_text("")
    with pytest.raises(DataError, match=r"words/test\.en: has not the lines of .*raw/test\.en"):
        start._write_parsed(tmp_path, tmp_path, "test", "en", others=False)
