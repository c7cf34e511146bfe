import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.tests.configs import CORPORA, PAIRS
from lab.tests.recipes.test_needs import NEEDS
from syncattn_lab.cli import recipe_check
from syncattn_lab.cli.recipe import main
from syncattn_lab.recipes.config_file import check_programs
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.stages import Stage, command
from tests.cli.errors import read_error
from tests.importing import in_a_process

ROOT = Path(__file__).parents[3]
CONFIGS = ROOT / "configs"
PREPARATION = ["download", "collect", "tokenise", "clean", "examine"]
PREPARATION += ["subwords", "parse", "binarise"]


def dry(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], list[str]]:
    """Return the stages and the commands that a recipe would run."""
    assert main([*arguments, "--dry-run"]) == 0, capsys.readouterr().err
    lines = capsys.readouterr().out.splitlines()
    stages = [line[3:] for line in lines if line.startswith("== ")]
    return stages, [line[2:] for line in lines if line.startswith("$ ")]


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line that a recipe fails with."""
    return read_error(capsys, main(list(arguments)))


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.name)
def test_a_dry_run_of_every_system_says_all_its_commands(corpus, tmp_path, capsys):
    names = [name for other, name in PAIRS if other is corpus]
    stages, commands = dry(capsys, corpus.name, *names, f"--work={tmp_path}")
    preparing = [s.partition(": ")[2].split()[0] for s in stages if s.startswith(corpus.name)]
    expected = ["generate", "examine", "subwords", "binarise"] if corpus.generated else PREPARATION
    left_out = {"clean"} if corpus.clean is None else set()
    if not NEEDS.keys() & {*names}:
        left_out.add("parse")
    wanted = [stage for stage in expected if stage not in left_out]
    assert list(dict.fromkeys(preparing)) == wanted
    own = ["train", *["train: reversed"] * bool(corpus.gold_alignments), "decode", "score"]
    trained = stages[-len(own) * len(names) :]
    assert trained == [f"{name}, seed 1: {stage}" for name in names for stage in own]
    text = "\n".join(commands)
    syntax = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    assert syntax.returncode == 0, syntax.stderr
    # What a command reads, one before it has written.
    for data in (word for c in commands for word in c.split() if word.startswith("data-bin/")):
        assert any(f"--destdir {data} " in command for command in commands), data
    assert list(tmp_path.iterdir()) == []


def test_every_table_is_one_command(capsys):
    groups = [corpus.members(f"@{name}") for corpus in CORPORA for name in ("all", *corpus.groups)]
    assert all(len({*members}) == len(members) > 1 for members in groups)
    stages, _ = dry(capsys, "builtin_en_de", "@pascal", "--from=score")
    members = load_corpus(CONFIGS / "builtin_en_de").members("@pascal")
    assert stages == [f"{name}, seed 1: score" for name in members]


def test_systems_and_seeds(capsys):
    options = ("--seeds", "7", "8", "7", "--from=train", "optimization.max_update=9")
    stages, commands = dry(capsys, "wmt14_en_de", "transformer", "syncattn", *options)
    assert stages[:4] == [f"transformer, seed 7: {s}" for s in ("train", "decode", "score")] + [
        "syncattn, seed 7: train"
    ]
    assert len(stages) == 12
    training = [shlex.split(c) for c in commands if "fairseq-hydra-train" in c]
    assert [w for words in training for w in words if w.startswith("++checkpoint.save_dir")] == [
        f"++checkpoint.save_dir=checkpoints/wmt14_en_de/{name}/{seed}"
        for seed in (7, 8)
        for name in ("transformer", "syncattn")
    ]
    assert all("++optimization.max_update=9" in words for words in training)
    assert all(
        f"++common.seed={seed}" in words for seed, words in zip("7788", training, strict=True)
    )
    assert "--compound-split de " in commands[-1]


def test_one_system_with_a_change_of_its_own(capsys):
    variant = "pascal:model.pascal_std=2.5:generation.beam=9"
    _, commands = dry(capsys, "nc11_en_de", "pascal", variant, "--from=train")
    training = [shlex.split(c) for c in commands if "fairseq-hydra-train" in c]
    assert ["++model.pascal_std=2.5" in words for words in training] == [False, True]
    assert not any("generation" in word for words in training for word in words)
    folder = "checkpoints/nc11_en_de/pascal-model.pascal_std_2.5/1"
    assert f"++checkpoint.save_dir={folder}" in training[1]
    decode = next(c for c in commands if f"> {folder}/generation.beam_9/test.txt" in c)
    assert f"--path {folder}/checkpoint_last.pt " in decode and " --beam 9 " in decode


def test_a_row_with_a_name(capsys):
    row = "wide=pascal:model.pascal_std=2.5"
    stages, commands = dry(capsys, "nc11_en_de", row, "pascal", row, "--from=train")
    assert stages[0] == "wide, seed 1: train" and len(stages) == 6
    folder = "checkpoints/nc11_en_de/wide/1"
    training = [shlex.split(c) for c in commands if "fairseq-hydra-train" in c]
    assert {"++model.pascal_std=2.5", f"++checkpoint.save_dir={folder}"} <= {*training[0]}
    assert "+transformer@_global_=pascal" in training[0]
    score = next(c for c in commands if c.startswith("syncattn-score"))
    assert f"--system wide {folder}/test.txt " in score
    _, commands = dry(capsys, "nc11_en_de", row, "--from=decode")
    assert all(folder in c for c in commands)


def test_a_plugin_of_the_users_own():
    """In a process of its own: what libraries say when they are imported is heard only there."""
    mine, ours = ROOT / "examples" / "released_pascal", ROOT / "syncattn_fairseq"
    own = f"pascal:common.user_dir={mine}:model.released_layers=1"  # an option of its own
    command = [*in_a_process("syncattn_lab.cli.recipe"), "nc11_en_de", "pascal", own, "--dry-run"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, f"trainings of pascal, {own}: 2\n")
    assert all(line.startswith(("== ", "$ ")) for line in ran.stdout.splitlines())
    trained = [c for c in ran.stdout.splitlines() if "fairseq-hydra-train" in c]
    decoded = [c for c in ran.stdout.splitlines() if "fairseq-generate" in c]
    for number, path in enumerate((ours, mine)):
        assert f"++common.user_dir={path} " in trained[number]
        assert f"--user-dir {path} " in decoded[number]


@pytest.mark.parametrize("place", ["group", "plan", "system"])
def test_a_plugin_that_only_a_file_names_is_not_imported(place, tmp_path, capsys):
    plugin = tmp_path / "evil"
    plugin.mkdir()
    (plugin / "__init__.py").write_text(f"open({str(tmp_path / 'PWNED')!r}, 'w')")
    configs = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", configs)
    named, words = f"dbsa:common.user_dir={plugin}", ["@all"]
    data = configs / "builtin_en_de" / "_data.yaml"
    if place == "group":
        text = re.sub(r"(?m)^systems: \[", f"systems: ['{named}', ", data.read_text())
        data.write_text(text)
    elif place == "plan":
        plan = f"family: {{seeds: [1], contrasts: {{A: ['{named} - transformer']}}}}"
        (configs / "builtin_en_de" / "_plan.yaml").write_text(plan)
        words = ["--plan"]
    else:
        with (configs / "transformer" / "dbsa.yaml").open("a") as file:
            file.write(f"common: {{user_dir: {plugin}}}\n")
        words = ["dbsa"]
    error = fails(capsys, "builtin_en_de", *words, "--dry-run", "--configs", str(configs))
    assert "a plugin is imported only if the command line names it" in error
    assert not (tmp_path / "PWNED").exists()


def test_a_plan_leaves_nothing_out_silently(tmp_path, capsys):
    copy_corpus("multi30k_en_de", tmp_path)
    for name, words, fault in (
        ("lpsii", [], "no system 'lpsii'; did you mean lpsi?"),
        (
            "lpsi",
            ["lpsi", "--seeds=9"],
            "--seeds 9: this seed is not in the plan; choose from 1, 2",
        ),
    ):
        plan = f"family: {{seeds: [1, 2], contrasts: {{A: ['{name} - transformer']}}}}"
        (tmp_path / "x" / "_plan.yaml").write_text(plan)
        assert fault in fails(capsys, "x", "--plan", *words, "--dry-run", f"--configs={tmp_path}")


def test_what_is_only_decoded_differently_is_trained_once(capsys):
    both = ("lisa", "lisa:generation.gold_source_heads=true")
    _, commands = dry(capsys, "builtin_en_de", *both, "--from=train")
    training = [c for c in commands if "fairseq-hydra-train" in c]
    assert len({*training}) == 1
    decoding = [c for c in commands if c.startswith("fairseq-generate") and "--remove-bpe" in c]
    assert ["--gold-source-heads" in command for command in decoding] == [False, True]


def test_alignments_are_scored_of_both_directions(capsys):
    titles, commands = dry(capsys, "europarl_de_en_align", "lpsi", "--from=train")
    assert [title.removeprefix("lpsi, seed 1: ") for title in titles] == [
        *("train", "train: reversed", "decode", "score")
    ]
    training = [c for c in commands if "fairseq-hydra-train" in c]
    folder = "checkpoints/europarl_de_en_align/lpsi/1"
    assert len(training) == 2
    assert "++task.source_lang=en ++task.target_lang=de" in training[1]
    analyse = next(c for c in commands if c.endswith(f"> {folder}/reversed/forced.jsonl"))
    assert f"--path {folder}/reversed/checkpoint_best.pt" in analyse
    pieces = "corpora/europarl_de_en_align/pieces/test"
    assert f"--input {pieces}.en --force {pieces}.de --jsonl --every-layer" in analyse
    links = next(c for c in commands if c.startswith("syncattn-score links"))
    assert f"--one-based --forward cell {folder}/forced.jsonl" in links
    assert f"--backward cell {folder}/reversed/forced.jsonl" in links


def test_what_the_built_in_corpus_measures(capsys):
    _, commands = dry(capsys, "builtin_en_de", "lpsi", "syncattn", "multi_task", "--from=decode")
    forced = [c for c in commands if "--force" in c]
    assert len(forced) == 2  # Multi-Task's source has a tag that is no word
    assert all(" --jsonl --every-layer " in c for c in forced)
    lpsi, syncattn, multi_task = (c for c in commands if c.startswith("syncattn-score"))
    words = "corpora/builtin_en_de/words/test"
    assert f"--target-trees {words}.trees.de" in lpsi and "heads" not in lpsi
    heads = f"--source-heads {words}.heads.en --target-heads {words}.heads.de"
    assert heads in syncattn and "trees" not in syncattn
    assert all(f"--alignments {words}.align" in c for c in (lpsi, syncattn))
    assert not any(what in multi_task for what in ("heads", "trees", "align", "forced"))


def test_parses_are_compared_with_those_of_the_corpus(capsys):
    systems = ("dbsa", "lisa", "syncattn_without_parses", "pascal")
    _, commands = dry(capsys, "multi30k_tiny_en_de_3625", *systems, "--from=decode")
    forced = [c for c in commands if "--force" in c]
    assert ["/dbsa/" in forced[0], "/lisa/" in forced[1], len(forced)] == [True, True, 2]
    assert not any("--every-layer" in c for c in forced)
    heads = "corpora/multi30k_tiny_en_de_3625/words/test.heads"
    both, source, *others = (c for c in commands if c.startswith("syncattn-score"))
    assert f"forced.jsonl --source-heads {heads}.en --target-heads {heads}.de" in both
    assert f"forced.jsonl --source-heads {heads}.en --json" in source
    train = "corpora/multi30k_tiny_en_de_3625/pieces/train.en"
    counted = f"--source-counts {train} {heads.replace('test', 'train')}.en"
    assert counted in both and counted in source and "--target-counts" not in source
    assert "--target-rows" not in both
    row = "dbsa:model.tgt_dependency_rows=input"
    _, commands = dry(capsys, "multi30k_tiny_en_de_3625", row, "--from=decode")
    [scored] = (c for c in commands if c.startswith("syncattn-score"))
    assert " --target-rows input " in scored
    assert not any("forced" in c or "heads" in c for c in others)


def test_variables(capsys, monkeypatch):
    monkeypatch.setenv("PARSE_OPTIONS", "--max-words 9 --executor slurm --slurm 'comment=a b'")
    monkeypatch.setenv("STANZA_DIR", "/my models")
    _, commands = dry(capsys, "wmt14_en_de", "dbsa", "--to=parse")
    parsing = [shlex.split(c) for c in commands if c.startswith("syncattn-parse")]
    assert len(parsing) == 6
    for words in parsing:
        assert words[-6:-2] == ["--max-words", "9", "--executor", "slurm"]
        assert words[-2:] == ["--slurm", "comment=a b"]
        assert words[words.index("--stanza-dir") + 1] == "/my models"
    assert not any("stanza.download" in command for command in commands)
    monkeypatch.setenv("STANZA_DIR", "models")
    _, commands = dry(capsys, "wmt14_en_de", "dbsa", "--to=parse")
    assert sum(f"--stanza-dir {Path.cwd()}/models " in command for command in commands) == 6


def test_names_that_a_shell_would_run(tmp_path, capsys):
    for name in ("x corpora $(touch PWNED) 'y'", "x.y", "é", "-x", "1", "a@b"):
        shutil.copytree(CONFIGS / "multi30k_en_de", tmp_path / name)
        error = fails(capsys, f"./{name}", "transformer", f"--configs={tmp_path}", "--dry-run")
        assert f"{name}: name a corpus with letters, digits, _ and - only" in error
    place = tmp_path / "it's $(touch here)"
    shutil.copytree(CONFIGS / "multi30k_en_de", place / "x-1")
    _, commands = dry(capsys, "x-1", "transformer", f"--configs={place}")
    [words] = (shlex.split(c) for c in commands if "fairseq-hydra-train" in c)
    assert words[words.index("--config-dir") + 1] == str(place)


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
def test_only_what_a_system_needs_is_made(capsys, corpus, systems, parsed, added):
    _, commands = dry(capsys, corpus, *systems, "--to=binarise")
    parses = [shlex.split(c) for c in commands if c.startswith("syncattn-parse ")]
    assert {words[words.index("--lang") + 1] for words in parses} == {*parsed.split()}
    assert any("stanza.download" in command for command in commands) == bool(parsed)
    words = [shlex.split(c) for c in commands if c.startswith("syncattn-preprocess ")]
    assert [w[w.index("--add") + 1] for w in words if "--add" in w] == added
    assert not any("eda" in command for command in commands)


def test_heads_that_a_user_has_are_not_parsed(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("MULTI30K_TINY", str(tmp_path))
    stages, commands = dry(capsys, "multi30k_tiny_en_de_3625", "dbsa", "--to=parse")
    assert not any("download" in s for s in stages)
    assert not any("syncattn-parse" in c for c in commands)
    assert [c for c in commands if "train.heads.{language}.gz" in c and "--first 3625" in c]
    _, commands = dry(capsys, "multi30k_tiny_en_de_3625", "sh", "--to=parse")
    assert sum("train.parsed.en --labels" in c for c in commands) == 1


def test_trees_of_a_treebank_are_not_parsed(capsys, monkeypatch, tmp_path):
    systems = ("dbsa", "transformer:model.source_label_dim=8")
    _, commands = dry(capsys, "atis_tr_en", *systems, "--to=parse")
    assert not any("syncattn-parse" in c or "stanza" in c for c in commands)
    for kind in ("heads", "labels"):
        assert [c.partition("collect ")[2] for c in commands if f".{kind} --keep-empty" in c] == [
            f"'conllu_{kind}={{language}}_atis-ud-{split.replace('valid', 'dev')}.conllu' "
            "--archives corpora/atis_tr_en/download --languages tr en "
            f"--output corpora/atis_tr_en/words/{split}.{kind} --keep-empty"
            for split in ("train", "valid", "test")
        ]
    assert not any("labels" in c for c in dry(capsys, "atis_tr_en", "dbsa", "--to=parse")[1])
    monkeypatch.setenv("ATIS", str(tmp_path))
    _, commands = dry(capsys, "atis_tr_en", *systems, "--to=parse")
    assert not any("conllu" in c or "syncattn-parse" in c for c in commands)
    assert sum("plain=train.labels.{language}.gz" in c for c in commands) == 1
    monkeypatch.setenv("ATIS", str(tmp_path / "none"))
    error = fails(capsys, "atis_tr_en", *systems, "--dry-run")
    assert error == f"error: ATIS={tmp_path / 'none'}: no such file or folder\n"


@pytest.mark.parametrize(
    "parser", ["command:conllu:udpipe --tag --parse my.model", "stanza:en", "stanza:en:/models"]
)
def test_a_parser_is_one_word_with_its_own_models(capsys, monkeypatch, parser):
    monkeypatch.setenv("PARSER_EN", parser)
    for folder in ("", "/models"):
        monkeypatch.setenv("STANZA_DIR", folder)
        _, commands = dry(capsys, "wmt16_en_de", "pascal", "--to=parse")
        parsing = [shlex.split(c) for c in commands if c.startswith("syncattn-parse")]
        assert [words[2:4] for words in parsing] == [[parser, "--input"]] * 3
        assert not any("stanza.download" in command for command in commands)


def test_validation_text_and_what_is_left_out(capsys):
    _, commands = dry(capsys, "europarl_de_en_align", "transformer", "--from=clean", "--to=clean")
    folder = "corpora/europarl_de_en_align/words"
    assert f"--exclude {folder}/test --last 1000 --held-out {folder}/valid" in commands[0]


def test_texts_are_cut_on_all_cores_and_training_text_is_normalised(capsys, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(7))
    _, commands = dry(capsys, "wmt14_en_de", "transformer", "--from=tokenise", "--to=subwords")
    cut = [c for c in commands if c.startswith(("syncattn-tokenise", "syncattn-bpe apply"))]
    assert len(cut) == 7 and all("--workers 7" in command for command in cut)
    normalised = [c for c in commands if "--normalise" in c]
    assert len(normalised) == 2 and all("raw/train." in c for c in normalised)


def test_words_in_place_of_subwords(capsys):
    _, commands = dry(capsys, "wmt14_en_de_words", "rnn_global", "--from=subwords")
    text = "\n".join(commands)
    assert "syncattn-bpe" not in text and "--nwordssrc 50000 --nwordstgt 50000" in text
    assert "--remove-bpe none" in text
    assert "--parts newstest2013:3000,newstest2014:3003,newstest2015:2169" in text


# ---- bad input


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["dataset.max_tokens=0"], "dataset.max_tokens=0: give a whole number, at least 1"),
        (["optimization.update_freq=3"], "optimization.update_freq=3: give a list"),
        (["optimization.update_freq=[0]"], "optimization.update_freq=[0]: give a list"),
        (["checkpoint.save_dir="], "checkpoint.save_dir=None: give a name"),
        (["checkpoint.save_dir=.."], "checkpoint.save_dir=..: give a folder for this system alone"),
        (
            ["checkpoint.save_dir=a/../.."],
            "checkpoint.save_dir=a/../..: give a folder for this system alone",
        ),
        (["dataset.max_tokens=null"], "dataset.max_tokens=None: give a whole number"),
        (["optimization.lr=0.1"], "optimization.lr: "),
        (["model.encoder_layers=[1,2]"], "model.encoder_layers: invalid int value: '1,2'"),
        (['checkpoint.save_dir="a\\nb"'], "checkpoint.save_dir='a\\nb': give a name"),
        (["task.source_lang=../en"], "'../en' is not the name of a language"),
        (["common.user_dir=3"], "common.user_dir=3: give a name"),
        (["model.x=" + "[" * 3000], "values are nested more than 20 levels deep"),
        (["model.x=[&a 1,*a]"], "model.x=[&a 1,*a]:1: *a is an alias"),
        (["model.x=9" + "9" * 18], "a number of more than 18 digits"),
        (["model.x=[1,"], "model.x=[1,: the value cannot be read: "),
        (
            ["model.x=${oc.env:HOME}"],
            "model.x: ${oc.env:HOME}: references are not supported; write the value in place of "
            "${...}",
        ),
        (["model=3"], "model=3: write settings as SECTION.OPTION=VALUE"),
        (["modell.dropout=0.1"], "no section 'modell'; choose from common, "),
        (["common.user_dir=nowhere"], "command line: common.user_dir: --user-dir "),
        (["model.dropuot=0.1"], "error: command line: model.dropuot: there is no such option; "),
        (["transformer:optimizer.adam_beta=1"], "optimizer.adam_beta: there is no such option"),
        (["criterion.sync_wieght=1"], "no such option; did you mean sync_weight?"),
        (["task.xyz=1"], "task.xyz: there is no such option; see docs/options.md, or name"),
        (["dataset.xyz=1"], "there is no such option; see docs/options.md\n"),
        (["model.lr=[1]"], "model.lr: there is no such option"),  # of another section
        (["optimization.max_update=abc"], "command line: optimization.max_update: Value 'abc' of"),
        (["optimization.lr=[x]"], "optimization.lr[0]: Value 'x' of type 'str' could not"),
        (["model.dropout=abc"], "command line: model.dropout: invalid float value: 'abc'"),
        (["model.pascal_parents=x"], "model.pascal_parents: invalid choice: 'x'"),
        (["generation.beam=abc"], "generation.beam: invalid int value: 'abc'"),
        (["generation.help=true"], "generation.help: there is no such option"),
        (["generation.beem=5"], "no such option; did you mean beam?"),
        (
            ["generation.user_dir=x"],
            "generation.user_dir: recipes set this option themselves; leave it out",
        ),
        (["transformer:generation.log_file=x"], "generation.log_file: recipes set this option"),
        (["model._name=x"], "model._name=x: there is no such model; see docs/options.md, or name"),
        (["model._name=transformer_dbs"], "no such model; did you mean transformer_dbsa?"),
        (["criterion._name=x"], "criterion._name=x: there is no such criterion"),
        (["nothing"], "multi30k_en_de: no system 'nothing'; or name"),
        (["../transformer/dbsa"], "no system"),
        (["@nothing"], "@nothing: multi30k_en_de has no such group; choose from @all"),
        (["checkpoint.no_save=true"], "checkpoint.no_save=True: then there is no checkpoint to"),
        (["transformer:dataset.disable_validation=true"], "_data.yaml says checkpoint: best"),
        (["generation.beam=0"], "command line: generation.beam=0: give a number from 1"),
        (["model.dropout=1.5"], "model.dropout=1.5: give a number from 0 to 1"),
        (["model.encoder_layers=0"], "model.encoder_layers=0: give a number from 1"),
        (["checkpoint.save_interval=0"], "checkpoint.save_interval=0: give a number from 1"),
        (["optimization.lr=[-1.0]"], "optimization.lr=[-1.0]: give a number from 0"),
        (["optimization.max_epoch=0"], "optimization.max_update: no setting ends the training"),
        (["common.seed=7", "--seeds=1"], "common.seed=7: the seed differs from that of --seeds"),
        (["transformer:common.seed=7", "--seeds=1"], "common.seed=7: the seed differs from"),
        (["--baseline=foo"], "--baseline foo: this is not one of the given systems, and not in "),
        (["--baseline=transformr"], "did you mean transformer?"),
        (["--from=test"], "no stage 'test'; choose from download, collect, "),
        (["--configs=nowhere"], "error: --configs nowhere: no such folder\n"),
        (
            ["dbsa=pascal:model.pascal_std=2"],
            ": there is already a config named dbsa; choose another name",
        ),
        (
            ["a/b=pascal:model.pascal_std=2"],
            ": NAME in NAME=SYSTEM has only letters, digits, _, + and -",
        ),
        (["x" * 101 + "=pascal:model.pascal_std=2"], ": NAME in NAME=SYSTEM has only letters"),
        (["x=pascl:model.pascal_std=2"], "no system 'pascl'; did you mean pascal?"),
        (["x=pascal:model.pascal_sd=2"], "model.pascal_sd: there is no such option"),
        (["x=pascal"], "x=pascal: write settings as SECTION.OPTION=VALUE"),
        (["$(x)=pascal:model.pascal_std=2"], ": NAME in NAME=SYSTEM has only letters"),
        (
            ["x=pascal:model.pascal_std=2", "x=pascal:model.pascal_std=3"],
            "another row has the name x",
        ),
    ],
)
def test_settings_that_are_wrong(words, fault, capsys):
    alone = ":" in words[0].partition("=")[0] or "=" not in words[0]
    systems = [] if alone else ["transformer"]
    assert fault in fails(capsys, "multi30k_en_de", *systems, *words, "--dry-run")


def test_a_config_may_not_set_up_hydra(tmp_path, capsys):
    copy_corpus("builtin_en_de", tmp_path)
    words = ["x", "--configs", str(tmp_path), "--dry-run"]
    system = tmp_path / "x" / SYSTEM
    started = "hydra: {callbacks: {it: {_target_: os.system, command: ls}}}"
    text = system.read_text()
    system.write_text(f"{text}\n{started}\n")
    assert f"{system}: hydra: these settings can start programs" in fails(
        capsys, *words, SYSTEM_NAME
    )
    system.write_text(text)
    for row in (f"{SYSTEM_NAME}:hydra.searchpath=[/elsewhere]", SYSTEM_NAME):
        extra = [] if ":" in row else ["hydra.searchpath=[/elsewhere]"]
        assert "no section 'hydra'" in fails(capsys, *words, row, *extra)
    dry(capsys, *words[:-1], SYSTEM_NAME)
    first = tmp_path / "fairseq.yaml"
    first.write_text(f"defaults: [_self_]\n{started}\n")
    assert f"{first}: hydra would read this file in place of" in fails(capsys, *words, SYSTEM_NAME)


@pytest.mark.parametrize(
    ("section", "option", "place"),
    [
        ("common", "log_file", "/elsewhere"),
        ("common", "log_file", "a/../../elsewhere"),
        ("common", "aim_repo", "/elsewhere"),
        ("common", "tensorboard_logdir", "/elsewhere"),
        ("checkpoint", "checkpoint_suffix", "/../../elsewhere"),
        ("common_eval", "results_path", "../elsewhere"),
        ("distributed_training", "distributed_init_method", "file:///elsewhere"),
    ],
)
def test_a_config_may_not_write_elsewhere(tmp_path, capsys, section, option, place):
    copy_corpus("builtin_en_de", tmp_path)
    words = ["x", "--configs", str(tmp_path), "--dry-run"]
    text = f"{section}.{option}={place}"
    fault = f"{text}: a file may only name a path below the working folder; leave it out"
    if ":" not in place:
        assert fault in fails(capsys, *words, f"transformer:{text}")  # as a group may have it
    dry(capsys, *words[:-1], "transformer", text)
    system = tmp_path / "x" / SYSTEM
    system.write_text(f"{system.read_text()}\n{section}: {{{option}: {place!r}}}\n")
    assert fault in fails(capsys, *words, "transformer")


def test_options_that_no_config_names_are_known(capsys):
    words = ["model.attention_dropout=0.1", "model.encoder_layerdrop=0.1"]
    words += ["criterion.report_accuracy=true"]
    words += ["task.eval_bleu=true", "optimizer.adam_eps=1", "lr_scheduler.warmup_init_lr=0"]
    words += ["common.tpu=false", "dataset.num_workers=2", "ema.store_ema=true"]
    words += ["generation.lenpen=1", "generation.remove_bpe=x", "generation.gold_source_heads=true"]
    dry(capsys, "multi30k_en_de", "dbsa", *words)


#: A file that a corpus may have: what its baseline has different.
SYSTEM_NAME = "transformer"
SYSTEM = f"{SYSTEM_NAME}/{SYSTEM_NAME}.yaml"


def copy_corpus(corpus: str, folder: Path) -> None:
    """Copy a corpus to FOLDER/x, with a file of its own for its baseline."""
    shutil.copytree(CONFIGS / corpus, folder / "x")
    (folder / "x" / SYSTEM).parent.mkdir(exist_ok=True)
    shutil.copy(CONFIGS / SYSTEM, folder / "x" / SYSTEM)


def test_an_unknown_option_in_a_file(tmp_path, capsys):
    copy_corpus("multi30k_en_de", tmp_path)
    path = tmp_path / "x" / SYSTEM
    path.write_text(path.read_text() + "dataset: {max_token: 3}\n")
    error = fails(capsys, "x", "transformer", f"--configs={tmp_path}", f"--work={tmp_path}")
    assert f"{path}: dataset.max_token: there is no such option; did you mean max_tokens?" in error
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]  # nothing has begun


WRONG = (
    *(b"", b"a:\tb: c", b"a: 1\na: 2", b"a: 1\n---\nb: 2", b"a: \xff", b"- a", b"3", b"null"),
    *(b"a: [", b"a: " + b"[" * 3000, b"#" * 100_001, b"x: '\\uD800'", b'a: "\\0"', b"no: 1"),
    *(b"a: !!binary aGVsbG8=", b"a: " + b"9" * 19, b"task: 3", b"task: {_name: x}"),
    *(b"archives: 3", b"words: 3", b"train: [3]"),
)


@pytest.mark.parametrize("name", ["_data.yaml", "_corpus.yaml", SYSTEM])
def test_files_that_are_wrong(name, tmp_path, capsys):
    copy_corpus("multi30k_en_de", tmp_path)
    path, words = tmp_path / "x" / name, ["x", "transformer", f"--configs={tmp_path}"]
    for content in WRONG:
        path.write_bytes(content)
        assert str(tmp_path / "x") in fails(capsys, *words), content
    for text, fault in {
        "a: &a [x, x]\nb: [*a, *a]": ":2: *a is an alias of YAML; write the value again",
        "a: ['a${x}${x}']": ": a${x}${x}: references are not supported; write the value in "
        "place of ${...}",
    }.items():
        path.write_text(text)
        assert f"{path}{fault}" in fails(capsys, *words)


def write_configs(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_what_a_system_is_merged_from(tmp_path):
    facts = "generated: {train: 9}\nsubwords: {joint: true}\n"
    folder = write_configs(
        tmp_path,
        {
            "base/_data": facts + "systems: [mine]\nscore: {references: words}\n",
            "base/_corpus": "task: {source_lang: en, target_lang: de}\nmodel: {a: 1, b: 1, c: 1}",
            "base/_transformer": "model: {b: 2, c: 2, d: 2}",
            "base/_rnn": "model: {b: 9}",
            "transformer/mine": "model: {_name: x, d: 3, e: 3, f: 3}",
            "base/transformer/mine": "model: {e: 4, f: 4}",
            "near/_data": "like: base\nscore: {references: words, tokenize: char}\n",
            "near/_corpus": "task: {target_lang: fr}\nmodel: {c: 5, f: 5}",
            "far/_data": "like: near\nsystems: []\n",
            "far/transformer/mine": "model: {f: 6}\ntask: {data: mixed}",
        },
    )
    base, near, far = (load_corpus(folder / name) for name in ("base", "near", "far"))
    model = {"_name": "x", "a": 1, "b": 2, "c": 2, "d": 3, "e": 4, "f": 4}
    config = base.system("mine").load()
    assert config["model"] == model
    assert config["optimizer"] == {"_name": "adam"}  # of all trainings
    assert config["ema"] == {}  # no section is missing
    assert config["task"]["data"] == "data-bin/base"
    assert config["checkpoint"]["save_dir"] == "checkpoints/base/mine"
    assert near.system("mine").load()["model"] == {**model, "c": 5}  # the file of a system wins
    assert (near.target, near.systems) == ("fr", ["mine"])
    assert near.score == {"references": "words", "tokenize": "char"}
    config = far.system("mine").load({"model.a": 7})
    assert config["model"] == {**model, "a": 7, "c": 5, "f": 6}
    assert (far.target, far.systems) == ("fr", []) and far.score == near.score
    assert config["task"]["data"] == "data-bin/far-mixed"


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        (
            "x/_data",
            "like: x",
            "x/_data.yaml: like: the corpora refer to each other in a circle: x is like x",
        ),
        ("x/_data", "like: wmt15_en_de", "wmt15_en_de/_data.yaml: no such corpus; did you mean wm"),
        ("x/_data", "like: ../x", "../x: name a corpus with letters"),
        ("x/_data", "like: [x]", "['x']: name a corpus with letters"),
        (
            "transformer/transformer",
            "defaults: [_self_, x]",
            "defaults: a recipe's config cannot include other files",
        ),
        (
            "x/transformer/transformer",
            "task: {data: data-bin/y}",
            "data-bin/y: leave this setting out",
        ),
    ],
)
def test_what_a_system_cannot_be_merged_from(tmp_path, name, text, fault, capsys):
    copy_corpus("multi30k_en_de", tmp_path)
    write_configs(tmp_path, {name: text})
    assert fault in fails(capsys, "x", "transformer", f"--configs={tmp_path}", "--dry-run")


def test_a_corpus_may_be_a_folder(tmp_path, capsys, monkeypatch):
    copy_corpus("multi30k_en_de", tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    stages, _ = dry(capsys, "mine/x", "transformer")
    assert stages[0] == "x: download"


def test_options_of_a_parser_keep_its_language(tmp_path, capsys):
    copy_corpus("multi30k_en_de", tmp_path)
    write_configs(tmp_path, {"y/_data": "like: x\nparses: {en: --stanza-dir here}"})
    _, commands = dry(capsys, "y", "dbsa", f"--configs={tmp_path}", "--to=parse")
    [one, *_] = (c for c in commands if c.startswith("syncattn-parse") and "train.en" in c)
    assert "--parser stanza --stanza-dir here --lang en --input" in one
    assert sum("stanza.download" in c for c in commands) == 1, "German's models"


@pytest.mark.parametrize("where", ["ours", "mine"])
def test_hydra_merges_the_same(where, tmp_path, capsys, monkeypatch):
    """Compose what the command of a dry run says, as fairseq-hydra-train does."""
    from fairseq.dataclass.initialize import hydra_init
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
    from hydra.core.plugins import Plugins
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    configs, corpus, name = CONFIGS, "wmt17_en_de", "pascal"
    if where == "mine":  # shared files are those of the package
        configs, corpus, name = tmp_path / "it's $(x)", "x-1", "rnn_global"
        shutil.copytree(CONFIGS / "builtin_en_de", configs / "x-1")
    options = (f"--configs={configs}", "--from=train", "--to=train", "model.dropout=0.25")
    _, commands = dry(capsys, corpus, name, *options)
    [words] = (shlex.split(c) for c in commands if "fairseq-hydra-train" in c)
    start = words.index("--config-dir")
    Plugins.instance()  # finds the kinds of places
    path = ConfigSearchPathImpl()
    path.append("hydra", "pkg://hydra.conf")
    path.append("command-line", words[start + 1])
    path.append("schema", "structured://")
    hydra_init("fairseq")
    changes = [word for word in words[start + 4 :] if word[0] != "~" and "job_logging" not in word]
    found: Any = OmegaConf.to_container(
        ConfigLoaderImpl(path).load_configuration("fairseq", changes, RunMode.RUN)
    )
    wanted = load_corpus(configs / corpus).system(name).load({"model.dropout": 0.25})
    changed = {change.lstrip("+").partition("=")[0] for change in changes}
    compared = 0
    for section in wanted.keys() - {"hydra"}:
        for option, value in wanted[section].items():
            if f"{section}.{option}" not in changed:
                assert found[section][option] == value, (section, option)
                compared += 1
    assert compared > 15 and found["model"]["dropout"] == 0.25
    assert set(found["model"]) == set(wanted["model"])


@pytest.mark.parametrize(
    ("corpus", "facts", "fault"),
    [
        ("builtin_en_de", "generated: {train: -5}", "recipes.generate: argument --train"),
        ("builtin_en_de", "generated: {trains: 5}", "unrecognized arguments: --trains 5"),
        ("builtin_en_de", "generated: {help: true}", "recipes.generate: wrong options"),
        ("builtin_en_de", "score: {references: words, tokenize: x}", "score: syncattn-score: "),
        ("multi30k_en_de", "clean: {max_words: 0}", "clean: syncattn-clean: argument --max-words"),
        ("multi30k_en_de", "checkpoint: -3", "checkpoint: -3: give a whole number, at least 1"),
        ("multi30k_en_de", "first: 0", "first: 0: give a whole number, at least 1"),
        ("multi30k_en_de", "subwords: {size: -1, joint: true}", "size: -1: give a whole number"),
        ("multi30k_en_de", "words: {en: cat, de: syncattn-x}", "syncattn-x: there is no such"),
        ("multi30k_en_de", "words: {en: cat, de: syncattn-common}", "there is no such command"),
        ("multi30k_en_de", "words: {en: cat, de: 'a |'}", "words: de: 'a |': a command is missing"),
        ("builtin_en_de", "score: {tokenize: none}", "score: references: raw: give words"),
        ("multi30k_en_de", "score: {references: x}", "score: references: x: give words"),
        (
            "multi30k_en_de",
            "score: {detokenize: 'moses:xx'}",
            "tokenizer does not know the language 'xx'; give",
        ),
        ("multi30k_en_de", "checkpoint: worst", "checkpoint: 'worst': give best, last, or "),
        (
            "multi30k_en_de",
            "valid: {every: 9, last: 9}",
            "valid: give exactly one of: texts, every: N",
        ),
        ("multi30k_en_de", "valid: []", "valid: give exactly one of: texts, every: N, last: N"),
        (
            "multi30k_en_de",
            "here: {variable: X, train: t, test: e}",
            "here: valid: give this key if",
        ),
        ("multi30k_en_de", "parses: {en: --parser random --lang en}", "--lang does not go with "),
        ("atis_en_tr", "clean: {}", "the text comes with heads, so no pair may be left out"),
        ("atis_en_tr", "valid: {every: 9}", "the text comes with heads, so no pair may"),
        ("multi30k_en_de", "train: [{--output: /elsewhere}]", "train: no format '--output'"),
        ("multi30k_en_de", "test: [{plane: x}]", "test: no format 'plane'; choose from plain, "),
        ("multi30k_en_de", "gold_alignments: x", "gold_alignments: give ARCHIVE!MEMBER"),
        ("multi30k_en_de", "word: {}", "unknown key 'word'; known are archives, "),
        ("multi30k_en_de", "archives: [{url: 'http://x/y', crc: '1'}]", "unknown key 'crc'; known"),
        ("multi30k_en_de", "subwords: {size: 8000}", "the key 'joint' is missing"),
        ("atis_en_tr", "treebank: [de]", "treebank: de; choose from en and tr"),
        ("multi30k_en_de", "model: {dropuot: 1}", "model.dropuot: there is no such option; did"),
        ("multi30k_en_de", "dataset: {max_tokens: 0}", "dataset.max_tokens=0: give a whole number"),
        ("multi30k_en_de", "task: {source_lang: en, target_lang: /}", "task.target_lang: '/' is "),
        ("multi30k_en_de", "models: {a: 1}", "models: no section"),
    ],
)
def test_facts_that_are_wrong(corpus, facts, fault, tmp_path, capsys):
    shutil.copytree(CONFIGS / corpus, tmp_path / "x")
    of_all = facts.startswith(("model", "dataset", "task"))
    path = tmp_path / "x" / ("_corpus.yaml" if of_all else "_data.yaml")
    changed = yaml.safe_load(path.read_text(encoding="utf-8")) | yaml.safe_load(facts)
    path.write_text(yaml.safe_dump(changed), encoding="utf-8")
    system = "dbsa" if "parses" in facts else "transformer"
    words = [system, f"--configs={tmp_path}", "--dry-run"]
    programs = ["--programs", "a", "syncattn-x", "syncattn-common"]
    error = fails(capsys, "x", *words, *programs)
    assert error.startswith(f"error: {path}: ") and fault in error


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ("words: {en: 'touch x', de: cat}", "words: en: a program is started only if .*s touch$"),
        ("words: {en: 'cat | /bin/sed -E x', de: cat}", "words: en: .*: --programs /bin/sed$"),
        ("words: {en: cat, de: syncattn-tokenise --output /x}", "words: de: --output: here, only"),
        ("words: {en: cat, de: syncattn-tokenise --output=/x}", "words: de: --output: here, only"),
        ("score: {words_by: 'touch x'}", "score: words_by: a program is started only"),
        ("score: {latex: /x}", "score: latex: here, only references, .* are possible"),
        ("clean: {output: /x}", "clean: output: here, only max_words, ratio, exclude are possible"),
        ("parses: {en: '--parser stanza --output /x'}", "parses: en: --output: here, only"),
        ("parses: {en: '--parser command:conllu:x'}", "parses: en: .* set the variable PARSER_EN"),
        ("parses: {en: '--parser=command:conllu:x'}", "parses: en: .* set the variable PARSER_EN"),
        ("parses: {en: '--command x'}", "parses: en: --command: here, only"),
        ("groups: {mine: [dbsa, model.dropout=0]}", "model.dropout=0: a group contains only"),
    ],
)
def test_a_corpus_of_somebody_starts_nothing(facts, fault, tmp_path, capsys, monkeypatch):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "_data.yaml").write_text(f"like: multi30k_en_de\n{facts}\n")
    words = ["x", "@mine" if "groups" in facts else "dbsa", f"--configs={tmp_path}", "--dry-run"]
    assert re.search(fault, fails(capsys, *words).strip())
    if "started only" in fault and "sed" not in facts:
        dry(capsys, *words[:-1], "--programs", "touch")
    if "PARSER_EN" in fault:
        (tmp_path / "x" / "_data.yaml").write_text("like: multi30k_en_de\n")
        monkeypatch.setenv("PARSER_EN", "command:conllu:x")
        assert any("command:conllu:x" in line for line in dry(capsys, *words[:-1])[1])


def test_copies_of_our_corpora_start_little():
    for path in CONFIGS.glob("*/_data.yaml"):
        facts = yaml.safe_load(path.read_text(encoding="utf-8"))
        check_programs(facts, path, ["sed"])


# ---- the script


def test_a_dry_run_of_the_script_installs_nothing(tmp_path):
    (tmp_path / "scripts").mkdir()
    for name in ("_common.sh", "recipe.sh"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    (tmp_path / "scripts" / "install.sh").write_text("echo installed; exit 9\n")
    active = tmp_path / "active"
    active.mkdir()
    (active / "syncattn-recipe").write_text('#!/bin/sh\necho "active: $*"\n')
    (active / "syncattn-recipe").chmod(0o755)

    def script(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", tmp_path / "scripts" / "recipe.sh", *arguments],
            env={**os.environ, "PATH": f"{active}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    for option in ("--dry-run", "--table", "--help"):
        assert script("x", option) == (0, f"active: x {option}\n")
    assert script("x") == (9, "installed\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--seeds 9", "builtin_en_de.json: no results with these seeds"),
        ("syncattn --baseline dbsaa", "no results of dbsaa; there are results of "),
        ("@pascall", "@pascall: builtin_en_de has no such group"),
        ("syncattn --report r.html", "--report: leave out --table, which runs nothing"),
    ],
)
def test_a_table_of_what_is_not_there_is_refused(capsys, arguments, message):
    results = ROOT / "study" / "results" / "builtin_en_de.json"
    command = ["builtin_en_de", "--table", f"--results={results}", *arguments.split()]
    assert message in read_error(capsys, main(command))


def test_a_group_may_have_systems_without_results(tmp_path, capsys):
    results = json.loads((ROOT / "study" / "results" / "builtin_en_de.json").read_text())
    results["cells"] = [cell for cell in results["cells"] if cell["system"] != "syncattn"]
    path = tmp_path / "some.json"
    path.write_text(json.dumps(results))
    assert main(["builtin_en_de", "@quickstart", "--table", f"--results={path}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["transformer", "dbsa"]
    assert lines[-1] == "no results yet: syncattn"
    path.write_text(json.dumps({**results, "cells": []}))
    assert main(["builtin_en_de", "@quickstart", "--table", f"--results={path}"]) == 1
    assert capsys.readouterr().err == f"error: {path}: no results\n"


def test_a_report_needs_systems(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["builtin_en_de", "common.seed=2", "--report=r.html"]) == 1
    assert capsys.readouterr().err == "error: --report: name the systems that the report shows\n"
    assert not [*tmp_path.iterdir()]


def test_a_signal_while_options_are_checked_is_not_their_fault(monkeypatch):
    class Ended:
        def parse_args(self, words):
            sys.exit(128 + signal.SIGTERM)

    monkeypatch.setattr(recipe_check, "_parser_of", lambda name: Ended())
    stage = Stage("clean", Path("clean"), [command("syncattn-clean")])
    with pytest.raises(SystemExit) as ended:
        recipe_check.check_calls([stage], Path("_data.yaml"))
    assert ended.value.code == 143
