from __future__ import annotations

import pytest
import torch

from syncattn_fairseq.recipes.cells import MOST_THREADS, environments
from syncattn_fairseq.recipes.launch import Machines


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8))


@pytest.mark.parametrize("jobs, threads", [(1, 8), (2, 4), (3, 2), (8, 1), (20, 1)])
def test_jobs_share_the_cores(jobs: int, threads: int) -> None:
    shared = [{"OMP_NUM_THREADS": str(threads)}] * jobs
    assert environments(Machines(cpu=True), jobs) == shared


def test_threads_are_as_many_as_help_or_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(64))
    assert environments(Machines(cpu=True), 1) == [{"OMP_NUM_THREADS": str(MOST_THREADS)}]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert environments(Machines(cpu=True), 2) == [{}, {}]


@pytest.mark.parametrize(
    "gpus, visible, processes, jobs, expected",
    [
        (1, None, 1, 3, ["0", "0", "0"]),
        (2, None, 1, 3, ["0", "1", "0"]),
        (4, None, 2, 2, ["0,1", "2,3"]),
        (8, "5,7", 1, 2, ["5", "7"]),
    ],
)
def test_jobs_share_the_gpus_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
    gpus: int,
    visible: str | None,
    processes: int,
    jobs: int,
    expected: list[str],
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    made = environments(Machines(processes), jobs)
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment in made] == expected
