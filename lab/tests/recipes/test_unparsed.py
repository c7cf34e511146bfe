"""Training texts without parses, such as back-translations, in a recipe."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lab.tests.recipes.test_missing import write_texts
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.recipes.cell import list_stages, make_cells
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.launch import Machines
from syncattn_lab.recipes.rehearsal import SENTENCES, shorten_corpus
from syncattn_lab.recipes.request import read_row


@pytest.fixture
def corpus(tmp_path):
    made = write_texts(tmp_path, 30)
    for language in ("en", "de"):
        (tmp_path / f"back.{language}").write_text(f"back {language} ab.\n" * 30)
    here = replace(made.here, unparsed="back.{language}")
    return replace(made, here=here, unparsed=["plain=back.{language}"])


def cells_of(corpus, *names):
    return make_cells(corpus, Machines(cpu=True), {}, [(1, read_row(name)) for name in names])


def test_they_are_prepared_as_training_text_and_become_its_second_part(corpus):
    cells = cells_of(corpus, "dbsa")
    preparation, trainings = list_stages(corpus, cells, 1, 1)
    stages = {stage.log.name: stage for stage in preparation}
    lines = {name: [str(step) for step in stage.steps] for name, stage in stages.items()}
    assert any("plain=back.{language}" in line for line in lines["collect"])
    assert any("--first" not in line and "unparsed" in line for line in lines["collect"])
    assert sum("tokens/unparsed." in line for line in lines["tokenise"]) == 2
    assert f"--output corpora/{corpus.name}/words/unparsed" in lines["clean"][1]
    assert any("pieces/unparsed.en" in line for line in lines["subwords"])
    assert not any("unparsed" in line for line in lines["parse-en"])
    made = Path("data-bin", corpus.name, "train1.en-de.de.idx")
    assert made in stages["binarise-unparsed"].makes
    assert {"binarise", "subwords"} == {log.name for log in stages["binarise-unparsed"].after}
    training = trainings[cells[0]][0]
    assert "binarise-unparsed" in {log.name for log in training.after}
    without = replace(corpus, unparsed=[], here=replace(corpus.here, unparsed=None))
    assert "binarise-unparsed" not in {
        stage.log.name for stage in list_stages(without, cells_of(without, "dbsa"), 1, 1)[0]
    }


@pytest.mark.parametrize("name", ["pascal", "sh", "multi_task"])
def test_systems_that_need_every_parse_are_refused(corpus, name):
    with pytest.raises(DataError, match=f"^{name}: it needs the parse of every training sentence"):
        cells_of(corpus, "dbsa", name)
    if name != "multi_task":
        cells_of(corpus, f"{name}:task.missing_parses=ignore")
    cells_of(replace(corpus, unparsed=[], here=replace(corpus.here, unparsed=None)), name)


def test_a_rehearsal_has_some_of_them(corpus, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    short, faults = shorten_corpus(corpus, tmp_path, scratch)
    assert not faults
    assert short.list_texts("unparsed") == ["plain=unparsed.{language}"]
    assert (scratch / "texts" / "unparsed.de").read_text() == "back de ab.\n" * SENTENCES


@pytest.mark.parametrize(
    ("like", "facts", "message"),
    [
        ("builtin_en_de", "unparsed: [{plain: x}]", "unparsed: all text of a generated corpus has"),
        ("multi30k_en_de", "unparsed: [{plain: x}]", ""),
        ("multi30k_en_de", "unparsed: [{plane: x}]", "unparsed: no format 'plane'"),
        (
            "multi30k_en_de",
            "here: {variable: X, train: t, test: e, valid: v}\nunparsed: [{plain: x}]",
            "here: unparsed: give this key if and only if unparsed has texts",
        ),
    ],
)
def test_where_they_are(tmp_path, like, facts, message):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "_data.yaml").write_text(f"like: {like}\n{facts}\n")
    if message:
        with pytest.raises(DataError, match=re.escape(message)):
            load_corpus(folder)
    else:
        assert load_corpus(folder).unparsed == ["plain=x"]
