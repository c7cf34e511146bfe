"""Whatever combines a model and a corpus that do not belong together says so in one line."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fairseq import checkpoint_utils
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.checkpoints.checkpoint_file import read_checkpoint
from syncattn_fairseq.cli import bpe, preprocess
from syncattn_fairseq.data import fingerprint
from syncattn_fairseq.data.fingerprint import (
    NAME,
    Dataset,
    Fingerprint,
    check_resumed,
    describe_subwords,
    find_fingerprint,
    hash_words,
    read_fingerprint,
    read_stored,
    read_words,
)
from syncattn_fairseq.data.segmenters import SubwordModel
from tests.checkpoints import Corpus, change_checkpoint, make_checkpoint, make_task

PAIR = ("en", "de")
TRANSFORMER = "transformer_dbsa"


def permute(folder: Path, language: str = "de", stored: bool = False) -> str:
    """Put a dictionary into another order; the data say no more what it was, or still do."""
    path = folder / f"dict.{language}.txt"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([*reversed(lines[:40]), *lines[40:]]), "utf-8")
    if not stored:
        (folder / NAME).unlink()
    return f"{path} differs from the file that the model was trained with"


def fails(reason: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    with pytest.raises(DataError) as failed:
        call(*args, **options)
    assert reason in str(failed.value) and "\n" not in str(failed.value), failed.value


@pytest.fixture(scope="module")
def path(small_corpus: Corpus) -> Path:
    return small_corpus.checkpoint(TRANSFORMER)


@pytest.fixture(scope="module")
def other_model(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A subword model that splits the small corpus in another way."""
    prefix = tmp_path_factory.mktemp("other") / "other"
    words = str(small_corpus.folder / "words" / "test.en")
    assert bpe.main(["learn", "--vocab-size=80", f"--model={prefix}", f"--input={words}"]) == 0
    return prefix.with_suffix(".model")


def record(corpus: Corpus, data: Path, *more: str) -> int:
    pytest.importorskip("sacremoses", reason="needs the extra moses")
    commands = ["syncattn-tokenise --lang en", "syncattn-tokenise --lang de"]
    options = [f"--destdir={data}", "--truecased", *more, "--words-by", *commands]
    return preprocess.main(["-s=en", "-t=de", f"--subwords={corpus.subwords}", *options])


# ---- what it is


def test_a_corpus_has_its_fingerprint(small_corpus):
    stored = read_stored(small_corpus.data)
    parts = ("dict.en.txt", "dict.labels.en.txt", "dict.de.txt", "dict.labels.de.txt")
    assert {*stored.meaning} == {*parts, "subwords.json (en)", "subwords.json (de)"}
    assert {"train.en-de.en", "train.heads.en-de.de", "train.align.en-de"} < {*stored.provenance[0]}
    assert read_fingerprint([small_corpus.data], PAIR) == stored
    for name, dataset in stored.provenance[0].items():
        assert dataset.size == (small_corpus.data / f"{name}.bin").stat().st_size
    task = make_task(small_corpus.data)
    words = task.source_dictionary.symbols[task.source_dictionary.nspecial :]
    assert stored.meaning["dict.en.txt"] == hash_words(words)


@given(
    st.lists(st.tuples(st.text("ab#▁", min_size=1), st.integers(1, 9)), unique_by=lambda x: x[0])
)
def test_counts_of_words_do_not_matter_and_their_order_does(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("words") / "dict"
    path.write_text("".join(f"{word} {count}\n" for word, count in words), "utf-8")
    assert read_words(path) == [word for word, _ in words]
    if len(words) > 1:
        assert hash_words(read_words(path)) != hash_words(reversed(read_words(path)))


def test_a_vocabulary_counts_as_far_as_its_threshold(tmp_path):
    for name in ("codes", "a", "b"):
        (tmp_path / name).write_text("x 3\n" + "y 1\n" * (name == "b"))
    meanings = [
        describe_subwords("en", SubwordModel(tmp_path / "codes", vocabulary, threshold))
        for vocabulary, threshold in (
            (tmp_path / "a", 1),
            (tmp_path / "b", 2),
            (tmp_path / "b", 1),
            (None, 1),
        )
    ]
    assert meanings[0] == meanings[1]
    assert len({each["vocabulary.en"] for each in meanings}) == 3


SOUND = Fingerprint({"dict.en.txt": "0" * 64}, [{"train.en-de.en": Dataset(9, "1" * 64)}])


@pytest.mark.parametrize(
    "plain",
    [
        *(None, 1, [], {}, {"meaning": [], "provenance": []}),
        {"meaning": {"dict.en.txt": "../x"}, "provenance": []},
        {"meaning": {"dict.en.txt": 7}, "provenance": []},
        {"meaning": {}, "provenance": 3},
        {"meaning": {}, "provenance": [{"train": {"size": "9"}}]},
        {"meaning": {}, "provenance": [{"train": {"size": 9, "sha256": "x"}}]},
        {"meaning": {}, "provenance": [{"train": {"size": 9, "code": "x"}}]},
        {"meaning": {}, "provenance": [["train"]]},
    ],
)
def test_nothing_else_is_read(plain, tmp_path, path, small_corpus):
    (tmp_path / NAME).write_text(json.dumps(plain), "utf-8")
    fails(f"{tmp_path / NAME}: the file is damaged; remove", read_stored, tmp_path)
    if plain is not None:
        odd = change_checkpoint(path, tmp_path / "odd.pt", task_state={"fingerprint": plain})
        fails(
            f"{odd}: the checkpoint's record of its training data is damaged",
            small_corpus.load,
            odd,
        )


def test_it_is_read_as_it_was_written(tmp_path):
    SOUND.write(tmp_path)
    assert read_stored(tmp_path) == SOUND == Fingerprint.from_plain(SOUND.as_plain())
    assert find_fingerprint("x", {"task_state": {"fingerprint": SOUND.as_plain()}}) == SOUND
    for state in ({}, {"task_state": None}, {"task_state": []}, {"task_state": {}}):
        assert find_fingerprint("x", state) is None


def test_checkpoints_have_what_their_model_reads(small_corpus, tmp_path):
    meanings = [
        find_fingerprint(made, read_checkpoint(made)).meaning
        for made in (
            small_corpus.checkpoint(TRANSFORMER),
            make_checkpoint(small_corpus, tmp_path / "labels.pt", "transformer_sh"),
        )
    ]
    assert meanings[1].keys() - meanings[0].keys() >= {"dict.labels.en.txt"}
    assert not [name for name in meanings[0] if name.startswith("dict.labels.")]


# ---- who compares it


@pytest.mark.parametrize("language", PAIR)
def test_another_dictionary_is_seen_by_its_own_data(own_data, language):
    permute(own_data, language, stored=True)
    fails(
        f"{own_data}/dict.{language}.txt: differs from the file that the text was",
        make_task,
        own_data,
    )


@pytest.mark.parametrize("language", PAIR)
def test_another_dictionary_is_seen_by_who_loads_a_model(
    small_corpus, path, own_data, tmp_path, language
):
    told = f"{path}: {permute(own_data, language)}; give the data that the model was trained with"
    fails(told, small_corpus.load, path, data_bin=own_data)
    fails(f"{small_corpus.trained()}: {own_data}", small_corpus.load,
          f"{small_corpus.trained()}:{path}", data_bin=own_data)  # fmt: skip
    for format in ("fairseq", "ctranslate2", "transformers"):
        fails(told, syncattn_fairseq.export.export, path, own_data, format, tmp_path / "out")
    plain = OmegaConf.structured(TranslationConfig)
    plain.data, plain.source_lang, plain.target_lang = str(own_data), *PAIR
    for task in (make_task(own_data), TranslationTask.setup_task(plain)):
        fails(told, checkpoint_utils.load_model_ensemble_and_task, [str(path)], task=task)
    moved = {"data": str(own_data)}
    fails(told, checkpoint_utils.load_model_ensemble_and_task, [str(path)], moved)


def test_labels_count_for_a_model_that_reads_them(small_corpus, path, own_data, tmp_path):
    labels = own_data / "dict.labels.en.txt"
    labels.write_text("".join(reversed(labels.read_text().splitlines(keepends=True))))
    (own_data / NAME).unlink()
    reads = make_checkpoint(small_corpus, tmp_path / "labels.pt", "transformer_sh")
    fails(f"{reads}: {labels} differs", small_corpus.load, reads, data_bin=own_data)
    assert small_corpus.load(path, data_bin=own_data)


def test_another_subword_model_is_refused(small_corpus, own_data, other_model, tmp_path):
    assert record(small_corpus, own_data) == 0
    path = make_checkpoint(Corpus(own_data.parent), tmp_path / "recorded.pt", TRANSFORMER)
    options = {"data_bin": own_data, "subwords": other_model}
    told = f"{other_model}: differs from the subwords.en that {path} was trained with; give the"
    fails(told, small_corpus.load, path, **options)
    right = str(small_corpus.subwords)
    fails("differs from the subwords.de that", small_corpus.load, path,
          data_bin=own_data, subwords=[right, other_model])  # fmt: skip
    assert small_corpus.load(path, in_subwords=True, **options)  # nothing is split
    fails(told, syncattn_fairseq.export.export, path, own_data, "fairseq", tmp_path / "out",
          subwords=other_model)  # fmt: skip

    for format in ("fairseq", "ctranslate2"):
        folder = tmp_path / format
        syncattn_fairseq.export.export(path, own_data, format, folder)
        assert read_stored(folder).meaning == find_fingerprint(path, read_checkpoint(path)).meaning
        fails("differs from the subwords.en", syncattn_fairseq.load, folder, subwords=other_model,
              device="cpu")  # fmt: skip
        assert syncattn_fairseq.load(folder, own_data, right, device="cpu")
        permuted = shutil.copytree(own_data, tmp_path / f"permuted-{format}")
        fails(permute(permuted), syncattn_fairseq.load, folder, permuted, device="cpu")

    shutil.copy(other_model, tmp_path / "subwords.en")  # beside the checkpoint, which comes first
    shutil.copy(other_model, tmp_path / "subwords.de")
    fails(f"{tmp_path}/subwords.en: differs", small_corpus.load, path, subwords=None)
    shutil.copy(other_model, own_data / "subwords.en")
    told = f"{own_data}/subwords.en: differs from the file that the text was"
    fails(told, make_task, own_data)
    (own_data / NAME).unlink()
    fails(f"{path}: {own_data}/subwords.en differs", small_corpus.load, path, data_bin=own_data)


def test_another_record_is_refused(small_corpus, own_data, tmp_path):
    assert record(small_corpus, own_data) == 0
    path = make_checkpoint(Corpus(own_data.parent), tmp_path / "recorded.pt", TRANSFORMER)
    content = json.loads((own_data / "preparation.json").read_text())
    beside = tmp_path / "preparation.json"
    beside.write_text(json.dumps(content | {"en": content["en"] | {"case": "kept"}}))
    told = f"{path}: preparation.json (en) differs from the one of the model's training"
    fails(told, small_corpus.load, path, data_bin=own_data)
    assert small_corpus.load(path, data_bin=own_data, tokenised=True)
    earlier = change_checkpoint(path, tmp_path / "earlier.pt", task_state={})
    beside.write_text(json.dumps({"en": content["de"], "de": content["en"]}))
    told = "says that en was prepared as de, and de as en, so the languages are swapped"
    fails(told, small_corpus.load, earlier, data_bin=own_data)
    fails(told, syncattn_fairseq.export.export, earlier, own_data, "fairseq", tmp_path / "out")
    assert small_corpus.load(earlier, data_bin=own_data, tokenised=True)


def test_other_test_sets_are_translated(small_corpus, path, tmp_path):
    """With the dictionaries of the training, as fairseq and we binarise them."""
    words = small_corpus.data / "dict.{}.txt"
    options = [f"--srcdict={words}".format("en"), f"--tgtdict={words}".format("de")]
    texts, heads = (small_corpus.folder / kind / "test" for kind in ("pieces", "words"))
    options += [f"--destdir={tmp_path / 'new'}", f"--testpref={texts}", f"--testheads={heads}"]
    labels = small_corpus.data / "dict.labels.{}.txt"
    options += [f"--srclabeldict={labels}".format("en"), f"--tgtlabeldict={labels}".format("de")]
    assert preprocess.main(["-s=en", "-t=de", *options]) == 0
    assert read_stored(tmp_path / "new").provenance != read_stored(small_corpus.data).provenance
    assert small_corpus.load(path, data_bin=tmp_path / "new")


def test_what_earlier_versions_wrote_works_with_one_line(
    small_corpus, path, own_data, tmp_path, caplog
):
    earlier = change_checkpoint(path, tmp_path / "earlier.pt", task_state={})
    (own_data / NAME).unlink()
    caplog.set_level(logging.INFO, "syncattn_fairseq.data.fingerprint")
    for _ in range(2):
        assert small_corpus.load(earlier, data_bin=own_data)
    said = [r.message for r in caplog.records if r.name == "syncattn_fairseq.data.fingerprint"]
    assert sum(line.startswith(f"{earlier}: the checkpoint has no record") for line in said) == 1
    assert f"{own_data}: has no {NAME}" in said[1]


# ---- resuming

OLD = {"train.en-de.en": Dataset(9, "1" * 64), "train.en-de.de": Dataset(9, "2" * 64)}
HEADS = {"train.heads.en-de.en": Dataset(9, "3" * 64)}
VALID = {"valid.en-de.en": Dataset(5, "4" * 64)}
WORDS = {"dict.en.txt": "5" * 64, "subwords.en": "6" * 64}


def go_on(before: Any, here: Any, same_text: bool = True) -> None:
    folders = [Path("A"), Path("B")][: len(here[1])]
    check_resumed("x.pt", before and Fingerprint(*before), Fingerprint(*here), folders,
                  ("train", "valid"), same_text)  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, OLD),
        (OLD, OLD | HEADS),  # were added, by --add
        (OLD, OLD | {"test.en-de.en": Dataset(1)}),
        (OLD, {name: Dataset(each.size) for name, each in OLD.items()}),  # without checksums
    ],
)
def test_the_same_text_goes_on(old, new, caplog):
    go_on((WORDS, [old]), (WORDS, [new]))
    go_on((WORDS, [old, {}]), (WORDS, [new, {}]))
    assert not caplog.records


@pytest.mark.parametrize(
    ("new", "named"),
    [
        (OLD | {"train.en-de.de": Dataset(8)}, "train.en-de.de"),
        (OLD | {"train.en-de.de": Dataset(9, "0" * 64)}, "train.en-de.de"),
        (OLD | {"train1.en-de.en": Dataset(9)}, "train1.en-de.en"),
        ({}, "train.en-de.de"),
        (OLD | {"train.heads.en-de.en": Dataset(9, "0" * 64)}, "train.heads.en-de.en"),
    ],
)
def test_another_text_does_not_go_on(new, named):
    old = OLD | HEADS
    told = f"x.pt: the training has read another A/{named} than the present one; continue"
    fails(told, go_on, (WORDS, [old]), (WORDS, [new]))
    go_on((WORDS, [old]), (WORDS, [new]), same_text=False)
    go_on(None, (WORDS, [new]))
    fails("x.pt: the training data were in 1 folders, and are in 2 now; continue",
          go_on, (WORDS, [old]), (WORDS, [old, new]))  # fmt: skip


def test_another_validation_text_is_said(caplog):
    go_on((WORDS, [OLD | VALID]), (WORDS, [OLD | {"valid.en-de.en": Dataset(6)}]))
    assert [r.message for r in caplog.records] == [
        "A/valid.en-de.en: has changed since x.pt was validated on it"
    ]


def test_other_words_never_go_on(caplog):
    other = WORDS | {"dict.en.txt": "0" * 64}
    told = "x.pt: A/dict.en.txt differs from the file that the model was trained with; "
    fails(f"{told}continue with the same data", go_on, (WORDS, [OLD]), (other, [OLD]))
    fails(f"{told}binarise the text with the dictionaries of the training",
          go_on, (WORDS, [OLD]), (other, [OLD]), same_text=False)  # fmt: skip
    other = WORDS | {"subwords.en": "0" * 64}
    fails("A/subwords.en differs", go_on, (WORDS, [OLD]), (other, [OLD]))
    go_on((WORDS, [OLD]), (other, [OLD]), same_text=False)
    assert [r.message for r in caplog.records] == [
        "A/subwords.en differs from the file that x.pt was trained with"
    ]


@pytest.fixture(autouse=True)
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "_said", set())
