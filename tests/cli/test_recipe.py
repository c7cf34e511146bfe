from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from syncattn_fairseq.cli.recipe import main
from syncattn_fairseq.recipes.corpus import load_corpus
from syncattn_fairseq.recipes.needs import needs_of
from syncattn_fairseq.recipes.systems import load_system

ROOT = Path(__file__).parents[2]
SYSTEMS = sorted(p for p in (ROOT / "configs").glob("*/[!_]*.yaml"))
CORPORA = sorted({path.parent.name for path in SYSTEMS})
PREPARATION = ["download", "collect", "tokenise", "clean", "subwords", "parse", "binarise"]


@pytest.fixture(autouse=True)
def _nothing_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENJA", "MULTI30K_TINY", "PARSER_EN", "PARSER_JA"):
        monkeypatch.delenv(name, raising=False)


def dry(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], list[str]]:
    """Return the stages and the commands that a recipe would run."""
    assert main([*arguments, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    stages = [line[3:] for line in lines if line.startswith("== ")]
    return stages, [line[2:] for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_dry_run_of_every_system_says_all_its_commands(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stages, commands = dry(capsys, path.parent.name, path.stem, f"--work={tmp_path}")
    folded = [
        stage for stage, before in zip(stages, ["", *stages], strict=False) if stage != before
    ]
    needs = needs_of(load_system(path))
    left_out = set() if needs else {"parse"}
    if load_corpus(path.parent).clean is None:
        left_out.add("clean")
    wanted = [stage for stage in PREPARATION if stage not in left_out]
    assert folded == [*wanted, "train", "decode", "score"]
    text = "\n".join(commands)
    syntax = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    assert syntax.returncode == 0, syntax.stderr
    # What a command reads, one before it has written.
    for data in (word for c in commands for word in c.split() if word.startswith("data-bin/")):
        assert any(f"--destdir {data} " in command for command in commands), data
    assert list(tmp_path.iterdir()) == []


def test_systems_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--from=train", "common.seed=7")
    stages, commands = dry(capsys, "wmt14_en_de", "transformer", "syncattn", *options)
    assert stages == ["train", "decode", "train", "decode", "score"]
    assert sum("common.seed=7" in command for command in commands) == 2
    words = shlex.split(commands[-1])
    assert words[words.index("--baseline") + 1] == "transformer"
    assert words[words.index("--compound-split") + 1] == "de"


def test_a_baseline_that_was_decoded_before_is_scored_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("wmt14_en_de_words", "rnn_local", "--from=score", f"--work={tmp_path}")
    assert "--baseline" not in dry(capsys, *arguments)[1][0]
    folder = tmp_path / "checkpoints" / "wmt14_en_de_words" / "rnn_global"
    folder.mkdir(parents=True)
    (folder / "test.txt").touch()
    assert "--baseline rnn_global" in dry(capsys, *arguments)[1][0]


def test_alignments_are_scored_of_both_directions(capsys: pytest.CaptureFixture[str]) -> None:
    _, commands = dry(capsys, "europarl_de_en_align", "lpsi", "--from=train")
    assert sum(c.startswith("fairseq-hydra-train") for c in commands) == 2
    assert "++task.source_lang=en ++task.target_lang=de" in commands[3]
    assert "-s en -t de" in commands[6] and "lpsi-reversed/checkpoint_best.pt" in commands[6]
    assert ["forced.txt" in command for command in commands[4:8]] == [False, True] * 2
    assert "syncattn_fairseq.recipes.fast_align" in commands[8]
    assert "syncattn-align --gold " in commands[8] and "--forward fast_align" in commands[8]
    for command, language, folder in zip(
        commands[9:], ["en", "de"], ("", "-reversed"), strict=True
    ):
        assert f"words/test.{language} " in command and f"lpsi{folder}/test.txt" in command


def test_jobs_of_slurm(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--from=train", "--to=decode", "--slurm", "partition=gpu")
    _, commands = dry(capsys, "wmt14_en_de", "dbsa", "--nodes=2", "--processes=4", *arguments)
    train, decode = (shlex.split(command) for command in commands[1:])
    assert {"--nodes=2", "--gpus-per-node=4", "--partition=gpu"} <= {*train}
    assert {"--nodes=1", "--gpus-per-node=1", "--partition=gpu"} <= {*decode}
    assert decode[-1].startswith("fairseq-generate ")


def test_programs_for_japanese_are_asked_for_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSER_JA", "eda:model")
    _, programs = dry(capsys, "kftt_ja_en", "--to=download")
    for command, advice in (
        (programs[0], "kytea: no such program; install KyTea, http://www.phontron.com/kytea/"),
        (programs[1], "eda: no such program; install EDA, http://"),
    ):
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            env={"PATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode != 0 and advice in done.stderr
        for name in ("kytea", "eda"):
            (tmp_path / name).touch(0o755)
        known = {"PATH": str(tmp_path)}
        subprocess.run(["/bin/bash", "-c", command], env=known, check=True)
        for name in ("kytea", "eda"):
            (tmp_path / name).unlink()


def test_stages_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wmt14_en_de", "--from", "train", "--dry-run"]) == 1
    assert "no stage 'train'; choose from download, collect" in capsys.readouterr().err


@pytest.mark.parametrize(
    "corpus", sorted(path.stem[4:] for path in (ROOT / "scripts").glob("run_*_*_*.sh"))
)
def test_every_corpus_has_its_scripts(corpus: str) -> None:
    for kind in ("prepare", "run"):
        script = ROOT / "scripts" / f"{kind}_{corpus}.sh"
        assert "recipe" in script.read_text()


@pytest.mark.parametrize(
    ("corpus", "systems", "parsed", "added"),
    [
        ("wmt14_en_de", ["transformer"], "", []),
        ("wmt14_en_de_words", ["rnn_global", "rnn_local_double"], "", []),
        ("wmt14_en_de_words", ["rnn_syntax_directed"], "en", ["heads.en"]),
        ("wmt14_en_de", ["transformer", "syncattn"], "en de", ["heads.de", "heads.en"]),
        ("aspec_ja_en", ["syncattn_without_parses"], "", []),
        ("aspec_ja_en_lpsi", ["synch_rank", "transformer"], "", []),
        ("nc11_en_de", ["sh"], "en", ["labels.en"]),
        ("nc11_en_de", ["multi_task"], "en", []),
        ("multi30k_tiny_en_de", ["pascal_self", "pascal_constant"], "", []),
    ],
)
def test_only_what_a_system_needs_is_made(
    capsys: pytest.CaptureFixture[str],
    corpus: str,
    systems: list[str],
    parsed: str,
    added: list[str],
) -> None:
    _, commands = dry(capsys, corpus, *systems, "--to=binarise")
    parses = [shlex.split(c) for c in commands if c.startswith("syncattn-parse ")]
    assert {words[words.index("--lang") + 1] for words in parses} == {*parsed.split()}
    assert any("stanza.download" in command for command in commands) == bool(parsed)
    words = [shlex.split(c) for c in commands if c.startswith("syncattn-preprocess ")]
    assert [w[w.index("--add") + 1] for w in words] == added
    assert not any("eda" in command for command in commands)


def test_heads_that_a_user_has_are_not_parsed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MULTI30K_TINY", str(tmp_path))
    stages, commands = dry(capsys, "multi30k_tiny_en_de_3625", "dbsa", "--to=parse")
    assert "download" not in stages and not any("syncattn-parse" in c for c in commands)
    assert [c for c in commands if "train.heads.{language}.gz" in c and "--first 3625" in c]
    _, commands = dry(capsys, "multi30k_tiny_en_de_3625", "sh", "--to=parse")
    assert sum("train.parsed.en --labels" in c for c in commands) == 1


def test_another_parser_of_a_language(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSER_JA", "spacy:ja_ginza")
    text = "\n".join(dry(capsys, "aspec_ja_en", "dbsa", "--from=parse", "--to=parse")[1])
    assert text.count("syncattn-parse --parser spacy:ja_ginza --input") == 3
    assert text.count("syncattn-parse --parser stanza --lang en") == 3


@pytest.mark.parametrize(
    "override",
    [
        *(f"pascal model.pascal_layers={layer}" for layer in range(1, 7)),
        *(f"lisa model.encoder_dependency_layer={layer}" for layer in range(1, 7)),
        *(f"pascal model.pascal_std={std}" for std in range(6)),
        "pascal model.pascal_heads=2 model.parent_ignoring=0.4",
    ],
)
def test_ablations_of_pascals_paper_are_one_line(
    capsys: pytest.CaptureFixture[str], override: str
) -> None:
    system, *settings = override.split()
    _, commands = dry(capsys, "nc11_de_en", system, *settings, "--from=train", "--to=train")
    assert all(f"++{setting}" in commands[-1] for setting in settings)


def test_japanese_words_are_those_of_kytea_without_escapes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, commands = dry(capsys, "aspec_ja_en", "transformer", "--to=tokenise")
    japanese = [c for c in commands if "kytea" in c and ".ja" in c]
    assert len(japanese) == 3 and all("tr -d ' ' | kytea -notags -out tok >" in c for c in japanese)


def test_punctuation_is_normalised_in_the_training_text_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, commands = dry(capsys, "wmt14_en_de", "transformer", "--to=tokenise")
    normalised = [c for c in commands if "--normalise" in c]
    assert len(normalised) == 2 and all("raw/train." in c for c in normalised)


def test_validation_text_and_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    _, commands = dry(capsys, "europarl_de_en_align", "transformer", "--from=clean", "--to=clean")
    folder = "corpora/europarl_de_en_align/words"
    assert f"--exclude {folder}/test --last 1000 --held-out {folder}/valid" in commands[0]


def test_words_in_place_of_subwords(capsys: pytest.CaptureFixture[str]) -> None:
    _, commands = dry(capsys, "wmt14_en_de_words", "rnn_global", "--from=subwords")
    text = "\n".join(commands)
    assert "syncattn-bpe" not in text and "--nwordssrc 50000 --nwordstgt 50000" in text
    assert "--remove-bpe none" in text
    assert "--parts newstest2013:3000,newstest2014:3003,newstest2015:2169" in text
