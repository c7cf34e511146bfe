"""Steps as jobs, with programs that answer as Slurm's do; benchmarks/slurm has the real ones."""

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from threading import Event, Timer

import pytest

from syncattn_fairseq.base import slurm
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.lab.recipes import jobs
from syncattn_fairseq.lab.recipes.processes import Failed
from syncattn_fairseq.lab.recipes.stages import Step, new_step

#: Runs the job at once, as the only task of node "here".
SBATCH = """\
#!{python}
import os, pathlib, re, subprocess, sys
script = pathlib.Path(sys.argv[1]).read_text()
folder = pathlib.Path({folder!r})
(folder / "submitted").open("a").write(script)
jobs = folder / "log.jobs"
environment = {{
    **os.environ,
    "SUBMITIT_EXECUTOR": "slurm",
    **{{"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}},
    **{{"SLURM_NTASKS": "1", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "here"}},
}}
print("Submitted batch job 7", flush=True)
if not (folder / "slow").exists():
    command = "import time; time.sleep(1); import submitit.core._submit; "
    command += "submitit.core._submit.submitit_main()"
    with (jobs / "7_0_log.out").open("w") as out:
        subprocess.Popen([{python!r}, "-c", command, str(jobs)], env=environment, stdout=out,
            stderr=out, start_new_session=True)
"""
SQUEUE = '#!/bin/sh\ncase "$*" in *7*) test -e {folder}/gone || echo 7;; esac\n'


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    scripts = {"sbatch": SBATCH, "srun": "#!/bin/sh\n", "squeue": SQUEUE}
    scripts |= {"scontrol": "#!/bin/sh\necho here\n", "sacct": "#!/bin/sh\n"}
    for name, script in scripts.items():
        path = tmp_path / name
        path.write_text(script.format(python=sys.executable, folder=str(tmp_path)))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(slurm, "_LOOK", 0.1)
    monkeypatch.setattr(slurm, "_DELAY", 0.3)
    return tmp_path


def run(folder: Path, script: str, output: str | None = None, ended: bool = False) -> list[str]:
    job = {"nodes": 1, "ntasks_per_node": 1, "partition": "gpu", "time": "1-0"}
    path = Path(output) if output else None
    step = Step((("bash", "-c", script),), output=path, job=job)
    told: list[str] = []
    event = Event()
    waiting = Timer(0 if ended else 60, event.set)
    waiting.start()
    try:
        jobs.run(step, folder, folder / "log", BytesIO(), told.append, event)
    finally:
        waiting.cancel()
    return told


def test_a_step_is_a_job(cluster):
    told = run(cluster, "echo $RANK/$WORLD_SIZE $MASTER_ADDR; echo said >&2")
    assert told[0] == "job 7" and "0/1 here" in told and "said" in told
    asked = (cluster / "submitted").read_text()
    for option in ("partition=gpu", "time=1440", "ntasks-per-node=1"):
        assert f"#SBATCH --{option}\n" in asked
    assert not (cluster / "log.job").exists()


def test_what_a_job_prints_can_be_a_file(cluster):
    run(cluster, "echo translated", output="out")
    assert (cluster / "out").read_text() == "translated\n"


def test_a_job_that_fails(cluster):
    with pytest.raises(Failed, match="^job 7: .*status 3"):
        run(cluster, "echo half; exit 3", output="out")
    assert not (cluster / "out").exists()


def test_a_command_that_slurm_ends_has_not_failed_before_slurm_ends_the_job(tmp_path, monkeypatch):
    waited: list[float] = []
    monkeypatch.setattr(jobs.time, "sleep", waited.append)
    work = jobs.Work(new_step("true"), tmp_path)
    for end, seconds in (("kill $$", [300.0]), ("exit 3", [])):
        with pytest.raises(Failed):
            work._run(("bash", "-c", end), os.environ, None)
        assert waited == seconds
        waited.clear()


def test_a_job_that_vanishes(cluster):
    (cluster / "slow").touch()
    (cluster / "gone").touch()
    with pytest.raises(Failed, match="job 7 vanished from the queue"):
        run(cluster, "true")


def test_a_job_that_still_runs_is_not_started_again(cluster):
    (cluster / "slow").touch()
    with pytest.raises(Failed, match="the recipe ended; job 7 continues"):
        run(cluster, "echo late", ended=True)
    with pytest.raises(DataError, match="job 7 runs another command for this stage"):
        run(cluster, "echo other")
    [submitted] = [p for p in (cluster / "log.jobs").iterdir() if "submitted.pkl" in p.name]
    assert submitted.exists()
    (cluster / "slow").unlink()
    first = (cluster / "submitted").read_text()
    # It starts only now, as a job in a full queue does.
    subprocess.run([cluster / "sbatch", "/dev/null"], check=True, capture_output=True, cwd=cluster)
    assert "late" in run(cluster, "echo late")
    assert (cluster / "submitted").read_text() == first


def test_the_note_of_a_job_that_has_ended_stops_no_other_command(cluster):
    (cluster / "log.job").write_text("3\n1\nbash -c 'echo earlier'\n")
    assert "now" in run(cluster, "echo now")
    assert not (cluster / "log.job").exists()


def test_without_slurm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DataError, match="need srun and sbatch"):
        run(tmp_path, "true")
