"""What a service needs: parses from outside, calls from many threads, and no PyTorch."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.inference import Decoding
from syncattn_fairseq.inference import model as inference_model
from syncattn_fairseq.trees.tree import format_conllu
from tests.bare_environment import make_bare_environment
from tests.checkpoints import Corpus
from tests.importing import in_a_process


@pytest.fixture(scope="module")
def served(small_corpus: Corpus) -> Path:
    pytest.importorskip("ctranslate2")
    return small_corpus.exported("ctranslate2")


def test_parses_come_from_outside(small_corpus):
    model = small_corpus.load(small_corpus.checkpoint("transformer_pascal"))
    short = Decoding(max_len=3)
    sources, trees = ["the dog sleeps", "the dog"], [[2, 3, 0], [2, 0]]
    found = model.align(sources, ["der"] * 2, parses=trees)
    for parses, same in (([[3, 1, 0], [0, 1]], False), (trees, True), ([None, [2, 0]], False)):
        again = model.align(sources, ["der"] * 2, parses=parses)
        assert np.allclose(found[0].attention, again[0].attention, atol=1e-6) == same
    conllu = "".join(
        format_conllu(source.split(), row, ["x"] * len(row))
        for source, row in zip(sources, trees, strict=True)
    )
    [one, two] = model.translate(sources, parses=trees, decoding=short)
    again = model.translate(sources, parses=conllu, decoding=short)
    assert [one.score, two.score] == [translation.score for translation in again]
    some = model.translate(sources, parses=[None, [2, 0]], decoding=short)
    assert [translation.unparsed for translation in some] == [True, False]
    found = model.analyse(sources, ["der"] * 2, parses=[None, [2, 0]])
    assert [analysis.translation.unparsed for analysis in found] == [True, False]
    for wrong, reason in (
        ([[2, 0], [2, 0]], "^sentence 1: the parse has 2 words, but the sentence has 3"),
        ([[2, 3, 0], [2, 1]], "^sentence 2: "),
        (trees[:1], "^1 parses for 2 sentences"),
        ("1\tthe\n", "^parses:1: expected 10 columns"),
    ):
        with pytest.raises(DataError, match=reason):
            model.translate(sources, parses=wrong)
    reading = small_corpus.load(small_corpus.checkpoint("transformer_sh", source_label_dim=4))
    assert (model.info()["reads"], reading.info()["reads"]) == (["heads"], ["labels"])
    with pytest.raises(DataError, match="^sentence 1: the model also reads dependency labels"):
        reading.translate(sources, parses=trees)
    with pytest.raises(DataError, match="^sentence 1: a dependency label is not UTF-8"):
        reading.translate(sources, parses=conllu.replace("\tx\t", "\t\ud800\t"))
    found = reading.translate(sources, parses=conllu, decoding=Decoding(max_len=2))
    assert not any(translation.unparsed for translation in found)


def test_what_a_model_says_of_itself(served):
    model = syncattn_fairseq.load(served, device="cpu", threads=1, compute_type="float32")
    assert model.info() == {
        **{"version": syncattn_fairseq.__version__, "source": "en", "target": "de"},
        **{"text": "words separated by spaces", "reads": [], "shows": ["links"]},
        **{"longest_source": 1023, "longest_translation": inference_model.MAX_LEN},
    }
    with pytest.raises(DataError, match="does not read parses of the source; leave the parses"):
        model.translate(["the"], parses=[[0]])


def test_what_cannot_be_loaded_like_that(served):
    for options, reason in (
        ({"threads": 0}, "^threads 0: give a whole number from 1"),
        ({"compute_type": "int9"}, "CTranslate2 cannot run the model on cpu .*int9"),
    ):
        with pytest.raises(DataError, match=reason):
            syncattn_fairseq.load(served, device="cpu", **options)
    with pytest.raises(
        DataError, match="^compute_type int8: goes only with exports for CTranslate2"
    ):
        syncattn_fairseq.load("none.pt", compute_type="int8")


def test_files_can_be_read_by_others(served):
    umask = os.umask(0)
    os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in served.iterdir()} == {0o666 & ~umask}


def test_calls_from_threads_share_batches(small_corpus, served, monkeypatch):
    model = syncattn_fairseq.load(served, device="cpu", threads=1)
    sources = small_corpus.lines("test.en")
    expected = dict(zip(sources, model.translate(sources), strict=True))
    batches = model._batches
    sizes, decode = [], batches._translate

    def note(sources: object, search: object) -> object:
        sizes.append(len(sources))
        return decode(sources, search)

    monkeypatch.setattr(batches, "_translate", note)
    calls = [[sources[i % len(sources)]] for i in range(800)]
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(model.translate, calls)]
    assert [t for [t] in found] == [expected[source] for [source] in calls]
    assert sum(sizes) == 800 and len(sizes) < 700
    assert not batches._waiting


def test_calls_with_other_settings_share_no_batch(small_corpus, served, monkeypatch):
    model = syncattn_fairseq.load(served, device="cpu", threads=1)
    sources, searches = small_corpus.lines("test.en"), [Decoding(beam=n) for n in (1, 5)]
    expected = [model.translate(sources, decoding=search) for search in searches]
    seen, decode = [], model._batches._translate

    def note(sources: object, search: object) -> object:
        seen.append(search.decoding)
        return decode(sources, search)

    monkeypatch.setattr(model._batches, "_translate", note)
    calls = [(sources, searches[n % 2]) for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda call: model.translate(call[0], decoding=call[1]), calls)]
    assert {*seen} == {*searches}
    for n, translations in enumerate(found):
        assert [t.score for t in translations] == pytest.approx(
            [t.score for t in expected[n % 2]], abs=1e-4
        )


def test_a_batch_that_fails_is_told_to_all_and_leaves_nothing(small_corpus, served, monkeypatch):
    model = syncattn_fairseq.load(served, device="cpu")
    small = Decoding(batch_size=2)
    batches = model._batches
    usual = batches._translate
    for error, raised in ((DataError("broken"), DataError), (KeyboardInterrupt(), BaseException)):

        def fail(sources: object, search: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(batches, "_translate", fail)
        with pytest.raises(raised):
            model.translate(["the dog"] * 5, decoding=small)
        assert not batches._waiting
    monkeypatch.setattr(batches, "_translate", usual)
    assert len(model.translate(["the dog"] * 5, decoding=small)) == 5


def test_no_batch_begins_when_the_time_is_over(served, monkeypatch):
    model = syncattn_fairseq.load(served, device="cpu")
    batches = model._batches
    with pytest.raises(TimeoutError, match="^the time limit was reached before all sentences were"):
        model.translate(["the dog"], seconds=0)
    begun, usual = threading.Event(), batches._translate

    def wait(sources: object, search: object) -> object:
        begun.set()
        while len(batches._waiting) < 1:  # for the other call
            time.sleep(0.001)
        time.sleep(0.1)
        return usual(sources, search)

    monkeypatch.setattr(batches, "_translate", wait)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(model.translate, ["a dog"], seconds=60)
        begun.wait()
        with pytest.raises(TimeoutError):  # another call has the model for longer
            model.translate(["the dog"], seconds=0.05)
        assert len(slow.result()) == 1
    assert not batches._waiting and batches.lock.acquire(blocking=False)
    batches.lock.release()


def fork(call: Callable[[], bool]) -> bool:
    """Return what a call returns in a forked child, which ends as a program does."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            status = 0 if call() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_can_use_the_model(small_corpus, served, tmp_path):
    """The parent's threads are gone there, and nobody would ever release their locks."""
    sources = small_corpus.lines("test.en")
    threads = torch.get_num_threads()
    copy = Path(shutil.copytree(served, tmp_path / "copy"))
    path = small_corpus.trained()
    try:
        models = [syncattn_fairseq.load(copy, device="cpu", threads=2)]
        models.append(small_corpus.load(path, threads=2))
        for model in models:
            expected = model.translate(sources)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(model._batches.lock.acquire).result()
                assert fork(lambda: model.translate(sources) == expected)  # noqa: B023
                pool.submit(model._batches.lock.release).result()
            assert model.translate(sources) == expected
    finally:
        torch.set_num_threads(threads)
    exported = models[0]

    def drop() -> bool:
        """CTranslate2 ends its threads when nobody has the model any more."""
        del exported.translator
        return True

    assert fork(drop)
    (copy / "model.bin").unlink()
    for model, options, reason in (
        (exported, {}, "model.bin: the file is damaged or missing"),
        (exported, {"device": "cuda"}, "a forked process cannot use its parent's GPU"),
        (models[1], {}, "a forked process cannot use its parent's GPU"),
    ):

        def refuse(model: Any = model, options: Any = options, reason: str = reason) -> bool:
            if model is exported:
                model._options |= options
            else:
                model.device = torch.device("cuda")
            with pytest.raises(DataError, match=reason):
                model.translate(sources)
            return True

        assert fork(refuse)


SCRIPT = """
import sys
import syncattn_fairseq
model = syncattn_fairseq.load("served")
[translation] = model.translate(["the dog sees a cat ."])
[links] = model.align(["the dog sees a cat ."])
print(translation, links, sep="\\t")
assert not {"torch", "fairseq"} & {*sys.modules}
"""


def test_serving_needs_neither_torch_nor_fairseq(served, tmp_path):
    """In an environment with no more than docs/export.md installs."""
    names = ["ctranslate2", "sacremoses"]
    python, environment = make_bare_environment(tmp_path / "venv", names)
    (tmp_path / "served").symlink_to(served)
    (tmp_path / "lines").write_text("the dog sees a cat .\n")

    def run(*arguments: str) -> str:
        command = [python, *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    command = [
        *in_a_process("syncattn_fairseq.cli.translate")[1:],
        "--path=served",
        "--input=lines",
        "--alignments",
    ]
    assert run("-c", SCRIPT) == run(*command)
