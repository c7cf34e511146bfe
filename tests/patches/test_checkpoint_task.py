from argparse import Namespace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from fairseq import checkpoint_utils, options, tasks

import syncattn_fairseq.plugin  # noqa: F401  (fairseq's functions are replaced)
from syncattn_fairseq.base.errors import DataError
from tests.checkpoints import Corpus, make_checkpoint


def task_of(parser: Any, *words: str) -> Any:
    return options.parse_args_and_arch(parser, ["data", *words]).task


@pytest.fixture(scope="module")
def pascal(small_corpus: Corpus) -> Path:
    """A checkpoint of a model that reads parses."""
    return make_checkpoint(small_corpus, small_corpus.folder / "p.pt", "transformer_pascal")


def test_the_task_is_the_checkpoints_unless_one_is_named(pascal):
    ours, path = "translation_with_syntax", f"--path={pascal}:other.pt"
    assert task_of(options.get_generation_parser(), path) == ours
    assert task_of(options.get_interactive_generation_parser(), path) == ours
    assert task_of(options.get_validation_parser(), path) == ours
    assert task_of(options.get_generation_parser(), path, "--task=translation") == "translation"
    assert task_of(options.get_generation_parser(), "--path=no/such.pt") == "translation"
    assert task_of(options.get_generation_parser()) == "translation"


def test_options_are_read_once_until_they_are_written_anew(pascal, tmp_path, monkeypatch):
    path, load = tmp_path / "model.pt", Mock(wraps=torch.load)
    path.write_bytes(pascal.read_bytes())
    monkeypatch.setattr(torch, "load", load)
    assert task_of(options.get_generation_parser(), f"--path={path}") == "translation_with_syntax"
    assert task_of(options.get_validation_parser(), f"--path={path}") == "translation_with_syntax"
    assert load.call_count == 1
    state = torch.load(path, weights_only=True)
    state["cfg"]["task"]["_name"] = "translation"
    torch.save(state, path)
    assert task_of(options.get_generation_parser(), f"--path={path}") == "translation"


def test_a_task_without_parses_is_refused_where_they_are_read(small_corpus, pascal):
    cfg = Namespace(task="translation", data=str(small_corpus.data), source_lang=None)
    task = tasks.setup_task(Namespace(**{**vars(cfg), "target_lang": None}))
    with pytest.raises(DataError, match=f"^{pascal}: the model reads parses, .* --task transl"):
        checkpoint_utils.load_model_ensemble([str(pascal)], task=task)


def test_the_plugin_of_the_training_is_named(pascal, tmp_path):
    path = tmp_path / "own.pt"
    state = torch.load(pascal, weights_only=True)
    state["cfg"]["common"]["user_dir"] = "/home/somebody/own_plugin"
    torch.save(state, path)
    with pytest.raises(DataError, match=f"^{path}: was trained with the plugin '/home/somebody/ow"):
        checkpoint_utils.load_model_ensemble([str(path)])
