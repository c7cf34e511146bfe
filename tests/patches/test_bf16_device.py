import importlib.util

import pytest
from fairseq import options

import syncattn_fairseq.plugin  # noqa: F401

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


def test_options_may_be_given_alone():
    parser = options.get_validation_parser("translation_with_syntax")
    alone = options.parse_args_and_arch(parser, ["data", "--path", "x"], suppress_defaults=True)
    assert not hasattr(alone, "bf16")
