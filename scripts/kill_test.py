#!/usr/bin/env python3
"""Kill commands at random moments, and check that repeating them gives the usual output.

The commands train, export, parse, binarise and learn subwords on a small generated corpus, once to
the end and then with kills. The script ends with status 1 if a loss or a byte differs, or a file is
left over.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import syncattn_fairseq
from syncattn_lab.synthetic.generated_corpus import write_corpus

BIN = Path(sys.executable).parent
PLUGIN = Path(syncattn_fairseq.__file__).parent
COMMANDS = ("train", "export", "parse", "preprocess", "bpe")

#: The program of a slow parser for syncattn-parse.
PARSER = """\
import sys, time
for line in sys.stdin:
    for number, word in enumerate(line.split(), 1):
        print(number, word, *"____", number - 1, "dep", "_", "_", sep="\\t")
    print(flush=True)
    time.sleep(0.002)
"""

TRAINING = [
    *("fairseq-train", "bin", f"--user-dir={PLUGIN}", "--task=translation_with_syntax"),
    *("--arch=transformer_syncattn", "--encoder-layers=2", "--decoder-layers=2"),
    *("--encoder-embed-dim=64", "--encoder-ffn-embed-dim=2048", "--encoder-attention-heads=4"),
    *("--decoder-ffn-embed-dim=2048", "--decoder-attention-heads=4", "--cpu", "--seed=1"),
    *("--criterion=label_smoothed_cross_entropy_with_syntax", "--optimizer=adam", "--lr=1e-3"),
    "--max-tokens=600",
]


def start(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command of this environment in a folder, on one CPU thread."""
    return subprocess.Popen(
        [str(BIN / command[0]), *command[1:]],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(command: Sequence[str], folder: Path, seconds: float | None = None) -> str:
    """Run a command in a folder and return its output; kill it after ``seconds``, if given.

    If a command that should not be killed fails, the script ends.
    """
    process = start(command, folder)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        return process.communicate()[0]
    if process.returncode and seconds is None:
        sys.exit(f"{' '.join(command)}: status {process.returncode}\n{output[-3000:]}")
    return output


def run_for_updates(
    command: Sequence[str], folder: Path, updates: int, seconds: float
) -> tuple[str, bool]:
    """Start a training, and kill it some seconds after a number of updates.

    Args:
        command: the command of the training.
        folder: the folder to run in.
        updates: the number of logged updates before the clock starts.
        seconds: the time from then to the kill.

    Returns:
        The printed text, and whether the training was still running.
    """
    process = start(command, folder)
    assert process.stdout is not None
    printed = []
    for line in process.stdout:
        printed.append(line)
        updates -= "inner | {" in line
        if updates <= 0:
            break
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    printed.append(process.communicate()[0])
    return "".join(printed), process.returncode == -signal.SIGKILL


def content(folder: Path, names: Sequence[str]) -> dict[str, bytes | None]:
    """Return the content of files, also in folders, by path; None for logs, which always differ."""
    found: dict[str, bytes | None] = {}
    for name in names:
        for path in sorted([folder / name, *(folder / name).rglob("*")]):
            if path.is_file():
                same = path.suffix != ".log"
                found[str(path.relative_to(folder))] = path.read_bytes() if same else None
    return found


def losses(output: str) -> dict[int, str]:
    """Return the loss of each update from the output of a training."""
    logs = (
        json.loads(line.split(" | ")[-1]) for line in output.splitlines() if "inner | {" in line
    )
    return {int(log["num_updates"]): log["total_loss"] for log in logs}


def kill_training(folder: Path, kills: int, generator: random.Random) -> list[str]:
    """Kill a training again and again; return how the resumed training differs from a whole one.

    Most of its time is spent on writing checkpoints.
    """
    command = [*TRAINING, f"--max-update={4 + 3 * kills}", "--save-interval-updates=1"]
    command += ["--keep-interval-updates=3", "--log-format=json", "--log-interval=1"]
    straight = losses(run([*command, "--save-dir=straight"], folder))
    resumed = [*command, "--save-dir=killed"]
    faults = []
    logged: set[tuple[int, str]] = set()
    for number in range(kills):
        updates = generator.randint(1, 3)
        output, killed = run_for_updates(resumed, folder, updates, generator.uniform(0, 0.4))
        logged |= losses(output).items()
        late = "" if killed else ", too late"
        print(f"training: kill {number + 1}, {len(logged)} losses logged{late}", flush=True)
        if generator.random() < 0.2:  # half a file, as other software may leave when killed
            last = folder / "killed" / "checkpoint_last.pt"
            if last.exists() and list((folder / "killed").glob("checkpoint_*_*.pt")):
                os.truncate(last, last.stat().st_size // 2)
                print("training: checkpoint_last.pt is cut in half", flush=True)
    logged |= losses(run(resumed, folder)).items()
    wrong = sorted(logged - straight.items())
    if wrong:
        faults.append(f"training: different losses: {wrong}")
    if max(logged)[0] != max(straight):
        faults.append("training: did not finish")
    for path in (folder / "killed").iterdir():
        if not path.name.startswith("checkpoint") or path.suffix != ".pt":
            faults.append(f"training: {path} is left over")
    return faults


def kill_files(
    folder: Path,
    name: str,
    command: list[str],
    outputs: list[str],
    kills: int,
    generator: random.Random,
) -> list[str]:
    """Kill a command at random moments; return how its output differs from that of a whole run.

    Args:
        folder: the folder to run in.
        name: the name of the command in messages.
        command: the command and its arguments.
        outputs: the files and folders that the command writes.
        kills: the number of kills.
        generator: draws the moments.
    """

    def remove() -> None:
        for output in outputs:
            path = folder / output
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(True)

    before = {path.name for path in folder.iterdir()}
    began = time.monotonic()
    run(command, folder)
    whole = time.monotonic() - began
    straight = content(folder, outputs)
    remove()
    finished = 0
    for _ in range(kills):
        run(command, folder, generator.uniform(0.2, 1.05) * whole)
        if content(folder, outputs).keys() == straight.keys():
            finished += 1
            if content(folder, outputs) != straight:
                return [f"{name}: other bytes after a kill"]
            remove()
    print(f"{name}: {kills} kills, {finished} of them too late", flush=True)
    if content(folder, outputs).keys() != straight.keys():
        run(command, folder)
    faults = [] if content(folder, outputs) == straight else [f"{name}: other bytes"]
    new = (
        {path.name for path in folder.iterdir()}
        - before
        - {output.split("/")[0] for output in outputs}
    )
    return [*faults, *(f"{name}: {path} is left over" for path in sorted(new))]


def main() -> None:
    """Kill the requested commands, and print the faults that are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of each command (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=COMMANDS)
    args = parser.parse_args()
    generator = random.Random(args.seed)
    wanted = args.only or COMMANDS
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "parser.py").write_text(PARSER)
        write_corpus(folder / "words", {"test": 20, "valid": 20, "train": 2000}, seed=1)
        texts = [f"words/{split}.{side}" for split in ("train", "valid") for side in ("en", "de")]
        learn = ["syncattn-bpe", "learn", "--vocab-size=500", "--model=bpe", "--input", *texts[:2]]
        apply = ["syncattn-bpe", "apply", "--model=bpe.model", "--input", *texts, "--output"]
        apply += [text.replace("words/", "pieces.") for text in texts]
        binarise = ["syncattn-preprocess", "-s=en", "-t=de", "--destdir=bin", "--joined-dictionary"]
        for split in ("train", "valid"):
            binarise += [f"--{split}pref=pieces.{split}", f"--{split}heads=words/{split}"]
        parse = ["syncattn-parse", "--input=words/train.en", "--output=heads", "--labels=labels"]
        parse += ["--parser=command", f"--command={sys.executable} parser.py", "--format=conllu"]
        parse += ["--shards=8", "--workers=2"]
        if "bpe" in wanted:
            faults += kill_files(folder, "bpe learn", learn, ["bpe.model"], args.kills, generator)
        run(learn, folder)
        if "bpe" in wanted:
            faults += kill_files(folder, "bpe apply", apply, apply[-4:], args.kills, generator)
        run(apply, folder)
        if "parse" in wanted:
            outputs = ["heads", "labels", "heads.manifest.json"]
            faults += kill_files(folder, "parse", parse, outputs, args.kills, generator)
        if "preprocess" in wanted:
            faults += kill_files(folder, "preprocess", binarise, ["bin"], args.kills, generator)
        if not (folder / "bin").exists():
            run(binarise, folder)
        if "export" in wanted:
            run([*TRAINING, "--max-update=1", "--save-dir=trained"], folder)
            export = ["syncattn-export", "--path=trained/checkpoint_last.pt", "--data-bin=bin"]
            export += ["--subwords", "bpe.model", "--format=fairseq", "--output=exported"]
            faults += kill_files(folder, "export", export, ["exported"], args.kills, generator)
        if "train" in wanted:
            faults += kill_training(folder, args.kills, generator)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
