from __future__ import annotations

import shutil
from argparse import Namespace
from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError
from tests.checkpoints import Corpus, make_task, model_options


def test_a_test_set_may_lack_the_target(small_corpus: Corpus, tmp_path: Path) -> None:
    data = tmp_path / "bin"
    shutil.copytree(small_corpus.data, data)
    for path in [*data.glob("test.en-de.de.*"), *data.glob("test.heads.en-de.de.*")]:
        path.unlink()
    task = make_task(data)
    task.load_dataset("test")
    whole = make_task(small_corpus.data)
    whole.load_dataset("test")
    batch, expected = (t.datasets["test"].collater([t.datasets["test"][0]]) for t in (task, whole))
    assert batch["src_parents"].equal(expected["src_parents"])
    assert "tgt_parents" in expected
    assert "tgt_parents" not in batch


def test_gold_heads_need_dependency_heads(small_corpus: Corpus) -> None:
    for arch, refused in (("syntax_transformer_tiny", True), ("transformer_dbsa_tiny", False)):
        task = make_task(small_corpus.data, gold_source_heads=True)
        model = task.build_model(model_options(arch))
        if refused:
            with pytest.raises(DataError, match="^--gold-source-heads: the model's encoder has no"):
                task.build_generator([model], Namespace())
        else:
            task.build_generator([model], Namespace())
