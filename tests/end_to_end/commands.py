"""The real commands, run as a user runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import syncattn_fairseq.plugin  # and the classes that checkpoints may hold

PLUGIN = str(Path(syncattn_fairseq.__file__).parent)
UNUSED = str(Path(__file__).parent / "unused")
"""The folder of what stands for libraries that are left out."""
BIN = Path(sys.executable).parent
programs = FORKED = Path(os.environ["FORKED_PROGRAMS"])
"""Where the commands are; `BIN` has those that import their libraries themselves."""
TASK = (f"--user-dir={PLUGIN}", "--task=translation_with_syntax", "--cpu")
SMALL = "--encoder-layers=2 --decoder-layers=2 --encoder-embed-dim=32 --encoder-ffn-embed-dim=32"
SMALL += " --encoder-attention-heads=4 --decoder-attention-heads=4"
SMALL_RNN = "--encoder-embed-dim=32 --encoder-hidden-size=24"
SMALL_RNN += " --decoder-embed-dim=32 --decoder-hidden-size=32"


def start(command: str, *arguments: object, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start a command of the environment that runs the tests.

    Two large libraries of which translation uses nothing are left out, to save a third of each
    start; but Stanza may want them.
    """
    parsing = any(str(argument).startswith("--source-parser") for argument in arguments)
    path = [] if parsing else [UNUSED]
    path += filter(None, [str(Path(PLUGIN).parent), os.environ.get("PYTHONPATH")])
    changes = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(
        [str(programs / command), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        env={**os.environ, **changes, "PYTHONPATH": os.pathsep.join(path)},
    )


def finish(process: subprocess.Popen[str], stdin: str | None = None, fails: bool = False) -> str:
    """Wait for a command and return what it printed."""
    output, _ = process.communicate(stdin, timeout=300)
    assert (process.returncode != 0) == fails, output[-4000:]
    return output


def run(
    command: str,
    *arguments: object,
    stdin: str | None = None,
    fails: bool = False,
    cwd: Path | None = None,
) -> str:
    """Run a command and return what it printed, errors and all."""
    return finish(start(command, *arguments, cwd=cwd), stdin, fails)


def training(data: Path | str, save_dir: Path, arch: str, *options: object) -> list[object]:
    """Arguments of ``fairseq-train``; later options override earlier ones."""
    return [
        *(data, *TASK, f"--arch={arch}", f"--save-dir={save_dir}", "--share-all-embeddings"),
        *("--criterion=label_smoothed_cross_entropy_with_syntax", "--label-smoothing=0.1"),
        *("--optimizer=adam", "--adam-betas=(0.9, 0.98)", "--lr=0.003", "--max-tokens=600"),
        *("--seed=1", "--log-format=json", "--log-interval=1"),
        *(SMALL_RNN if arch.startswith("rnn") else SMALL).split(),
        *options,
    ]


def train(data: Path | str, save_dir: Path, arch: str, *options: object, **how: Any) -> str:
    """Run ``fairseq-train``."""
    return run("fairseq-train", *training(data, save_dir, arch, *options), **how)


def logged(output: str, kind: str = "train_inner") -> list[dict[str, float]]:
    """Read the numbers that fairseq logged: ``train_inner``, ``train`` or ``valid``."""
    lines = (line.split(f" | {kind} | ") for line in output.splitlines())
    return [
        {k: float(v) for k, v in json.loads(parts[1]).items()}
        for parts in lines
        if len(parts) == 2 and parts[1].startswith("{")
    ]


def generate(data: Path, checkpoint: Path | str, *options: object, **how: Any) -> str:
    """Run ``fairseq-generate``."""
    search = (f"--path={checkpoint}", "--beam=4", "--max-len-b=20")
    return run("fairseq-generate", data, *TASK, *search, *options, **how)


def interactive(
    data: Path, checkpoint: Path | str, source: str, *options: object, **how: Any
) -> str:
    """Run ``fairseq-interactive`` on the lines of a text."""
    search = (f"--path={checkpoint}", "--beam=4", "--max-len-b=20", "-s=en", "-t=de")
    batches = ("--buffer-size=10", "--batch-size=4")
    words = (data, *TASK, *search, *batches, *options)
    return run("fairseq-interactive", *words, stdin=source, **how)


def hypotheses(output: str) -> dict[int, list[str]]:
    """Return the translations of each sentence, as subwords."""
    return {number: [c[1] for c in found] for number, found in lines(output, "H").items()}


def lines(output: str, kind: str) -> dict[int, list[list[str]]]:
    """Return the columns of every line of one kind, such as ``H`` or ``X``, by sentence."""
    found: dict[int, list[list[str]]] = {}
    for line in output.splitlines():
        name, *columns = line.split("\t")
        if name.startswith(f"{kind}-") and name[len(kind) + 1 :].isdigit():
            found.setdefault(int(name[len(kind) + 1 :]), []).append(columns)
    return found
