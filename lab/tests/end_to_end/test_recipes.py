"""Every recipe from its archives to its score, in miniature."""

import gzip
import json
import os
import re
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path

import pytest
import yaml
from sacrebleu.metrics.bleu import BLEU

from lab.tests.recipes import miniature
from lab.tests.recipes.server import Server, serve
from syncattn_fairseq.data.fingerprint import NAME as FINGERPRINT
from syncattn_lab.cli import recipe as recipes
from syncattn_lab.evaluation.results_file import load_results, unpack_counts
from syncattn_lab.recipes.cell import list_stages, make_cells
from syncattn_lab.recipes.corpus_facts import Corpus, load_corpus, read_facts
from syncattn_lab.recipes.launch import Machines
from syncattn_lab.recipes.request import read_row
from syncattn_lab.recipes.row_settings import describe_model, list_needs
from syncattn_lab.recipes.stages import Stage, list_files
from syncattn_lab.recipes.systems import read_overrides
from tests import japanese
from tests.end_to_end.commands import BIN, FORKED

NOWHERE = "http://127.0.0.1:9"
CONFIGS = Path(__file__).parents[3] / "configs"
SHORT = [
    "optimization.max_update=2",
    "optimization.update_freq=[1]",
    "dataset.batch_size=8",
    "common.log_format=json",
    "generation.max_len_b=20",
]
SMALL = [
    *("model.encoder_layers=2", "model.decoder_layers=2"),
    *("model.encoder_embed_dim=32", "model.encoder_ffn_embed_dim=32", "model.decoder_embed_dim=32"),
    *("model.encoder_attention_heads=8", "model.decoder_attention_heads=8"),
]
SMALL_RNN = [
    *("model.encoder_embed_dim=32", "model.encoder_hidden_size=32"),
    *("model.decoder_embed_dim=32", "model.decoder_hidden_size=32"),
]


@pytest.fixture(scope="module")
def parsers(stanza_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models for Stanza in every language, and of KyTea and EDA."""
    folder = tmp_path_factory.mktemp("parsers")
    for name in ("tagger", "parser"):
        for language in ("en", "de", "ro", "tr"):
            shutil.copy(stanza_models / f"en_{name}.pt", folder / f"{language}_{name}.pt")
    japanese.install(folder)
    return folder


class Recipe:
    """A corpus in miniature on a server, and a folder to work in."""

    def __init__(self, corpus: str, folder: Path, parsers: Path) -> None:
        self.corpus = corpus
        self.work = folder / "work"
        self.work.mkdir()
        self.published = folder / "published"
        self.parsers = parsers
        download = self.work / "corpora" / corpus / "download"
        self.made = miniature.make(corpus, self.published, download)
        self.configs = folder / "configs"
        shutil.copytree(CONFIGS / corpus, self.configs / corpus)
        like, facts = read_facts((CONFIGS,), corpus)
        facts |= {"like": like[-1]} if like else {}
        for archive in facts["archives"]:
            archive.pop("size", None)
            if "url" in archive:
                archive.pop("md5", None)
                archive["sha256"] = self.made.sha256[archive["url"].removeprefix("https://")]
        facts["subwords"]["size"] = 250
        if "parts" in facts["score"]:
            facts["score"]["parts"] = "first:8,second:8,third:8"
        if "every" in facts["valid"]:
            facts["valid"]["every"] = 10
        if "last" in facts["valid"]:
            facts["valid"]["last"] = 6
        self.write(facts)

    def write(self, facts: dict[str, object]) -> None:
        path = self.configs / self.corpus / "_data.yaml"
        path.write_text(yaml.safe_dump(facts, sort_keys=False))

    def run(self, server: Server | None, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(map(str, (FORKED, self.parsers, BIN, os.environ["PATH"])))
        where = ("--configs", self.configs, "--work", self.work, "--cpu")
        return subprocess.run(
            ["syncattn-recipe", self.corpus, *arguments, *map(str, where)],
            env={
                **os.environ,
                "PATH": path,
                "SYNCATTN_MIRROR": server.url if server else "",
                **{"http_proxy": NOWHERE, "https_proxy": NOWHERE, "no_proxy": "127.0.0.1"},
                "STANZA_DIR": str(self.parsers),
                "PARSER_JA": f"eda:{self.parsers}/model.etm",
                "OMP_NUM_THREADS": "1",
                "CUDA_VISIBLE_DEVICES": "",
            },
            capture_output=True,
            text=True,
            timeout=600,
        )

    def lines(self, name: str) -> list[str]:
        text = (self.work / "corpora" / self.corpus / name).read_text(encoding="utf-8")
        return text.split("\n")[:-1]


def count(line: str) -> int:
    return len(line.split())


#: A corpus of each kind, and the systems to train on it. Every other one is tested in
#: test_recipes_of_other_corpora.py, beside this file, so that two processes share the work.
RECIPES = [
    ("wmt14_en_de", ["syncattn"]),
    ("wmt16_en_ro", ["dbsa"]),
    ("aspec_ja_en", ["syncattn"]),
    ("aspec_ja_en_lpsi", ["sync_attention"]),
    ("aspec_en_ja", ["pascal"]),
    ("iwslt14_de_en", ["synch_rank"]),
    ("iwslt14_de_en_words", ["lpsi"]),
    ("wmt14_en_de_words", ["rnn_syntax_directed_double"]),
    ("europarl_de_en_align", ["synch_mse"]),
    ("nc11_en_de", ["multi_task"]),
    ("nc11_de_en", ["pascal"]),
    ("wmt16_en_de", ["sh"]),
    ("wmt17_en_de", ["lisa"]),
    ("wmt18_en_tr", ["pascal"]),
    ("kftt_ja_en", ["syncattn_without_parses"]),
    ("multi30k_en_de", ["syncattn"]),
]


#: Those whose own ends with the binarised text: their systems are trained, decoded and scored as
#: others here; test_configs.py builds their models.
UNTRAINED = ("wmt16_en_ro", "aspec_ja_en", "iwslt14_de_en_words", "nc11_de_en", "wmt18_en_tr")
UNTRAINED += ("kftt_ja_en", "multi30k_en_de")

#: Systems whose parses are compared with those of the corpus.
WITH_PARSES = ("dbsa", "syncattn", "lisa")


@pytest.mark.parametrize(("corpus", "systems"), RECIPES[::2])
def test_recipe(corpus, systems, tmp_path, parsers):
    check_recipe(corpus, systems, tmp_path, parsers)


def check_recipe(corpus: str, systems: list[str], tmp_path: Path, parsers: Path) -> None:
    recipe = Recipe(corpus, tmp_path, parsers)
    recurrent = all(name.startswith("rnn_") for name in systems)
    small = [*SHORT, *(SMALL_RNN if recurrent else SMALL)]
    small += ["--to=binarise"] if corpus in UNTRAINED else []
    with serve(recipe.published) as server:
        done = recipe.run(server, *systems, *small)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    facts = load_corpus(recipe.configs / corpus)
    configs = [facts.system(name).load() for name in systems]
    needs = set().union(*(list_needs(config, describe_model(config)) for config in configs))
    for number, language in enumerate(facts.languages):
        for split, pairs in recipe.made.texts.items():
            assert recipe.lines(f"raw/{split}.{language}") == [pair[number] for pair in pairs]
            if f"heads.{language}" in needs or f"labels.{language}" in needs:
                heads = recipe.lines(f"words/{split}.heads.{language}")
                words = recipe.lines(f"words/{split}.{language}")
                parsed = [
                    len(h.split()) == len(w.split()) for h, w in zip(heads, words, strict=True)
                ]
                assert sum(parsed) >= len(parsed) - 1  # a control character or so
    check_declarations(recipe.work, facts, systems, [word for word in small if "--" not in word])
    again = recipe.run(None, *systems, *small)  # nothing is done twice
    assert again.returncode == 0 and "== " not in again.stdout, again.stdout
    folders = {path.name for path in recipe.work.iterdir()}  # nothing but what is asked for
    if corpus in UNTRAINED:
        assert any((recipe.work / "data-bin").rglob("train.*.bin"))
        assert folders == {"corpora", "data-bin", "logs"}
        return
    assert folders == {"checkpoints", "corpora", "data-bin", "logs", "results"}
    assert again.stdout == done.stdout[done.stdout.index("\nsystem") + 1 :]
    results = load_results(recipe.work / "results" / f"{corpus}.json")
    assert [(cell["system"], cell["seed"]) for cell in results["cells"]] == [
        (name, 1) for name in systems
    ]
    for cell in results["cells"]:
        folder = recipe.work / "checkpoints" / corpus / cell["system"] / "1"
        score = json.loads((folder / "scores.json").read_text())["systems"][cell["system"]]
        assert score["sentences"] == len(recipe.made.texts["test"])
        assert ("BLEU, compounds split" in cell["scores"]) == (corpus == "wmt14_en_de")
        assert ("AER layer 1 grow-diag-lilt" in cell["scores"]) == bool(facts.gold_alignments)
        assert ("UAS source" in cell["scores"]) == (cell["system"] in WITH_PARSES)
        assert len((folder / "translations.txt").read_text().splitlines()) == score["sentences"]
        assert cell["updates"] == 2 and cell["valid"]["loss"] > 0
        counts = unpack_counts(cell["ngrams"])  # of each sentence; BLEU can be computed from them
        bleu = BLEU(force=True)._compute_score_from_stats(counts.sum(0).tolist()).score
        assert len(counts) == score["sentences"] and round(bleu, 4) == cell["scores"]["BLEU"]
    assert f"\n{systems[-1]} " in done.stdout


def check_declarations(work: Path, corpus: Corpus, systems: list[str], settings: list[str]) -> None:
    """Check that the stages that are done have made what they declare, and nothing else."""
    rows = [(None, read_row(system)) for system in systems]
    cells = make_cells(corpus, Machines(cpu=True), read_overrides(settings), rows)
    preparation, trainings = list_stages(corpus, cells, 1, 1)
    stages = [*preparation, *(stage for each in trainings.values() for stage in each)]
    done = [stage for stage in stages if (work / stage.log.with_suffix(".done")).exists()]
    assert {stage.name for stage in done} >= {"download", "collect", "binarise"}
    assert [path for stage in done for path in list_missing(stage, work)] == []
    given = [path for stage in done if stage.name == "download" for path in stage.reads]
    declared = [*given, *(path for stage in done for path in stage.makes)]
    paths = [p for part in ("corpora", "data-bin", "checkpoints") for p in (work / part).rglob("*")]
    marks = {".log", ".done", ".begun"}
    found = {path for path in paths if path.is_file() and path.suffix not in marks}
    # Each stage that binarises adds to the fingerprint, which compares itself with its files.
    names = {path.relative_to(work) for path in found if path.name not in ("lock", FINGERPRINT)}
    assert names == {*list_files(work, declared)}


def list_missing(stage: Stage, work: Path) -> list[Path]:
    """List the files that a stage declares to make, not as a pattern, and that are not there."""
    return [path for path in stage.makes if not list_files(work, [path]) and "*" not in path.name]


def check_report(page: str) -> None:
    """Check the page of two systems with two seeds each."""
    known = r"(It is not known which is better\. )?lpsi (is [\d.]+ BLEU |has as much BLEU as )"
    assert re.search(rf'<dt>Which is better\?</dt><dd dir="auto">{known}', page)
    assert "<h2>All trainings</h2>" in page
    assert "From here on, all is of seed 1." in page
    [packed] = re.findall(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
    head, *sentences = map(json.loads, gzip.decompress(b64decode(packed)).decode().split("\n"))
    assert head["systems"] == ["transformer", "lpsi"]
    curves = [
        chart["datasets"]["rows"] for chart in head["overview"] if "rows" in chart["datasets"]
    ]
    assert any({row.get("seeds") for row in rows} == {2} for rows in curves), "of both seeds"
    assert "means 0" in head["overview"][0]["datasets"], "the forest"
    assert len(sentences) == 10 and sentences[0]["sure"] and sentences[0]["source"]["labels"]


def test_seeds_of_the_built_in_corpus(tmp_path, monkeypatch, capsys):
    """In this process: Welch's test wants scipy, which the forked commands do without."""
    configs = tmp_path / "configs"
    shutil.copytree(CONFIGS / "builtin_en_de", configs / "small")
    facts = yaml.safe_load((configs / "small" / "_data.yaml").read_text())
    facts["generated"] = {"train": 200, "valid": 10, "test": 10, "seed": 1}
    facts["subwords"]["size"] = 300
    (configs / "small" / "_data.yaml").write_text(yaml.safe_dump(facts))
    monkeypatch.setenv("PATH", str(FORKED), prepend=os.pathsep)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    work = tmp_path / "it's $(touch here)"

    def recipe(*arguments: str) -> tuple[list[str], str]:
        where = (f"--configs={configs}", f"--work={work}", "--jobs=2")
        changes = [*SMALL, "optimization.max_update=4", *SHORT[1:]]
        assert recipes.main(["small", *changes, *where, *arguments]) == 0, capsys.readouterr()
        out = capsys.readouterr().out
        stages, _, table = f"\n{out}".partition("\nsystem ")
        return [text[3:] for text in stages.splitlines()[1:] if "done" not in text], table

    systems = ("transformer", "lpsi")
    first, _ = recipe(*systems, "--seeds", "1")
    assert sorted(first[-6:]) == sorted(
        f"{name}, seed 1: {stage}" for name in systems for stage in ("train", "decode", "score")
    )
    (work / "checkpoints/small/lpsi/1/decode.done").unlink()
    page = tmp_path / "report.html"
    second, table = recipe(*systems, "--seeds", "1", "2", f"--report={page}")
    table, _, said = table.rpartition(f"{page}: ")
    assert said.startswith("10 sentences, 2 systems, ")
    check_report(page.read_text(encoding="utf-8"))
    assert " --alignments " in (work / "logs/small/report.log").read_text()
    assert sorted(second) == sorted(
        ["lpsi, seed 1: decode", "lpsi, seed 1: score"]
        + [f"{n}, seed 2: {stage}" for n in systems for stage in ("train", "decode", "score")]
    )
    results = load_results(work / "results" / "small.json")
    assert len(results["cells"]) == 4
    assert " p sentences\n" in table
    by_name = {(cell["system"], cell["seed"]): cell["scores"] for cell in results["cells"]}
    assert {"AER", "AER layer 2", "trees layer 1", "trees layer 2"} <= by_name["lpsi", 2].keys()
    assert recipe("--table") == ([], table)
    changed = ["small", "lpsi", "model.dropout=0.5", f"--configs={configs}", f"--work={work}"]
    assert recipes.main([*changed, "--seeds=1"]) == 1
    assert "done before with other settings: " in capsys.readouterr().err

    log = work / "checkpoints/small/lpsi/1/train.log"
    longer = ("lpsi", "--seeds=1", "optimization.max_update=6")
    went_on = "checkpoint_last.pt (epoch 1 @ 4 updates)"
    assert recipe(*longer, "--to=train")[0] == ["lpsi, seed 1: train"]
    assert went_on in log.read_text()
    stages, _ = recipe(*longer, "model.dropout=0.5", "--from=train")
    assert stages == [f"lpsi, seed 1: {stage}" for stage in ("train", "decode", "score")]
    assert went_on not in log.read_text()
    cells = load_results(work / "results" / "small.json")["cells"]
    [cell] = (c for c in cells if (c["system"], c["seed"]) == ("lpsi", 1))
    assert cell["updates"] == 6 and cell["overrides"]["model.dropout"] == 0.5
    assert not list(tmp_path.rglob("here")) and not list(tmp_path.rglob("*.log.*"))
    assert not list(tmp_path.rglob("hydra_train.log"))
