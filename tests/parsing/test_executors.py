import json
import sys
from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import hash_file
from syncattn_fairseq.parsing import slurm_jobs
from syncattn_fairseq.parsing.executors import Executor, make_local_executor
from syncattn_fairseq.parsing.shards import Shard, ShardTask, plan_shards
from syncattn_fairseq.parsing.slurm_jobs import make_slurm_executor, plan_arrays
from tests.parsing.chain import ChainSource


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("a b c d\n" * 40)
    return tmp_path / "text"


def make(text: Path, count: int = 8) -> tuple[ShardTask, list[Shard]]:
    shards, _ = plan_shards(text, count)
    (text.parent / "shards").mkdir()
    return ShardTask(text, text.parent / "shards", ChainSource(), 9, ("heads",)), shards


def parse(executor: Executor, task: ShardTask, shards: list[Shard]) -> list[int]:
    """Parse; return the numbers of words that were reported."""
    words: list[int] = []
    executor(task, shards, words.append)
    return words


def finished(task: ShardTask, shards: list[Shard]) -> list[int]:
    return [shard.number for shard in shards if shard.folder(task.shards).exists()]


@pytest.mark.parametrize("workers", [1, 3, 9])
def test_every_shard_is_parsed_and_every_word_reported(text, workers):
    task, shards = make(text)
    assert sum(parse(make_local_executor(workers), task, shards)) == 160
    assert finished(task, shards) == list(range(8))


def test_words_are_reported_once_however_often(text):
    words = parse(make_local_executor(1, report_every=0.0), *make(text))
    assert len(words) > 8 and sum(words) == 160


def test_the_parser_is_in_another_process(text):
    text.write_text("a\n" * 30 + "b die\n" + "c\n" * 30)
    task, shards = make(text)
    with pytest.raises(DataError, match="a worker process died .see the error above.*run the com"):
        parse(make_local_executor(1), task, shards)
    assert finished(task, shards)[:2] == [0, 1] and len(finished(task, shards)) < 8


def test_a_single_shard_is_parsed_in_this_process(text, monkeypatch):
    monkeypatch.delattr("multiprocessing.get_context")
    task, shards = make(text, 1)
    assert sum(parse(make_local_executor(4), task, shards)) == 160
    assert finished(task, shards) == [0]


def test_a_killed_worker_is_noticed(text):
    text.write_text("a kill\n" * 40)
    with pytest.raises(
        DataError, match="signal 9.; if the machine ran out of memory, use fewer --workers"
    ):
        parse(make_local_executor(2), *make(text))


def test_what_is_wrong_in_a_worker_is_one_line(text):
    task, shards = make(text)
    text.write_text(text.read_text().upper())
    with pytest.raises(DataError, match="text: the text changed while it was being parsed"):
        parse(make_local_executor(2), task, shards)


def test_slurm_says_what_it_needs(text, monkeypatch):
    task, shards = make(text)
    monkeypatch.setenv("PATH", str(text.parent))
    with pytest.raises(DataError, match="Slurm jobs need the programs srun and sbatch"):
        parse(make_slurm_executor(None, {}), task, shards)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(DataError, match=r"pip install 'syncattn-fairseq\[slurm\]'"):
        parse(make_slurm_executor(None, {}), task, shards)


SBATCH = """\
#!{python}
import os, pathlib, re, sys
script = pathlib.Path(sys.argv[1]).read_text()
pathlib.Path("{folder}/submitted").write_text(script)
print("Submitted batch job 7")
"""
SQUEUE = """\
#!{python}
import pathlib, sys
assert sys.argv[1:] == ["--noheader", "--array", "--format=%i", "--jobs=7"], sys.argv
looks = pathlib.Path("{folder}/looks")
looks.write_text(looks.read_text() + "x" if looks.exists() else "x")
if len(looks.read_text()) > 3:
    sys.exit("slurm_load_jobs error: Invalid job id specified")
if len(looks.read_text()) > 2:
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller")
print("7_1", "7_2", sep="\\n")
"""


@pytest.fixture
def cluster(text: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that answer as Slurm's do; benchmarks/slurm has the real ones."""
    scripts = {"sbatch": SBATCH, "srun": "", "squeue": SQUEUE}
    scripts["scancel"] = "#!/bin/sh\necho $* >> {folder}/cancelled\n"
    for name, script in scripts.items():
        path = text.parent / name
        path.write_text(script.format(python=sys.executable, folder=text.parent))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(text.parent), prepend=":")
    monkeypatch.setattr(slurm_jobs, "_LOOK", 0.0)
    monkeypatch.setattr(slurm_jobs, "_DELAY", 0.0)
    return text.parent


def test_the_array_asks_for_what_the_user_wants(text, cluster):
    task, shards = make(text)
    for shard in shards:  # as fast jobs do
        task([shard])
    options: dict[str, str | bool] = {"partition": "gpu", "time": "0-0:29:30", "exclusive": True}
    words = parse(make_slurm_executor(3, options), task, shards)
    assert words == [shard.words for shard in shards]
    asked = (cluster / "submitted").read_text()
    for option in ("partition=gpu\n", "time=0-0:29:30\n", "exclusive\n", "array=0-7%3\n"):
        assert f"#SBATCH --{option}" in asked
    assert not (cluster / "cancelled").exists()


def test_a_job_that_ends_without_its_shard_is_told(text, cluster):
    task, shards = make(text, 3)
    task([shards[0]])
    words: list[int] = []
    with pytest.raises(
        DataError,
        match="2 Slurm jobs ended without finishing their shards, the first is 7_1 .log: .*.err",
    ):
        make_slurm_executor(None, {})(task, shards, words.append)
    assert words == [shards[0].words]
    assert len((cluster / "looks").read_text()) == 5  # not at once: Slurm did not know


def test_arrays_are_no_larger_than_a_cluster_takes():
    def plan(count: int, workers: int | None = None) -> list[list[list[int]]]:
        return plan_arrays(range(count), workers)

    assert plan(3) == [[[0], [1], [2]]] and plan(0) == []
    for count in (1000, 1001, 4567, 10_000, 10_001, 123_456):
        for workers in (None, 1, 3, 5000):
            arrays = plan(count, workers)
            shards = [shard for array in arrays for job in array for shard in job]
            assert shards == [*range(count)]
            assert max(map(len, arrays)) <= 1000 and len(arrays) <= (workers or 99)
    assert [len(array) for array in plan(20_000)] == [1000, 1000]
    assert max(len(job) for job in plan(20_000)[0]) == 10 and len(plan(20_000, 1)) == 1


def test_many_shards_share_jobs_and_arrays(text, cluster, monkeypatch):
    monkeypatch.setattr(slurm_jobs, "_MOST_JOBS", 2)
    monkeypatch.setattr(slurm_jobs, "_MOST_SHARDS", 2)
    submitted = (text.parent / "sbatch").read_text().replace("write_text", "open('a').write")
    (text.parent / "sbatch").write_text(submitted)
    task, shards = make(text)
    task(shards)  # as one job does
    assert finished(task, shards) == [*range(8)]
    assert parse(make_slurm_executor(4, {}), task, shards) == [shard.words for shard in shards]
    asked = (cluster / "submitted").read_text()
    assert asked.count("--array=0-1%2\n") == 2
    jobs = json.loads((task.shards / "jobs.json").read_text())["jobs"]
    assert [*jobs] == [*map(str, range(8))]
    assert [*jobs.values()] == ["7_0", "7_0", "7_1", "7_1"] * 2


def test_a_job_of_a_finished_shard_goes_on_for_others(text, cluster):
    task, shards = make(text, 3)
    (task.shards / "manifest.json").write_text("1")
    earlier = {"for": hash_file(task.shards / "manifest.json"), "jobs": dict.fromkeys("012", "7_1")}
    (task.shards / "jobs.json").write_text(json.dumps(earlier))
    assert len(slurm_jobs._find_running(task.shards, shards[1:])) == 2
    assert not (cluster / "cancelled").exists()


def test_jobs_are_cancelled_when_nobody_waits_any_more(text, cluster):
    task, shards = make(text, 3)
    task([shards[0]])

    def stop(words: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_slurm_executor(None, {})(task, shards, stop)
    assert (cluster / "cancelled").read_text().split() == ["7_0", "7_1", "7_2"]


def test_jobs_that_still_run_are_not_started_again(text, cluster):
    task, shards = make(text, 3)
    manifest = task.shards / "manifest.json"
    manifest.write_text("1")
    earlier = {"for": hash_file(manifest), "jobs": {0: "7_1", 1: "7_2", 2: "7_3"}}
    (task.shards / "jobs.json").write_text(json.dumps(earlier))
    found = slurm_jobs._find_running(task.shards, shards)
    assert {shard.number: job.job_id for shard, job in found.items()} == {0: "7_1", 1: "7_2"}
    assert not (cluster / "cancelled").exists()
    (cluster / "looks").unlink()
    for shard in shards:
        task([shard])
    assert len(parse(make_slurm_executor(None, {}), task, shards)) == 3  # one is started
    assert "--array" not in (cluster / "submitted").read_text()
    now = json.loads((task.shards / "jobs.json").read_text())
    assert now["jobs"] == {"0": "7_1", "1": "7_2", "2": "7"}


def test_jobs_for_something_else_are_cancelled(text, cluster):
    task, shards = make(text, 3)
    (task.shards / "manifest.json").write_text("1")
    earlier = {"for": "another", "jobs": {0: "7_1", 2: "7_3"}}
    (task.shards / "jobs.json").write_text(json.dumps(earlier))
    assert slurm_jobs._find_running(task.shards, shards) == {}
    assert (cluster / "cancelled").read_text().split() == ["7_1"]
    (task.shards / "jobs.json").write_text("[")
    assert slurm_jobs._find_running(task.shards, shards) == {}
