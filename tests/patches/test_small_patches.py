"""Patches that a test or two show; importing the plugin puts them on fairseq."""

import ast
import importlib.util
import sys
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fairseq
import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options
from fairseq import utils as fairseq_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils
from fairseq.logging import progress_bar
from fairseq.logging.meters import AverageMeter
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.optim import AMPOptimizer
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.literals import evaluate
from syncattn_fairseq.checkpoints.option_checks import EVALUATED


@pytest.mark.filterwarnings("ignore:.*GradScaler")
def test_gradients_are_unscaled_once():
    cfg = OmegaConf.structured(FairseqConfig)
    OmegaConf.set_struct(cfg, False)
    cfg.optimizer = {"_name": "sgd", "momentum": 0.0, "weight_decay": 0.0, "lr": [1.0]}
    weight = torch.nn.Parameter(torch.tensor([3.0, -1.0]))
    optimizer = AMPOptimizer.build_optimizer(cfg, [weight])
    optimizer._grad_scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    optimizer.backward((weight * torch.tensor([0.5, 0.25])).sum())
    optimizer.clip_grad_norm(0.0)
    optimizer.step()
    assert weight.tolist() == [2.5, -1.25]


WORDS = ["data", "--arch", "transformer", "--batch-size", "1"]


@pytest.mark.parametrize("name", ["--bf16", "--memory-efficient-bf16"])
@pytest.mark.parametrize("tpus", [False, True])
def test_bf16_needs_no_tpu(monkeypatch, name, tpus):
    if tpus:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "torch_xla")
    args = options.parse_args_and_arch(options.get_training_parser(), [*WORDS, name])
    assert args.bf16 and args.tpu is tpus
    parser = options.get_training_parser()
    known, others = options.parse_args_and_arch(parser, [*WORDS, name, "--x"], parse_known=True)
    assert known.bf16 and known.tpu is tpus and others == ["--x"]


def test_without_bf16_nothing_changes():
    assert options.parse_args_and_arch(options.get_training_parser(), [*WORDS, "--tpu"]).tpu
    parser = options.get_validation_parser("translation_with_syntax")
    alone = options.parse_args_and_arch(parser, ["data", "--path", "x"], suppress_defaults=True)
    assert not hasattr(alone, "bf16")


def test_checkpoints_load_with_torchs_safety_on(tmp_path):
    content = {
        "args": Namespace(arch="transformer_dbsa"),
        "cfg": OmegaConf.create({"model": {"layers": [1, 2], "dropout": 0.1, "name": None}}),
        "model": OrderedDict(weight=torch.ones(2)),
        "bleu": np.arange(4),
    }
    torch.save(content, tmp_path / "checkpoint.pt")
    loaded = torch.load(tmp_path / "checkpoint.pt")
    assert loaded["cfg"] == content["cfg"]
    assert loaded["args"].arch == "transformer_dbsa"


def test_attention_is_kept_off_cudnn():
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_wandb_gets_tensors_as_numbers(monkeypatch):
    found: dict[str, Any] = {}
    loss = AverageMeter()
    loss.update(2.0)
    stats = {"uas": torch.tensor(0.5), "pair": torch.ones(2), "wps": 7.0, "loss": loss}
    monkeypatch.setattr(progress_bar, "wandb", SimpleNamespace(log=lambda x, step: found.update(x)))
    bar = progress_bar.WandBProgressBarWrapper.__new__(progress_bar.WandBProgressBarWrapper)
    bar.wrapped_bar = SimpleNamespace(log=lambda *_, **__: None)
    bar.log(stats, tag="train", step=3)
    assert found == {"train/uas": 0.5, "train/wps": 7.0, "train/loss": 2.0}
    assert type(found["train/uas"]) is float


def test_repeated_ngrams_are_blocked_without_a_gpu():
    tokens = torch.tensor([[2, 5, 6, 7, 5, 6, 1, 1, 1], [2, 5, 6, 7, 6, 5, 1, 1, 1]])
    block = NGramRepeatBlock(3, use_extension=False)
    scores = block(tokens, torch.zeros(2, 10), bsz=1, beam_size=2, step=5)
    assert (scores == -torch.inf).nonzero().tolist() == [[0, 7]]


def test_options_are_stored_as_plain_values(tmp_path):
    model = Namespace(arch="transformer", dropout=0.1, layers=[1, 2])
    path = tmp_path / "checkpoint1.pt"
    checkpoint_utils.torch_persistent_save({"cfg": {"model": model}}, str(path))
    assert torch.load(path)["cfg"]["model"] == vars(model)
    assert b"Namespace" not in path.read_bytes()


@pytest.mark.parametrize("arch", ["transformer_dbsa_tiny", "rnn_global", "lstm"])
def test_an_option_that_no_model_has_ends_a_training(arch):
    cfg = OmegaConf.create({"model": {"_name": arch, "encoder_embed_dim": 8, "dropuot": 0.2}})
    message = r"^model\.dropuot: there is no such option; did you mean dropout\?$"
    with pytest.raises(DataError, match=message):
        Trainer(cfg, None, None, None)
    del cfg.model.dropuot
    with pytest.raises(AttributeError):  # of the model, which is None
        Trainer(cfg, None, None, None)


# ---- trainings on CPUs


def configuration(**distributed: Any) -> Any:
    given = {"distributed_world_size": 2, "distributed_init_method": None, **distributed}
    given = {"distributed_no_spawn": False, **given}
    common = {"fp16": True, "cpu": True, "tpu": False}
    model = {"_name": "none"}
    return OmegaConf.create({"common": common, "distributed_training": given, "model": model})


@pytest.mark.parametrize("given", [{}, {"distributed_init_method": "tcp://x:1"}])
def test_processes_without_gpus_are_refused(monkeypatch, given):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(DataError, match="^2 processes .* --distributed-no-spawn"):
        utils.call_main(configuration(**given), print)


def test_torchrun_without_gpus_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(DataError, match="^1 processes "):
        utils.call_main(configuration(distributed_world_size=1), print)


def test_a_process_with_its_rank_may_start(monkeypatch):
    started: list[Any] = []
    monkeypatch.setattr(utils, "distributed_main", lambda *args: started.append(args))
    rank = {"distributed_init_method": "tcp://x:1", "distributed_no_spawn": True, "device_id": 0}
    utils.call_main(configuration(**rank), print)
    assert len(started) == 1


def test_half_precision_needs_a_gpu():
    with pytest.raises(DataError, match="^--fp16 trains only on a GPU"):
        Trainer(configuration(), None, None, None)


# ---- what fairseq evaluates


def calls() -> Iterator[tuple[str, str, ast.expr]]:
    """Yield all that fairseq evaluates: the module, the function, and its argument."""
    root = Path(fairseq.__file__).parent
    for path in root.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "eval" not in source or "examples" in path.parts:
            continue
        module = ".".join(["fairseq", *path.relative_to(root).with_suffix("").parts])
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and node.args:
                by_name = isinstance(node.func, ast.Name)
                name = ast.unparse(node.func).rpartition(".")[2]
                if name in ("eval_str_list", "eval_str_dict", "eval_bool") or (
                    name == "eval" and by_name
                ):
                    yield module, name, node.args[0]


def test_fairseq_evaluates_only_literals_in_known_options():
    found = list(calls())
    assert len(found) > 40
    assert {node.attr for _, _, node in found if isinstance(node, ast.Attribute)} <= EVALUATED
    named = {ast.unparse(node) for _, _, node in found if isinstance(node, ast.Name)}
    # Of functions that are themselves called with options, or of the command line.
    assert named <= {"x", "uf", "xformers_att_config", "feature_encoder_spec"}
    for module, name, _ in found:
        if name == "eval":
            assert vars(sys.modules[module])["eval"] is evaluate, module
    with pytest.raises(DataError, match="would run this text as code"):
        fairseq_utils.eval_str_list("__import__('os').getpid()", int)
    assert fairseq_utils.eval_bool(True) is False  # as fairseq does, strange as it is
    assert fairseq_utils.eval_bool("True") is True


def test_a_path_with_a_colon_is_one_if_it_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("run 03:10", "a", "b", "x:y:z"):
        Path(name).mkdir()
    split = fairseq_utils.split_paths
    assert split("run 03:10") == ["run 03:10"]
    assert split(f"{tmp_path}/run 03:10:a") == [f"{tmp_path}/run 03:10", "a"]
    assert split("a:b:none") == ["a", "b", "none"] and split("none:b") == ["none", "b"]
    assert split("b:x:y:z:run 03:10") == ["b", "x:y:z", "run 03:10"]
    assert split("s3://a:b") == ["s3://a:b"]
