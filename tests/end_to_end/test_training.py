"""What training must survive: interruption, several processes, and fairseq's usual options."""

import shutil
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from syncattn_fairseq.cli import preprocess
from syncattn_fairseq.data.subwords import NO_HEAD
from syncattn_lab.synthetic.generated_corpus import write_corpus
from tests.end_to_end import commands
from tests.end_to_end.commands import finish, logged, start, train, training
from tests.end_to_end.corpora import VALID

PARTS = ("loss", "total_loss", "src_dep_loss", "tgt_dep_loss", "sync_loss", "src_uas")
STRAIGHT = ("--max-update=4", "--max-epoch=1", "--validate-interval=9", "--no-epoch-checkpoints")


def losses(output: str) -> list[tuple[float, float]]:
    return [(step["loss"], step["total_loss"]) for step in logged(output)]


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    model: dict[str, torch.Tensor] = torch.load(checkpoint)["model"]
    # Official fairseq keeps a number that nothing is ever written to.
    return {name: weight for name, weight in model.items() if "_float_tensor" not in name}


def test_log_has_every_part_and_the_best_checkpoint_is_the_best_translation(syncattn):
    output = (syncattn / "log").read_text()
    steps = logged(output)
    parts = {"loss", "total_loss", "nll_loss", "ppl", "sync_loss"}
    parts |= {f"{side}_{what}" for side in ("src", "tgt") for what in ("dep_loss", "uas")}
    assert parts <= steps[0].keys()
    assert len(steps) == 15
    valid = logged(output, "valid")
    for part in ("loss", "src_dep_loss", "tgt_dep_loss"):
        assert valid[-1][f"valid_{part}"] < valid[0][f"valid_{part}"]
    assert {f"valid_{part}" for part in parts} <= valid[0].keys()
    best = torch.load(syncattn / "checkpoint_best.pt")["extra_state"]["best"]
    assert best == pytest.approx(min(v["valid_loss"] for v in valid), abs=1e-3)
    assert all(v["valid_total_loss"] > v["valid_loss"] for v in valid)


def test_killed_and_resumed_is_the_same_as_straight(data, tmp_path, monkeypatch):
    arguments = ("transformer_syncattn", *STRAIGHT)
    straight = losses(train(data, tmp_path / "straight", *arguments))
    assert len(straight) == 4

    broken = tmp_path / "broken"
    endless = training(data, broken, *arguments, "--save-interval-updates=2", "--max-update=400")
    monkeypatch.setattr(commands, "programs", commands.BIN)  # a signal ends only that program
    process = start("fairseq-train", *endless)
    monkeypatch.undo()
    checkpoint = broken / "checkpoint_1_2.pt"
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert checkpoint.exists()

    resumed = losses(train(data, tmp_path / "resumed", *arguments, f"--restore-file={checkpoint}"))
    assert resumed == straight[2:]
    ends = (weights(tmp_path / name / "checkpoint_last.pt") for name in ("resumed", "straight"))
    torch.testing.assert_close(*ends, rtol=0, atol=0)


@pytest.mark.parametrize("fast", [(), ("--fast",)])
def test_resumed_in_a_later_epoch_is_the_same_as_straight(data, tmp_path, fast):
    options = ("transformer_syncattn", "--update-freq=3", "--max-epoch=2", *fast)
    options += ("--no-epoch-checkpoints", "--disable-validation", "--max-tokens=2400")
    output = train(data, tmp_path / "straight", *options, "--save-interval-updates=1")
    straight = losses(output)
    checkpoints = {
        int(path.stem.split("_")[-1]): path
        for path in (tmp_path / "straight").glob("checkpoint_2_*.pt")
    }
    assert len(checkpoints) > 1
    for done in {min(checkpoints), max(checkpoints)}:
        checkpoint = checkpoints[done]
        resumed = tmp_path / checkpoint.stem
        output = train(data, resumed, *options, f"--restore-file={checkpoint}")
        assert losses(output) == straight[done:]


def test_a_safety_save_is_all_that_a_killed_training_needs(data, tmp_path):
    never = ("--save-interval=9", "--validate-interval=9", "--max-epoch=1", "--max-tokens=1500")
    arguments = (data, tmp_path, "transformer_tiny", *never, "--safety-save-updates=3")
    straight = train(*arguments)  # without a save at its end, as if it had been killed there
    assert [path.name for path in tmp_path.glob("*.pt")] == ["checkpoint_last.pt"]
    assert not logged(straight, "valid")
    saved = torch.load(tmp_path / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"]
    assert 0 < saved < len(losses(straight)) and saved % 3 == 0
    assert losses(train(*arguments)) == losses(straight)[saved:]


def train_by_two(data: Path, save_dir: Path, arch: str, *options: str) -> str:
    """Train with two processes; return what the first one printed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = training(data, save_dir, arch, *options)
    words += ["--distributed-world-size=2", "--distributed-no-spawn", "--ddp-backend=legacy_ddp"]
    words += ["--distributed-backend=gloo", f"--distributed-init-method=tcp://127.0.0.1:{port}"]
    processes = [start("fairseq-train", *words, f"--distributed-rank={rank}") for rank in (0, 1)]
    return finish(processes[1]) and finish(processes[0])


@pytest.fixture(scope="module")
def half_linked(tmp_path_factory):
    """A corpus in words, of which every second pair has no links."""
    folder = tmp_path_factory.mktemp("half_linked")
    write_corpus(folder, {"train": 24}, seed=1)
    links = (folder / "train.align").read_text().splitlines(keepends=True)
    links[1::2] = ["\n"] * len(links[1::2])
    (folder / "train.align").write_text("".join(links))
    words = ["-s=en", "-t=de", f"--trainpref={folder / 'train'}", "--joined-dictionary"]
    assert preprocess.main([*words, f"--destdir={folder / 'bin'}"]) == 0
    return folder / "bin"


#: A loss that every second sentence has, by the length of its target.
ODD_LOSS = """
from dataclasses import dataclass
import syncattn_fairseq.plugin
from syncattn_fairseq.base.option_fields import option
from syncattn_fairseq.criterions.terms import Term, register_term

@dataclass
class OddOptions:
    odd_weight: float = option(0.0, "weight of the loss")

@register_term("odd_loss")
class OddTerm(Term):
    Options = OddOptions
    weight_option = "odd_weight"
    numbers = ("odd_sentences",)

    def applies(self, extra, sample):
        return self.weight > 0 and sample["ntokens"] % 2 == 1

    def __call__(self, extra, sample):
        loss = extra["attn"][0].square().sum()
        return loss, {"odd_sentences": loss.new_ones(())}
"""


@pytest.mark.parametrize(
    "options",
    [
        ["--load-alignments", "--guided-alignment-weight=0.1"],
        ["--load-alignments", "--guided-alignment-weight=0.1", "--update-freq=2"],
        ["--odd-weight=0.1"],
    ],
    ids=["links", "update-freq", "plugin"],
)
def test_two_processes_whose_batches_have_other_losses(half_linked, tmp_path, options):
    """fairseq sums what both log, and would wait for ever for a name that only one logs."""
    (tmp_path / "odd_plugin").mkdir()
    (tmp_path / "odd_plugin" / "__init__.py").write_text(ODD_LOSS)
    if "--odd-weight=0.1" in options:
        options = [*options, f"--user-dir={tmp_path / 'odd_plugin'}"]
    name = "odd_loss" if "--odd-weight=0.1" in options else "guided_alignment_loss"
    options += ["--batch-size=1", "--max-update=6", "--no-save", "--disable-validation"]
    steps = logged(train_by_two(half_linked, tmp_path, "transformer_tiny", *options))
    assert len(steps) == 6
    assert any(step.get(name, 0) > 0 for step in steps)


def test_two_processes_are_one_with_twice_the_update_frequency(data, tmp_path):
    # Without dropout, whose random numbers the two setups draw in another order.
    arguments = ("transformer_syncattn", *STRAIGHT, "--dropout=0", "--save-interval-updates=2")
    arguments += ("--fast", "--store-ema", "--ema-fp32")
    one = train(data, tmp_path / "one", *arguments, "--update-freq=2")
    two = train_by_two(data, tmp_path / "two", *arguments, "--max-update=2")
    # It resumes: the second process is sent the first one's configuration.
    two += train_by_two(data, tmp_path / "two", *arguments)
    for step_one, step_two in zip(logged(one), logged(two), strict=True):
        for key in (*PARTS, "gnorm"):  # Adam hides the scale of gradients: their norm shows it
            assert step_two[key] == pytest.approx(step_one[key], abs=2e-3), key
    # Softmax sees no shift of all keys: their bias has a gradient of zero but for its rounding, of
    # which Adam makes whole steps.
    ends = [weights(tmp_path / name / "checkpoint_last.pt") for name in ("two", "one")]
    ends = [{name: w for name, w in e.items() if not name.endswith("k_proj.bias")} for e in ends]
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("transformer_tiny", ["--src-dep-weight=0"]),
        ("transformer_dbsa", ["--encoder-layerdrop=0.3", "--decoder-layerdrop=0.3"]),
        ("transformer_syncattn", ["--checkpoint-activations", "--sync-backward=softmax"]),
        ("transformer_local_attn", ["--no-token-positional-embeddings"]),
        ("transformer_dbsa", ["--num-workers=2", "--left-pad-source", "--truncate-source"]),
    ],
)
def test_fairseqs_options_work(data, tmp_path, arch, options):
    output = train(data, tmp_path, arch, "--max-update=2", "--validate-interval=9", *options)
    steps = logged(output)
    assert len(steps) == 2
    assert all(step["loss"] > 0 for step in steps)


def test_sync_without_dependency_supervision(data, tmp_path):
    options = (
        "--src-dep-weight=0",
        "--tgt-dep-weight=0",
        "--max-update=2",
        "--validate-interval=9",
    )
    step = logged(train(data, tmp_path, "transformer_syncattn", *options))[0]
    assert step["sync_loss"] > 0
    # In bits a token, as fairseq logs losses; sync_loss is in its own unit.
    total = step["loss"] + 0.5 * step["sync_loss"] / 0.6931
    assert step["total_loss"] == pytest.approx(total, abs=2e-3)


def test_every_validation_sentence_counts(data, tmp_path):
    train(data, tmp_path, "transformer_dbsa", "--max-update=1", "--disable-validation")
    options = ("--valid-subset=valid", "--batch-size=8", "--log-format=json")
    path = f"--path={tmp_path / 'checkpoint_last.pt'}"
    validation = commands.run("fairseq-validate", data, *commands.TASK, path, *options)
    [numbers] = logged(validation, "valid")
    assert numbers["valid_bsz"] == VALID, "batches of 8, 8 and 5"


def test_shards_and_parts_of_the_training_data(data, tmp_path):
    """Two data directories in turn, the first in two parts, of which one has no parses."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        for file in data.iterdir():
            (folder / file.name).symlink_to(file)
    for file in data.glob("train.en-de.*"):
        (first / file.name.replace("train", "train1")).symlink_to(file)
    both = f"{first}:{second}"
    options = ("--max-epoch=2", "--disable-validation", "--max-tokens=2000")
    output = train(both, tmp_path / "checkpoints", "transformer_dbsa", *options)
    epochs = logged(output, "train")
    updates = [e["train_num_updates"] for e in epochs]
    assert updates[0] > 1.8 * (updates[1] - updates[0]), "the first shard has twice the text"
    assert epochs[1]["train_src_dep_loss"] < epochs[0]["train_src_dep_loss"]


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="works with this numpy")
def test_numbers_of_buckets_are_refused_before_they_crash(data, tmp_path):
    options = ("--max-update=1", "--num-batch-buckets=4")
    output = train(data, tmp_path, "transformer_dbsa", *options, fails=True)
    assert "--num-batch-buckets: fairseq's bucketing needs numpy < 2" in output


EXAMPLE = Path(__file__).parents[2] / "examples" / "user_dir"


def test_a_users_own_plugin_adds_a_kind_of_head_and_a_loss(data, tmp_path):
    options = (f"--user-dir={EXAMPLE}", "--outward-layers=2", "--src-entropy-weight=0.5", *STRAIGHT)
    output = train(data, tmp_path, "transformer_dbsa", *options)
    steps = logged(output)
    assert all(step["src_entropy"] > 0 for step in steps)
    assert all(step["total_loss"] > step["loss"] for step in steps)
    assert "src_entropy_weight': 0.5" in output and "outward_layers='2'" in output
    without = train(data, tmp_path / "0", "transformer_dbsa", *options, "--src-entropy-weight=0")
    assert logged(without)[1]["loss"] != steps[1]["loss"], "it trains"
    assert "src_entropy" not in logged(without)[0]
    checkpoint = tmp_path / "checkpoint_last.pt"
    decoded = commands.generate(data, checkpoint, f"--user-dir={EXAMPLE}", "--gen-subset=valid")
    assert len(commands.hypotheses(decoded)) == VALID


def test_a_plugin_adds_heads_to_the_attention_to_the_source(data, tmp_path):
    plugin = f"--user-dir={EXAMPLE.parent / 'length_aware'}"
    options = (plugin, "--larope-layers=1,2", "--cross-attention-tree-window=2", *STRAIGHT)
    steps = logged(train(data, tmp_path, "syntax_transformer", *options))
    assert steps[-1]["loss"] < steps[0]["loss"]
    checkpoint = tmp_path / "checkpoint_last.pt"
    decoded = commands.generate(data, checkpoint, plugin, "--gen-subset=valid")
    assert len(commands.hypotheses(decoded)) == VALID


OTHER_LOSS = "--criterion=label_smoothed_cross_entropy"
LOSS = "add --criterion label_smoothed_cross_entropy_with_syntax"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task=translation", OTHER_LOSS], LOSS),
        (["--task=translation_with_syntax", OTHER_LOSS], LOSS),
        (["--task=translation"], "train with --task translation_with_syntax"),
        (["--ddp-backend=fully_sharded"], "--ddp-backend fully_sharded"),
    ],
)
def test_a_training_that_could_not_learn_is_refused(data, tmp_path, options, message):
    output = train(data, tmp_path, "transformer_syncattn", *options, *STRAIGHT, fails=True)
    assert message in output.splitlines()[-1]
    assert "Traceback" not in output and not list(tmp_path.glob("*.pt"))


def test_heads_that_are_all_empty_stop_the_training(data, tmp_path):
    copy = tmp_path / "bin"
    shutil.copytree(data, copy)
    for marks in copy.glob("train.heads.*.bin"):
        np.full(marks.stat().st_size // 2, NO_HEAD, np.int16).tofile(marks)
        marks.with_suffix(".sha256").unlink()
    for arch, message in (
        ("transformer_syncattn", "the batches have no parses of the source side"),
        ("transformer_pascal", "train has no source heads, which the model reads"),
    ):
        output = train(copy, tmp_path / arch, arch, *STRAIGHT, fails=True)
        assert message in output.splitlines()[-1]
        assert not list(tmp_path.glob("*/*.pt"))
