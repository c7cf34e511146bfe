"""Each stage of a recipe reads what it declares, and makes that, and nothing else.

A stage runs in a folder of its own, with nothing but the files that it says it reads.
"""

import gzip
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from lab.tests.end_to_end.test_recipes import SHORT, SMALL, list_missing
from lab.tests.recipes import miniature
from lab.tests.recipes.server import serve
from lab.tests.recipes.test_treebank import SENTENCES
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.fingerprint import NAME as FINGERPRINT
from syncattn_lab.recipes.cell import list_stages, make_cells
from syncattn_lab.recipes.corpus_facts import Corpus, load_corpus, read_facts
from syncattn_lab.recipes.launch import Machines
from syncattn_lab.recipes.processes import Failed, Processes
from syncattn_lab.recipes.request import read_row
from syncattn_lab.recipes.stages import Stage, list_files
from syncattn_lab.recipes.systems import read_overrides
from tests.end_to_end.commands import FORKED

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(FORKED), prepend=os.pathsep)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for language in ("EN", "DE", "TR"):
        monkeypatch.setenv(f"PARSER_{language}", "random")


def configure(corpus: str, folder: Path, **changes: object) -> Path:
    """Copy the configs of a corpus, with changes of its facts, and return their folder."""
    shutil.copytree(CONFIGS / corpus, folder / corpus)
    like, facts = read_facts((CONFIGS,), corpus)
    facts |= {"like": like[-1]} if like else {}
    (folder / corpus / "_data.yaml").write_text(yaml.safe_dump({**facts, **changes}))
    return folder / corpus


def check_stages(
    corpus: Corpus, systems: Sequence[str], tmp_path: Path, *settings: str
) -> list[str]:
    """Run all stages, each alone, and return their names."""
    rows = [(1, read_row(system)) for system in systems]
    overrides = read_overrides([*SHORT, *SMALL, *settings])
    cells = make_cells(corpus, Machines(cpu=True), overrides, rows)
    preparation, trainings = list_stages(corpus, cells, 1, 1)
    stages = [*preparation, *(stage for each in trainings.values() for stage in each)]
    work = tmp_path / "work"
    with Processes() as processes:
        for number, stage in enumerate(stages):
            alone = tmp_path / str(number)
            alone.mkdir()
            check_stage(stage, work, alone, processes)
    return [stage.log.name for stage in stages]


def check_stage(stage: Stage, work: Path, alone: Path, processes: Processes) -> None:
    """Run a stage in a folder that is empty but for what it reads; add what it makes to another."""
    given = [path for path in list_files(work, stage.reads) if not path.is_absolute()]
    for path in given:
        (alone / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(work / path, alone / path)
    with (alone / "output.log").open("wb") as log:
        for step in stage.steps:
            try:
                processes.run(step, alone, log, lambda text: None, {})
            except (Failed, DataError) as failure:
                printed = (alone / "output.log").read_text()[-2000:]
                raise AssertionError(f"{stage.title}: {step}: {failure}: {printed}") from None
    found = [path for path in sorted(alone.rglob("*")) if path.is_file()]
    # Each stage that binarises adds to the fingerprint, which compares itself with its files.
    kept = (path for path in found if path.suffix != ".log" and path.name != FINGERPRINT)
    names = {path.relative_to(alone) for path in kept}
    made = {*list_files(alone, stage.makes)}
    assert names == made | {*given}, stage.title
    assert not list_missing(stage, alone)
    for path in {*given} - made:
        assert (alone / path).read_bytes() == (work / path).read_bytes(), f"{stage.title}: {path}"
    for path in made:
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(alone / path, work / path)


def test_of_the_built_in_corpus(tmp_path):
    sizes = {"train": 10, "valid": 10, "test": 8, "seed": 1}
    subwords = {"size": 100, "joint": True}
    facts = configure("builtin_en_de", tmp_path, generated=sizes, subwords=subwords, checkpoint=1)
    systems = ["lpsi", "dbsa", "sh", "guided_alignment", "multi_task"]
    settings = ["checkpoint.no_epoch_checkpoints=false", "optimization.max_epoch=1"]
    settings.append("optimization.max_update=0")
    stages = check_stages(load_corpus(facts), systems, tmp_path, *settings)
    kinds = ("heads-de", "heads-en", "labels-en", "align", "multitask", "record")
    assert {*(f"binarise-{kind}" for kind in kinds)} < {*stages}


def test_of_a_corpus_from_archives(tmp_path, monkeypatch):
    name = "europarl_de_en_align"
    published = tmp_path / "published"
    made = miniature.make(name, published, tmp_path / "work" / "corpora" / name / "download")
    [archives] = [read_facts((CONFIGS,), name)[1]["archives"]]
    for archive in archives:  # the first has no checksum
        archive.pop("size", None)
        archive.pop("md5", None)
        if "url" in archive:
            archive["sha256"] = made.sha256[archive["url"].removeprefix("https://")]
    del archives[0]["sha256"]
    subwords = {"size": 250, "joint": False, "joined_dictionary": True}
    changes = {"archives": archives, "valid": {"every": 10}}
    facts = configure(name, tmp_path, subwords=subwords, **changes)
    with serve(published) as server:
        monkeypatch.setenv("SYNCATTN_MIRROR", server.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        stages = check_stages(load_corpus(facts), ["pascal"], tmp_path)
    assert {"download", "collect", "tokenise", "clean", "parse-de"} < {*stages}


def test_of_a_treebank_of_one_side(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    for language, sentences in SENTENCES.items():
        for split in ("train", "valid", "test"):
            for n, kind in enumerate(("", "heads.", "labels.")):
                content = "".join(f"{sentence[n]}\n" for sentence in sentences)
                file = folder / f"{split}.{kind}{language}.gz"
                file.write_bytes(gzip.compress(content.encode()))
    monkeypatch.setenv("ATIS", str(folder))
    facts = configure("atis_en_tr_parser", tmp_path, subwords={"size": 40, "joint": True})
    stages = check_stages(load_corpus(facts), ["dbsa"], tmp_path)
    assert {"parse", "parse-en", "binarise-heads-tr"} < {*stages}
