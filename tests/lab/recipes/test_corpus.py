import re
from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.lab.recipes.corpus_facts import load_corpus

CONFIGS = Path(__file__).parents[3] / "configs"
FOLDERS = sorted(path.parent for path in CONFIGS.glob("*/_data.yaml"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_corpus_has_its_facts(folder: Path) -> None:
    corpus = load_corpus(folder)
    names = [archive.name for archive in corpus.archives]
    assert len({*names}) == len(names)
    for archive in corpus.archives:
        assert (archive.url or "").startswith("https://") != bool(archive.licence)
        assert re.fullmatch("[0-9a-f]{64}", archive.sha256 or "0" * 64)
    for names_of_systems in corpus.groups.values():
        assert all(corpus.system(name.partition(":")[0]) for name in names_of_systems)
    if corpus.generated:
        return
    assert [bool(corpus.valid), bool(corpus.every), bool(corpus.last)].count(True) == 1
    assert {*corpus.words} == {*corpus.languages} and {*corpus.parses} == {*corpus.languages}
    for text in (*corpus.train, *corpus.valid, *corpus.test):
        assert text.partition("=")[2].partition("!")[0].replace("{language}", "en") in names
    for name in corpus.systems:
        corpus.system(corpus.baseline(name))


def test_a_part_of_your_own_training_pairs_may_be_for_validation(tmp_path: Path) -> None:
    facts = (
        "subwords: {joint: true}\n"
        "here: {variable: MINE, train: 't.{language}', test: 'e.{language}'}\n"
    )
    for name, text in (("_data", facts), ("_corpus", "task: {source_lang: en, target_lang: de}\n")):
        (tmp_path / f"{name}.yaml").write_text(text + "valid: {every: 20}\n" * (name == "_data"))
    corpus = load_corpus(tmp_path)
    assert corpus.every == 20 and corpus.valid == [] and corpus.list_texts("valid") == []
    (tmp_path / "_data.yaml").write_text(f"{facts}train: [{{plain: 'x.{{language}}'}}]\n")
    with pytest.raises(DataError, match=r"_data\.yaml: train: given twice, the second time in her"):
        load_corpus(tmp_path)


def test_names_near_to_a_wrong_one_are_said() -> None:
    with pytest.raises(
        DataError, match=r"wmt15_en_de/_data\.yaml: no such corpus; did you mean wm"
    ):
        load_corpus(CONFIGS / "wmt15_en_de")
    with pytest.raises(DataError, match=r"no system 'synatt'; did you mean syncattn\?.* --configs"):
        load_corpus(CONFIGS / "multi30k_en_de").system("synatt")
