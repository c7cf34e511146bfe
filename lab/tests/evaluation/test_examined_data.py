import shutil
from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.doctor import examine_files
from syncattn_lab.evaluation.examined_data import examine_data


def copy_split(folder: Path, split: str, to: str) -> None:
    for path in folder.glob(f"{split}.en-de.*"):
        shutil.copy(path, folder / path.name.replace(split, to, 1))


@pytest.mark.parametrize("kind", ["small_corpus", "raw_corpus"])
def test_binarised_text_has_the_faults_of_the_text(kind, request, tmp_path):
    corpus = request.getfixturevalue(kind)
    folder = Path(shutil.copytree(corpus.data, tmp_path / "bin"))
    copy_split(folder, "train", to="test")
    words = corpus.folder / "words"
    splits = {"train": words / "train", "valid": words / "valid", "test": words / "train"}
    found = [
        {(one.kind, one.split, one.count, one.total, one.severe) for one in findings}
        for findings in (examine_data(folder), examine_files(splits, ("en", "de")))
    ]
    assert found[0] == found[1]
    assert ("test_in_training", "test") in {one[:2] for one in found[0]}
    assert examine_data(corpus.data) == []


def test_a_folder_without_texts(tmp_path):
    (tmp_path / "train.en-de.en.idx").touch()
    with pytest.raises(DataError, match="no binarised text of both sides"):
        examine_data(tmp_path)


def test_sides_of_different_length(own_data):
    for suffix in ("idx", "bin"):
        shutil.copy(own_data / f"train.en-de.de.{suffix}", own_data / f"test.en-de.de.{suffix}")
    with pytest.raises(DataError, match=r"test\.en-de\.de: 60 sentences, but 12 in .*test"):
        examine_data(own_data)
