"""Training texts in parts, some of which have no parses or links: back-translations, say."""

import shutil
from pathlib import Path

import pytest
import torch

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.subwords import NO_HEAD
from tests.checkpoints import make_task, model_options
from tests.criterions.test_criterion import criterion


@pytest.fixture
def unparsed(small_corpus, tmp_path):
    """A copy of the small corpus's training text alone."""
    folder = tmp_path / "back"
    folder.mkdir()
    for path in [*small_corpus.data.glob("train.en-de.*"), *small_corpus.data.glob("dict.*")]:
        shutil.copy(path, folder)
    return folder


def add_part(data: Path, part: Path) -> Path:
    """Add the text of another folder as train1."""
    for path in part.glob("train.*"):
        shutil.copy(path, data / path.name.replace("train", "train1"))
    return data


def load_parts(data: str, arch: str, **options):
    """Load the training text of two epochs, as fairseq-train does; return the first batches."""
    task = make_task(data, load_alignments=True, **options)
    model = task.build_model(model_options(arch, **({} if "lisa" in arch else {"dropout": 0.0})))
    batches = []
    for epoch in (1, 2):
        task.load_dataset("train", epoch=epoch, combine=True)
        batches.append(task.datasets["train"])
    return model, batches


def test_a_folder_without_parses_trains_the_translation_loss_alone(small_corpus, unparsed, caplog):
    caplog.set_level("INFO")
    model, (parsed, plain) = load_parts(f"{small_corpus.data}:{unparsed}", "transformer_dbsa")
    logs = []
    for pairs in (parsed, plain):
        batch = pairs.collater([pairs[index] for index in range(6)])
        batch["ntokens"], batch["nsentences"] = int(batch["target"].ne(1).sum()), 6
        weights = {"src_dep_weight": 0.5, "tgt_dep_weight": 0.5, "guided_alignment_weight": 0.1}
        logs.append(criterion(**weights)(model.train(), batch)[2])
    assert [log["src_dep_parents"] > 0 for log in logs] == [True, False]
    assert [log["tgt_dep_parents"] > 0 for log in logs] == [True, False]
    assert [log["guided_alignment_loss"] > 0 for log in logs] == [True, False]
    assert logs[1]["loss"] == logs[1]["total_loss"] > 0
    said = [m for m in (r.getMessage() for r in caplog.records) if "sentences have no" in m]
    assert [line.split(",")[0] for line in said] == [
        f"60 of 120 sentences have no {need}" for need in ("align", "heads.de", "heads.en")
    ]
    assert all(line.endswith(f"on these sentences: {unparsed / 'train'}") for line in said)


def test_a_part_in_the_same_folder(own_data, unparsed):
    _, (pairs, _) = load_parts(str(add_part(own_data, unparsed)), "transformer_dbsa")
    assert len(pairs) == 120
    last = pairs[119]
    assert last["alignment"].numel() == 0
    assert last["source_marks"].eq(NO_HEAD).all() and last["target_marks"].eq(NO_HEAD).all()
    assert pairs[59]["alignment"].numel() > 0
    batch = pairs.collater([pairs[119], pairs[59]])
    assert batch["alignments"].size(0) > 0
    torch.testing.assert_close(pairs[59]["source"], last["source"])


@pytest.mark.parametrize(
    ("arch", "kind"), [("transformer_pascal", "heads"), ("transformer_sh", "labels")]
)
def test_a_model_that_reads_parses_is_refused_before_the_first_part_trains(
    small_corpus, own_data, unparsed, arch, kind
):
    message = f"^{unparsed}: train has no source {kind}, which the model reads.*--add {kind}.en"
    with pytest.raises(DataError, match=message):
        load_parts(f"{small_corpus.data}:{unparsed}", arch)
    load_parts(f"{small_corpus.data}:{unparsed}", arch, missing_parses="ignore")
    with pytest.raises(DataError, match=f"^{own_data}: train1 has no source {kind}"):
        load_parts(str(add_part(own_data, unparsed)), arch)


def test_all_folders_are_looked_at_first(small_corpus, own_data, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty: no train.en-de.en.idx; binarise a text there"):
        load_parts(f"{small_corpus.data}:{tmp_path / 'empty'}", "transformer_dbsa")
    for suffix in ("idx", "bin"):
        name = f"train.heads.en-de.en.{suffix}"
        shutil.copy(own_data / name.replace("train", "test"), own_data / name)
    (own_data / "train.heads.en-de.en.sha256").unlink()
    task = make_task(f"{small_corpus.data}:{own_data}")
    with pytest.raises(DataError, match=f"^{own_data}/train.heads.en-de.en: not the heads of"):
        task.load_dataset("train", combine=True)
    assert not task.datasets
