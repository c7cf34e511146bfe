from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from syncattn_lab.recipes.grid import MOST_THREADS, _count_ngrams, list_environments
from syncattn_lab.recipes.launch import Machines


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8))


@pytest.mark.parametrize("jobs, threads", [(1, 8), (2, 4), (3, 2), (8, 1), (20, 1)])
def test_jobs_share_the_cores(jobs, threads):
    shared = [{"OMP_NUM_THREADS": str(threads)}] * jobs
    assert list_environments(Machines(cpu=True), jobs) == shared


def test_threads_are_as_many_as_help_or_as_the_user_says(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(64))
    assert list_environments(Machines(cpu=True), 1) == [{"OMP_NUM_THREADS": str(MOST_THREADS)}]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert list_environments(Machines(cpu=True), 2) == [{}, {}]
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    assert list_environments(Machines(cpu=True), 4) == [{"OMP_NUM_THREADS": str(MOST_THREADS)}] * 4


@pytest.mark.parametrize(
    "gpus, visible, processes, jobs, expected",
    [
        (1, None, 1, 3, ["0", "0", "0"]),
        (4, None, 1, 1, ["0"]),  # fairseq would take all four
        (4, None, 4, 1, ["0,1,2,3"]),
        (2, None, 1, 3, ["0", "1", "0"]),
        (4, None, 2, 2, ["0,1", "2,3"]),
        (8, "5,7", 1, 2, ["5", "7"]),
    ],
)
def test_jobs_share_the_gpus_that_there_are(monkeypatch, gpus, visible, processes, jobs, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    made = list_environments(Machines(processes), jobs)
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment in made] == expected


@pytest.mark.parametrize(
    "score", [{}, {"tokenize": "char"}, {"tokenize": "none", "words_by": "sed s/./'& '/g"}]
)
def test_the_kept_counts_give_the_scores_bleu(tmp_path, score):
    translations = ["the old man-eater saw it .", "a red house, here", "what ?"]
    references = ["the old man-hunter saw it .", "a red house here", "what is it ?"]
    (tmp_path / "translations.txt").write_text("\n".join([*translations, ""]))
    (tmp_path / "reference").write_text("\n".join([*references, ""]))
    corpus = SimpleNamespace(score=score)
    cell: Any = SimpleNamespace(
        corpus=corpus,
        output="",
        settings=SimpleNamespace(references="reference"),
    )
    counts = _count_ngrams(cell, tmp_path)
    if "words_by" in score:
        translations, references = (
            [" ".join("".join(text.split())) for text in texts]
            for texts in (translations, references)
        )
    metric: Any = BLEU(tokenize=score.get("tokenize", "13a"), force=True)
    expected = metric.corpus_score(translations, [references])
    assert expected.score > 20
    assert metric._compute_score_from_stats(counts.sum(0).tolist()).score == expected.score
    assert counts[:, 1].sum() == expected.ref_len
