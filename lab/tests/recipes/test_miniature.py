"""``_data.yaml`` finds each text in archives that are laid out as the published ones."""

from pathlib import Path
from typing import Any

import pytest
from sacrebleu.dataset import DATASETS

from lab.tests.recipes.miniature import CORPORA, languages_of, make
from syncattn_lab.evaluation.alignment import read_alignments
from syncattn_lab.recipes.archives import open_member
from syncattn_lab.recipes.corpus_facts import read_facts
from syncattn_lab.recipes.systems import SHARED
from syncattn_lab.recipes.text_formats import collect

FACTS = {
    path.parent.name: read_facts((SHARED,), path.parent.name)[1]
    for path in SHARED.glob("*/_data.yaml")
}
#: Training texts by archive, as they are called there; sacreBLEU knows the names of test sets.
PUBLISHED = """
training-parallel-europarl-v7.tgz!training/europarl-v7.de-en
training-parallel-commoncrawl.tgz!commoncrawl.de-en
training-parallel-nc-v9.tgz!training/news-commentary-v9.de-en
training-parallel-nc-v11.tgz!training-parallel-nc-v11/news-commentary-v11.de-en
training-parallel-nc-v12.tgz!training/news-commentary-v12.de-en
rapid2016.tgz!rapid2016.de-en
training-parallel-ep-v8.tgz!training-parallel-ep-v8/europarl-v8.ro-en
en-ro.txt.zip!SETIMES.en-ro
en-tr.txt.zip!SETIMES.en-tr
de-en.tgz!europarl-v7.de-en
de-en.tgz!de-en/train.tags.de-en
kftt-data-1.0.tar.gz!kftt-data-1.0/data/orig/kyoto-train
ASPEC.tar.gz!ASPEC/ASPEC-JE/train/train-1.txt
ASPEC.tar.gz!ASPEC/ASPEC-JE/train/train-2.txt
ASPEC.tar.gz!ASPEC/ASPEC-JE/train/train-3.txt
"""


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A corpus, what it is made of, and the folder where its archives are, downloaded."""
    miniature = make(request.param, tmp_path / "web", tmp_path / "signed")
    facts, languages = FACTS[request.param], languages_of(request.param)
    download = tmp_path / "download"
    download.mkdir()
    for archive in facts["archives"]:
        if "url" in archive:
            there = tmp_path / "web" / archive["url"].removeprefix("https://")
        else:
            there = tmp_path / "signed" / archive["file"]
        name = archive.get("file", there.name)
        assert not (download / name).exists(), f"two archives are called {name}"
        there.rename(download / name)
    return facts, languages, download, miniature


@pytest.mark.parametrize("made", CORPORA, indirect=True)
def test_the_texts_of_every_split_are_found_in_the_archives(made):
    facts, languages, download, miniature = made
    for split, wanted in miniature.texts.items():
        found = [
            pair
            for entry in facts[split]
            for format_name, place in entry.items()
            for pair in collect(download, format_name, place, languages)
        ]
        # RWTH's files end in a blank line on both sides.
        assert [pair for pair in found if any(pair)] == [
            tuple(" ".join(side.split()) for side in pair) for pair in wanted
        ]
    assert "valid" in miniature.texts or {"every", "last"} & set(facts["valid"])
    assert len(miniature.sha256) == len(list(download.iterdir())) == len(facts["archives"])


def test_training_texts_are_called_as_in_the_published_archives():
    addresses = {
        address.removesuffix(".{language}")
        for facts in FACTS.values()
        for entry in facts.get("train", [])
        for address in entry.values()
        if "!" in address
    }
    assert addresses == {*PUBLISHED.split()}


@pytest.mark.parametrize("made", ["europarl_de_en_align"], indirect=True)
def test_gold_alignments_have_a_line_for_each_sentence_and_count_from_1(made):
    facts, _, download, miniature = made
    text = download / "gold.talp"
    with open_member(download, facts["gold_alignments"]) as file:
        text.write_bytes(file.read())
    sure, possible = map(list, read_alignments(text, one_based=True))
    assert sure.pop() == possible.pop() == set()  # the blank line
    assert any(possible)
    for links, extra, pair in zip(sure, possible, miniature.texts["test"], strict=True):
        source, target = (len(side.split()) for side in pair)
        assert links
        assert all(0 <= i < source and 0 <= j < target for i, j in links | extra)


def test_checksums_and_sizes_of_one_address_are_the_same_everywhere():
    known: dict[str, Any] = {}
    for facts in FACTS.values():
        for archive in facts.get("archives", []):
            if "url" in archive:
                assert known.setdefault(archive["url"], archive) == archive
    assert len(known) > len(CORPORA)


def test_test_sets_of_wmt_are_those_of_sacrebleu():
    known: dict[str, list[Any]] = {}  # several test sets are in one file
    for dataset in DATASETS.values():
        known.setdefault(dataset.data[0].replace("http://", "https://"), []).append(dataset)
    found = 0
    for name, facts in FACTS.items():
        archives = facts.get("archives", [])  # the built-in corpus has none
        tests = {a["file"]: a for a in archives if a.get("url") in known}
        languages = name.split("_")[1:3]
        for archive in tests.values():
            assert {archive["md5"]} == {d.md5[0] for d in known[archive["url"]] if d.md5}
        for split in ("valid", "test"):
            for entry in facts.get(split, ()) if isinstance(facts.get(split), list) else ():
                file, _, member = next(iter(entry.values())).partition("!")
                if file in tests:
                    roles = zip(languages, ("src", "ref"), strict=True)
                    members = [
                        member.replace("{language}", language).replace("{role}", role)
                        for language, role in roles
                    ]
                    sets = known[tests[file]["url"]]
                    assert members in [d.langpairs.get("-".join(languages)) for d in sets]
                    found += 1
    assert found > 2 * 8
