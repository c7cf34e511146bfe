"""Train with CUDA graphs and without: are losses the same, and how long does an update take?

    python benchmarks/graphs.py losses speed training [--data DATA_BIN]

``losses`` trains every kind of Transformer without dropout, in which both must have the same bits,
and some with dropout, which must end within the seeds' range. ``speed`` compares updates at the
base size with fairseq's, and with the time of their own kernels. ``training`` runs
``fairseq-train`` with ``--fast`` for 4,000 updates, its start included, beside fairseq's own model,
whose time is extrapolated from fewer updates. ``--cpu`` plays tapes (``benchmarks/tape.py``) in
place of graphs. ``benchmarks/gpu.sh`` runs all of it first. The exit status is 1 if a row says
FAILED.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import common, half, train_step  # noqa: E402
from benchmarks.tape import Tapes, as_on_a_gpu  # noqa: E402
from syncattn_fairseq.tasks.graphs import CudaGraphs, Recorder  # noqa: E402
from syncattn_fairseq.tasks.products import tf32_products  # noqa: E402

Row = tuple[str, ...]
Update = Callable[[], Any]

#: Systems whose losses are compared in half precision and with dropout, too.
CLOSELY = ("transformer_syncattn_tiny", "transformer_lpsi_tiny", "transformer_pascal_tiny")
#: Mean lengths of the batches of ten shapes.
TEN = (10, 14, 18, 22, 26, 32, 40, 50, 64, 80)
#: How many times as long as its kernels an update may take.
LIMIT = 1.25


@dataclass(frozen=True)
class Setting:
    """A model of base size, with batches and a precision, whose update is measured."""

    name: str
    arch: str
    precision: str
    tokens: int = 4096
    lengths: tuple[int, ...] = (26,)

    def __str__(self) -> str:
        shapes = f", {len(self.lengths)} shapes" * (len(self.lengths) > 1)
        return f"update with graphs, {self.precision}, {self.tokens:,} tokens{shapes}"


SETTINGS = [
    Setting("Transformer", "syntax_transformer", "bf16"),
    Setting("DBSA", "transformer_dbsa", "bf16"),
    Setting("SyncAttn", "transformer_syncattn", "bf16"),
    Setting("LPSI", "transformer_lpsi", "bf16"),
    Setting("PASCAL", "transformer_pascal", "fp16"),
    Setting("Transformer", "syntax_transformer", "bf16", lengths=TEN),
    Setting("Transformer", "syntax_transformer", "fp32"),
    Setting("Transformer", "syntax_transformer", "bf16", tokens=16384),
    Setting("SyncAttn", "transformer_syncattn", "fp16", tokens=16384),
    Setting("Transformer", "syntax_transformer", "fp32", tokens=16384),
]


def make_recorder(args: argparse.Namespace) -> Recorder:
    """Return the object that captures CUDA graphs or, on a CPU, its substitute."""
    return Tapes() if args.cpu else CudaGraphs()


def list_systems(args: argparse.Namespace) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the architecture and options of Transformers with all our kinds of heads, by name.

    On a CPU, there are fewer.
    """
    found = {name: system for name, system in half.systems().items() if "rnn" not in system[0]}
    return dict([*found.items()][:: 6 if args.cpu else 1])


def train_small(
    args: argparse.Namespace,
    system: tuple[str, dict[str, Any]],
    precision: str,
    graphs: bool,
    dropout: float = 0.0,
    updates: int = 50,
    seed: int = 0,
) -> list[float]:
    """Train a small model on batches of three shapes; return the loss of each update.

    Args:
        args: the program's.
        system: architecture and options.
        precision: of :data:`.common.PRECISIONS`.
        graphs: whether its passes are recorded.
        dropout: of all kinds.
        updates: how many.
        seed: with the number of an update, as in fairseq, the seed of what is random.
    """
    device = torch.device("cpu" if args.cpu else "cuda")
    task = common.make_task(200)
    batches = [
        common.make_batch(task, 120, device, length, seed)
        for seed in range(3)
        for length in (6, 9, 12)
    ]
    drops = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), dropout)
    arguments = argparse.Namespace(device=device, precision=precision)
    recorder = make_recorder(args) if graphs else None
    arch, options = system
    update = train_step.make_update(
        arch, {**options, **drops}, arguments, task, batches, recorder=recorder
    )
    losses = []
    with tf32_products():
        for number in range(updates):
            torch.manual_seed(1000 * seed + number)
            losses.append(update())
    nothing = torch.tensor(float("nan"), device=device)
    return torch.stack([nothing if x is None else x.float() for x in losses]).tolist()


def compare_losses(args: argparse.Namespace) -> Iterator[Row]:
    """Compare the losses of trainings with CUDA graphs and without."""
    systems, updates = list_systems(args), 12 if args.cpu else 50
    share, shares = args.share
    cells = [(name, "fp32") for name in systems]
    cells += [(name, half) for half in ("bf16", "fp16") for name in CLOSELY if name in systems]
    for name, precision in cells[share::shares]:
        what = f"{updates} updates with graphs, {precision}"
        both = [
            train_small(args, systems[name], precision, graphs, updates=updates)
            for graphs in (False, True)
        ]
        yield (what, name, "-", compare_bits(*both))
    dropped = [name for name in CLOSELY if name in systems] or [*systems][:1]
    for name in dropped[share::shares]:
        updates = 20 if args.cpu else 300
        ends = [
            [
                statistics.mean(
                    train_small(args, systems[name], "bf16", graphs, 0.1, updates, seed)[-50:]
                )
                for seed in range(3)
            ]
            for graphs in (False, True)
        ]
        yield (f"{updates} updates with graphs, dropout", name, "-", compare_seeds(*ends))


def compare_bits(plain: list[float], graphed: list[float]) -> str:
    """Report whether two trainings that should be equal have the same losses, to the last bit."""
    if repr(plain) == repr(graphed):  # NaN where half precision overflows
        return f"equal bits, last loss {plain[-1]:.5f}"
    apart = max(abs(a - b) for a, b in zip(plain, graphed, strict=True))
    first = next(n for n, (a, b) in enumerate(zip(plain, graphed, strict=True)) if a != b)
    return f"FAILED: at most {apart:.1e} apart, first in update {first + 1}"


def compare_seeds(plain: list[float], graphed: list[float]) -> str:
    """Report whether CUDA graphs change the mean loss by no more than its range over seeds."""
    means = [statistics.mean(losses) for losses in (plain, graphed)]
    spread = max(plain) - min(plain)
    said = f"{means[1]:.4f}, without {means[0]:.4f}, seeds within {spread:.4f}"
    return f"FAILED: {said}" if not abs(means[0] - means[1]) <= spread else said


def measure_updates(args: argparse.Namespace) -> Iterator[Row]:
    """Measure updates of fairseq's model, of ours, and of ours with CUDA graphs."""
    for setting in SETTINGS[:: 5 if args.cpu else 1]:
        yield from measure(args, setting)


def measure(args: argparse.Namespace, setting: Setting) -> Iterator[Row]:
    """Measure the training updates of the models compared in one setting, which take turns."""
    options = common.parser(None).parse_args([])
    device = torch.device("cpu" if args.cpu else "cuda")
    vars(options).update(device=str(device), precision=setting.precision)
    vocabulary, tokens, size = (100, 60, "_tiny") if args.cpu else (10000, setting.tokens, "")
    task = common.make_task(vocabulary)
    batches = [
        common.make_batch(task, tokens, device, min(length, 10) if args.cpu else length, seed)
        for seed, length in enumerate(setting.lengths)
    ]
    recorder = make_recorder(args)
    arms = {
        "fairseq": ("transformer", None),
        setting.name: (setting.arch, None),
        f"{setting.name}, graphs": (setting.arch, recorder),
    }
    updates: dict[str, Update] = {
        name: train_step.make_update(arch + size, {}, options, task, batches, recorder=own)
        for name, (arch, own) in arms.items()
    }
    if setting.precision == "fp32":
        updates["fairseq, TF32"] = with_tf32(updates["fairseq"])
    turns = {name: repeated(update, len(batches)) for name, update in updates.items()}
    begun = time.monotonic()
    for _ in range(2):  # met, then recorded
        turns[f"{setting.name}, graphs"]()
    took = f"recorded in {time.monotonic() - begun:.1f} s"
    memory = recorder.measure_memory()
    seconds = common.interleaved(turns, 3 if args.cpu else 6, device)
    for name, (median, (low, middle, high)) in common.compare(seconds, invert=True).items():
        cells = [f"{median / len(batches):.1f}", f"{middle:.2f} ({low:.2f} - {high:.2f})"]
        if name.endswith("graphs"):
            busy = 0.0 if args.cpu else time_kernels(turns[name])
            said = f"{took}; kernels {busy / len(batches):.1f} ms"
            slow = busy > 0 and median > LIMIT * busy
            cells += [f"{memory / 2**20:.0f}", f"{'FAILED: ' * slow}{said}"]
        yield (str(setting), name, *cells)


def with_tf32(update: Update) -> Update:
    """Return a function that runs an update with matrix products in TF32."""

    def act() -> None:
        with tf32_products():
            update()

    return act


def repeated(update: Update, count: int) -> Update:
    """Return a function that runs an update ``count`` times."""

    def act() -> None:
        for _ in range(count):
            update()

    return act


def time_kernels(update: Update) -> float:
    """Return how long the kernels of an update work on the GPU, in milliseconds."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        update()
        torch.cuda.synchronize()
    kernels = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return sum(event.device_time for event in kernels) / 1000


def train_from_command_line(args: argparse.Namespace) -> Iterator[Row]:
    """Train with ``fairseq-train``, by the plugin with graphs and by fairseq alone."""
    updates, fewer = (4, 3) if args.cpu else (4000, 400)
    ours, _, last = run_training(args, updates, fast=True)
    what = f"fairseq-train, {updates:,} updates, start included"
    yield (what, "plugin, --fast", f"{ours:.0f} s", f"last loss {last:.3f}")
    whole, each, last = run_training(args, fewer, fast=False)
    theirs = whole + (updates - fewer) * each
    said = f"extrapolated from {fewer} updates, whose last loss is {last:.3f}"
    yield (what, "fairseq", f"{theirs:.0f} s", f"{said}; the plugin takes {ours / theirs:.2f}")


def run_training(args: argparse.Namespace, updates: int, fast: bool) -> tuple[float, float, float]:
    """Train for some updates; return total seconds, seconds per update, and the last loss.

    Raises:
        RuntimeError: the training failed.
    """
    words = [
        *("--optimizer=adam", "--adam-betas=(0.9, 0.98)", "--lr=0.0005", "--clip-norm=1"),
        *("--lr-scheduler=inverse_sqrt", "--warmup-updates=1000", "--label-smoothing=0.1"),
        *("--dropout=0.1", "--share-all-embeddings", "--seed=1", f"--max-update={updates}"),
        *("--log-format=json", "--no-save", "--disable-validation", "--num-workers=2"),
        f"--log-interval={max(1, updates // 4)}",
        *(("--cpu", "--max-tokens=200") if args.cpu else ("--fp16", "--max-tokens=4096")),
    ]
    criterion = "label_smoothed_cross_entropy"
    if fast:
        words += [f"--user-dir={ROOT / 'syncattn_fairseq'}", "--task=translation_with_syntax"]
        words += ["--fast", "--arch=syntax_transformer", f"--criterion={criterion}_with_syntax"]
    else:
        words += ["--arch=transformer", f"--criterion={criterion}"]
    if args.cpu:
        words += ["--encoder-layers=1", "--decoder-layers=1", "--encoder-embed-dim=32"]
        words += ["--encoder-ffn-embed-dim=32"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    call = "import sys; from fairseq_cli.train import cli_main; sys.exit(cli_main())"
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", call, str(args.data), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
    )
    seconds = time.monotonic() - begun
    lines = [line.split(" | ")[-1] for line in done.stdout.splitlines() if "train_inner" in line]
    if done.returncode or len(lines) < 2:
        raise RuntimeError((done.stdout + done.stderr).strip().splitlines()[-1][:200])
    steps = [json.loads(line) for line in lines]
    early, late = steps[0], steps[-1]
    passed = float(late["wall"]) - float(early["wall"])
    each = passed / (int(late["num_updates"]) - int(early["num_updates"]))
    return seconds, each, float(late["loss"])


PARTS = {
    "losses": compare_losses,
    "speed": measure_updates,
    "training": train_from_command_line,
}


def main() -> int:
    """Run the parts of this benchmark that the command line names, and print their rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--cpu", action="store_true", help="a smaller run with tapes, on a CPU")
    parser.add_argument("--data", type=Path, help="a binarised corpus, for training")
    parser.add_argument(
        "--share", type=int, nargs=2, default=(0, 1), metavar=("I", "N"),
        help="of losses, only the I-th of N shares, counted from 0",
    )  # fmt: skip
    args = parser.parse_args()
    if "training" in args.parts and args.data is None:
        parser.error("training: give a binarised corpus with --data")
    failed = False
    with as_on_a_gpu() if args.cpu else contextlib.nullcontext():
        for part in args.parts:
            for row in PARTS[part](args):
                print(" | ".join(row), flush=True)
                failed |= any("FAILED" in cell for cell in row)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
