"""Recipes whose systems start from a published model."""

import shutil
from pathlib import Path

import pytest

from lab.tests.recipes.test_corpus_facts import names, raw, read_error  # noqa: F401
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.preparation import Preparation, store_preparations
from syncattn_fairseq.imports import read_options
from syncattn_lab.cli.recipe import main
from syncattn_lab.recipes.cell import list_stages, make_cells
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.launch import Machines
from syncattn_lab.recipes.request import read_row
from syncattn_lab.recipes.start import with_options
from tests.published import start_corpus

FACTS = """\
here: {folder: words, train: "train.{language}", valid: "valid.{language}", test: "test.{language}"}
parses: {en: --parser random, de: --parser random}
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    return start_corpus(tmp_path_factory.mktemp("started"))


def write(folder: Path, start: object, facts: str = FACTS) -> Path:
    corpus = folder / "mine"
    (corpus / "words").mkdir(parents=True, exist_ok=True)
    (corpus / "_data.yaml").write_text(f"{facts}start: {start}\n")
    (corpus / "_corpus.yaml").write_text(
        "task: {source_lang: en, target_lang: de}\nmodel: {dropout: 0.2, encoder_layers: 6}\n"
        "optimization: {lr: [0.0001], max_update: 3}\ndataset: {max_tokens: 600}\n"
    )
    return corpus


def list_commands(corpus, work, *systems):
    corpus = with_options(corpus, work)
    cells = make_cells(corpus, Machines(cpu=True), {}, [(1, read_row(name)) for name in systems])
    preparation, stages = list_stages(corpus, cells, 1, 1)
    found = [*preparation, *(stage for each in stages.values() for stage in each)]
    return {stage.log.name: "\n".join(map(str, stage.steps)) for stage in found}, found


def test_the_text_is_prepared_as_the_imported_model_reads_it(started, tmp_path):
    corpus = load_corpus(write(tmp_path, started.imported))
    commands, stages = list_commands(corpus, tmp_path, "dbsa")
    folder = started.imported
    assert "import" not in commands, "it is done"
    reading = f"syncattn-bpe normalise --model {folder}/subwords.de --input corpora/mine/raw/train"
    assert reading in commands["tokenise"]
    assert "--input corpora/mine/tokens/train" in commands["clean"]
    assert "learn" not in commands["subwords"]
    assert f"syncattn-bpe apply --model {folder}/subwords.en" in commands["subwords"]
    assert "syncattn-preprocess" in commands["binarise"]
    assert f"--start {folder}" in commands["binarise"]
    for option in ("--subwords", "--joined-dictionary"):
        assert option not in commands["binarise"]
    assert "--spans corpora/mine/words/train.spans.en" in commands["parse-en"]
    for name, value in {**read_options(folder), "dropout": 0.2}.items():
        value = str(value).lower() if isinstance(value, bool) else value
        if not name.endswith(("attention_dropout", "activation_dropout")):
            assert f"++model.{name}={value}" in commands["train"] or name == "dropout"
    assert f"++checkpoint.finetune_from_model={folder}/model.pt" in commands["train"]
    assert "++model.dropout" not in commands["train"], "the training's own"
    [training] = [stage for stage in stages if stage.name == "train"]
    assert folder / "model.pt" in training.reads


def test_a_published_model_is_imported_first(started, tmp_path):
    corpus = load_corpus(write(tmp_path, started.published))
    with pytest.raises(
        DataError,
        match="opus: the model is not imported yet; .* syncattn-recipe mine --to import",
    ):
        with_options(corpus, tmp_path)
    made = tmp_path / "corpora" / "mine" / "start"
    shutil.copytree(started.imported, made)
    commands, stages = list_commands(corpus, tmp_path, "transformer")
    assert commands["import"].endswith(
        f"syncattn-import {started.published} --output corpora/mine/start --source-lang en "
        "--target-lang de"
    )
    after = {stage.log.name: {log.name for log in stage.after} for stage in stages}
    for name in ("tokenise", "subwords", "binarise", "train"):
        assert "import" in after[name] or name == "binarise"
    assert "corpora/mine/start/model.pt" in commands["train"]
    (made / "dict.de.txt").unlink()
    with pytest.raises(
        DataError, match="dict.de.txt: no such file; import the model with --source"
    ):
        with_options(corpus, tmp_path)


def test_models_that_read_a_language_first_are_refused(started, tmp_path):
    folder = tmp_path / "imported"
    shutil.copytree(started.imported, folder)
    corpus = load_corpus(write(tmp_path, folder))
    path = folder / "dict.en.txt"
    kept = path.read_text()
    path.write_text(f"{kept}>>de<< 1\n")
    with pytest.raises(
        DataError, match="expects the target language, such as >>de<<, before each sentence"
    ):
        with_options(corpus, tmp_path)
    path.write_text(kept)
    record = {name: Preparation("raw", name, first=f"__{name}__") for name in ("en", "de")}
    store_preparations(folder, record)
    with pytest.raises(
        DataError, match="expects the token __en__ before each sentence, which recipes do not add"
    ):
        with_options(corpus, tmp_path)


def test_a_systems_own_positions_are_kept(started, tmp_path):
    corpus = load_corpus(write(tmp_path, started.imported))
    commands, _ = list_commands(corpus, tmp_path, "rotary")
    assert "model.positions" not in commands["train"]


@pytest.mark.parametrize(
    ("system", "fault"),
    [
        ("multi_task", "Multi-Task needs words that the model of .* does not have"),
        ("rnn_global", "a recurrent network cannot start from "),
    ],
)
def test_what_cannot_start_from_it_is_said(started, tmp_path, system, fault):
    corpus = load_corpus(write(tmp_path, started.imported))
    with pytest.raises(DataError, match=fault):
        list_commands(corpus, tmp_path, system)


@pytest.mark.parametrize(
    ("facts", "start", "fault"),
    [
        (
            FACTS + "subwords: {joint: true, size: 9}\n",
            None,
            "subwords: the model under start determines",
        ),
        (FACTS + "words: {en: cat}\n", None, r"words: sentences are not split into words \(start"),
        (FACTS + "start_options: {}\n", None, "unknown key 'start_options'"),
        (FACTS, "[1]", r"start: \[1\]: give the folder of a model"),
        (FACTS, "nowhere", "nowhere/config.json: no such file; .* give a folder of a published"),
        (FACTS, "words", "words/config.json: no such file"),
    ],
)
def test_wrong_facts_are_said(started, tmp_path, facts, start, fault):
    with pytest.raises(DataError, match=fault):
        load_corpus(write(tmp_path, started.imported if start is None else start, facts))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            lambda text: text.replace("--positions marian", "--positions"),
            "not written by syncattn-import",
        ),
        (lambda text: text.replace("--encoder-layers 2\n", ""), "not written by syncattn-import"),
        (
            lambda text: text + "--user-dir /tmp\n",
            "--user-dir is not an option that syncattn-import",
        ),
        (
            lambda text: text.replace("--encoder-layers 2", "--encoder-layers x"),
            "not written by syncattn",
        ),
    ],
)
def test_damaged_options_are_said(started, tmp_path, change, fault):
    folder = tmp_path / "imported"
    shutil.copytree(started.imported, folder)
    path = folder / "options.txt"
    path.write_text(change(path.read_text()))
    with pytest.raises(DataError, match=fault):
        read_options(folder)


def test_init_writes_a_corpus_that_starts_from_a_model(started, raw, capsys):  # noqa: F811
    start = f"--start={started.imported}"
    assert main(["--init", "mine", *names("train", "valid", "test"), start, "--cpu"]) == 0
    assert f"400 pairs, from {started.imported}, " in capsys.readouterr().out
    corpus = load_corpus(Path("mine"))
    assert corpus.start == str(started.imported) and corpus.subwords.raw
    assert corpus.systems == ["transformer", "dbsa", "syncattn"]
    assert main(["mine", "@all", "--dry-run", "--cpu"]) == 0
    out = capsys.readouterr().out
    assert "finetune_from_model" in out and "syncattn-bpe learn" not in out
    error = read_error(capsys, main(["mine", start]))
    assert error.startswith("error: --start needs --init")
    again = ["--init", "other", *names("train"), "--start=nowhere"]
    assert "nowhere/config.json: no such file" in read_error(capsys, main(again))
