"""Check all that needs a GPU in one run: CUDA graphs, speed, half precision, parsing, exports.

``bash benchmarks/gpu.sh`` installs and runs it, in five minutes, and writes one Markdown table row
by row; ``--cpu`` makes a smaller run on a CPU. The table also names the checks that could not run:
CUDA graphs come first, and ``--sections`` makes others in another run.
"""

import argparse
import contextlib
import gc
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import common, decode, half, train_step  # noqa: E402

#: Real trainings from the command line, besides those in this process: each kind of model, and
#: each way to train in half precision.
TRAININGS = [
    *((arch, "--fp16") for arch in ("transformer_syncattn", "transformer_lpsi")),
    *(("rnn_syntax_directed", option) for option in ("--fp16", "--memory-efficient-fp16")),
    *(("transformer_dbsa", option) for option in ("--amp", "--bf16", "--memory-efficient-bf16")),
]
SMALL = ["--encoder-layers=2", "--decoder-layers=2", "--encoder-embed-dim=128"]
SMALL += ["--encoder-ffn-embed-dim=256", "--encoder-attention-heads=4"]
SMALL += ["--decoder-attention-heads=4"]
SMALL_RNN = ["--encoder-embed-dim=128", "--encoder-hidden-size=128"]
SMALL_RNN += ["--decoder-embed-dim=128", "--decoder-hidden-size=128"]
#: The most seconds that everything may take on a GPU; the table names what does not fit.
SECONDS = 300
#: Kernels of attention, by a part of their names.
KERNELS = {"flash": "flash", "fmha": "memory-efficient", "cudnn": "cuDNN"}

#: The largest share of heads that may differ between two devices.
MOST_DIFFERENT = 0.001

Row = tuple[str, ...]

STARTED = time.monotonic()


class Limit:
    """The time limit of the whole run, which starts at `begin`."""

    end: float | None = None

    def begin(self) -> None:
        """Start the time limit."""
        self.end = time.monotonic() + SECONDS

    def left(self) -> float | None:
        """Return the seconds left until the limit; None before `begin`."""
        return None if self.end is None else max(1.0, self.end - time.monotonic())

    def is_over(self) -> bool:
        """Tell whether the time limit has passed, so that no more checks may start."""
        return self.end is not None and time.monotonic() > self.end


LIMIT = Limit()


@dataclass(frozen=True)
class Setting:
    """A size and precision of models, and the size of batches, to measure."""

    family: str
    size: str
    precision: str
    length: int = 26
    tokens: int = 4096

    def __str__(self) -> str:
        size = {"": "base", "_iwslt_de_en": "512/1024", "_tiny": "tiny"}[self.size]
        size = "620/1000" if self.family == "rnn" else size
        size = f"kinds of heads, {size}" if self.family == "kinds" else size
        size += f", {self.tokens:,} tokens" * (self.tokens != 4096)
        return f"{size}, {self.precision}" + f", length {self.length}" * (self.length != 26)


SETTINGS = [
    *(Setting("transformer", "", precision) for precision in ("fp32", "bf16", "fp16")),
    *(Setting("transformer", "", p, tokens=16384) for p in ("fp32", "bf16", "fp16")),
    Setting("kinds", "", "fp16"),
    Setting("transformer", "", "fp16", length=98),
    Setting("transformer", "_iwslt_de_en", "fp16"),
    Setting("rnn", "_iwslt_de_en", "fp32"),
    Setting("rnn", "_iwslt_de_en", "fp16"),
]
SMALL_SETTINGS = [Setting("transformer", "_tiny", "fp32"), Setting("rnn", "_tiny", "fp16")]


def try_graphs(args: argparse.Namespace, part: str, *words: Any) -> Iterator[Row]:
    """Run a part of ``graphs.py`` in its own process, which a failed CUDA graph capture breaks."""
    command = [sys.executable, ROOT / "benchmarks" / "graphs.py", part, *words]
    done = _call([*map(str, command), *["--cpu"] * args.cpu])
    rows = [tuple(line.split(" | ")) for line in done.stdout.splitlines() if " | " in line]
    yield from rows
    if done.returncode and not any("FAILED" in cell for row in rows for cell in row):
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]
        yield ("graphs", part, "-", f"FAILED: {said[:200]}")


def compare_graphs(args: argparse.Namespace) -> Iterator[Row]:
    """Compare losses with CUDA graphs and without, in several processes at a time."""
    shares = 1 if args.cpu else 4

    def run(number: int) -> list[Row]:
        return [*try_graphs(args, "losses", "--share", number, shares)]

    with ThreadPoolExecutor(shares) as pool:
        for rows in pool.map(run, range(shares)):
            yield from rows


def measure_updates(args: argparse.Namespace, setting: Setting) -> Iterator[Row]:
    """Measure a training update of every system: time relative to fairseq's, memory, kernels.

    Memory is all that a system takes: parameters and their copies, gradients and activations.
    """
    options = _options(args, family=setting.family, size=setting.size, precision=setting.precision)
    task, device = common.make_task(options.vocabulary), torch.device(options.device)
    tokens = 256 if args.cpu else setting.tokens
    batches = [common.make_batch(task, tokens, device, setting.length, seed=s) for s in range(4)]
    updates: dict[str, Callable[[], Any]] = {}
    memory, kernels = {}, {}
    for name, (arch, chosen) in _systems(options).items():
        gc.collect()  # models that hold themselves stay until then
        before = torch.cuda.memory_allocated() if device.type == "cuda" else 0
        updates[name] = train_step.make_update(arch, chosen, options, task, batches)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            for _ in range(2):
                updates[name]()
            memory[name] = (torch.cuda.max_memory_allocated(device) - before) / 2**20
            kernels[name] = describe_kernels(updates[name]) + find_fallback(updates[name])
    seconds = common.interleaved(updates, options.rounds, device)
    for row in _ratio_rows(f"update, {setting}", seconds, memory, invert=False):
        yield (*row, kernels.get(row[1], "-"))


def compare_losses(args: argparse.Namespace) -> Iterator[Row]:
    """Train without dropout, with fairseq's Adam and with ours, and compare their losses.

    How far two roundings carry is seen from fairseq's own training with one weight moved by one.
    """
    updates, size = (5, "_tiny") if args.cpu else (200, "")
    still = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
    for precision in ("fp32",) if args.cpu else ("fp32", "bf16", "fp16"):
        options = _options(args, family="transformer", size=size, precision=precision)
        task, device = common.make_task(options.vocabulary), torch.device(options.device)
        tokens = 256 if args.cpu else 4096
        batches = [common.make_batch(task, tokens, device, seed=s) for s in range(8)]
        losses = {}
        for name, arch, moved in (
            ("fairseq", "transformer", False),
            ("one weight moved", "transformer", True),
            ("plugin", "syntax_transformer", False),
        ):
            arguments = (arch + size, still, options, task, batches)
            update = train_step.make_update(*arguments, moved=moved)
            values = [update() for _ in range(updates)]
            losses[name] = torch.stack([x for x in values if x is not None]).float().cpu()
        for name, values in losses.items():
            apart = (values - losses["fairseq"]).abs()
            said = f"last loss {values[-1]:.5f}, at most {apart.max():.1e} from fairseq's"
            yield (f"{updates} updates without dropout, {precision}", name, "-", said)


def describe_kernels(update: Callable[[], Any]) -> str:
    """Return how many kernels an update launches, and the names of its attention kernels."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        update()
        torch.cuda.synchronize()
    names = [e.name for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    names = [name for name in names if not name.startswith(("Memcpy", "Memset"))]
    used = [said for part, said in KERNELS.items() if any(part in name.lower() for name in names)]
    return f"{len(names)} kernels, attention {', '.join(used) or '-'}"


def find_fallback(update: Callable[[], Any]) -> str:
    """Report whether an update needs PyTorch's plain attention kernel, which is slow."""
    fused = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    try:
        with sdpa_kernel(fused):
            update()
    except RuntimeError as error:
        return f", FAILED without the plain one: {' '.join(str(error).split())[:80]}"
    return ""


def measure_decoding(args: argparse.Namespace, precision: str) -> Iterator[Row]:
    """Measure the beam search of every architecture relative to fairseq's."""
    options = _options(args, size="_tiny" if args.cpu else "_iwslt_de_en", precision=precision)
    options.batch_size, options.beam, options.length = (4, 2, 5) if args.cpu else (32, 4, 25)
    options.rounds = 3 if args.cpu else 5
    task, device = common.make_task(options.vocabulary), torch.device(options.device)
    decoders = {
        name: decode.make_decoder(arch, chosen, options, task)
        for name, (arch, chosen) in _systems(options).items()
    }
    seconds = common.interleaved(decoders, options.rounds, device, warmup=1)
    what = f"sentences per second, {Setting('transformer', options.size, precision)}"
    yield from _ratio_rows(what, seconds, {}, invert=True)


def _options(args: argparse.Namespace, **chosen: Any) -> argparse.Namespace:
    options = common.parser(None).parse_args([])
    vars(options).update(device="cpu" if args.cpu else "cuda", threads=2, **chosen)
    options.rounds, options.vocabulary = (3, 500) if args.cpu else (8, 10000)
    return options


def _systems(options: argparse.Namespace) -> dict[str, tuple[str, dict[str, Any]]]:
    systems = common.systems(options)
    if options.device == "cpu" and options.family == "rnn":
        small = {"encoder_embed_dim": 32, "encoder_hidden_size": 32}
        small |= {"decoder_embed_dim": 32, "decoder_hidden_size": 32, "decoder_out_embed_dim": 32}
        systems = {name: (arch, {**chosen, **small}) for name, (arch, chosen) in systems.items()}
    return systems


def _ratio_rows(
    what: str, seconds: dict[str, list[float]], memory: dict[str, float], invert: bool
) -> Iterator[Row]:
    for name, (median, (low, middle, high)) in common.compare(seconds, invert).items():
        mib = f"{memory[name]:.0f}" if name in memory else "-"
        ratio = f"{middle:.3f} ({low:.3f} - {high:.3f})"
        yield (what, name, f"{median:.1f}", ratio, mib)


def train_in_half(args: argparse.Namespace) -> Iterator[Row]:
    """Train a small model of each system in half precision and in float32, and compare losses."""
    updates = 20 if args.cpu else 300
    chosen = list(half.systems())[:: 9 if args.cpu else 1]
    precisions = ["fp16"] if args.cpu else ["fp16", "bf16"]
    cells = [(name, precision) for precision in precisions for name in chosen]

    def train(cell: tuple[str, str]) -> Row:
        name, precision = cell
        what, started = f"{updates} updates, {precision} and fp32", time.monotonic()
        command = [sys.executable, ROOT / "benchmarks" / "half.py", "--systems", name]
        command += ["--precision", precision, "--updates", updates]
        command += ["--device", "cpu" if args.cpu else "cuda"]
        try:
            done = _call([*map(str, command)])
        except subprocess.TimeoutExpired:
            return (what, name, "-", "not run: out of time")
        said = (done.stdout or done.stderr).strip().splitlines()[-1].split(" | ")[-1]
        said = said if done.stdout else f"FAILED: {said[:120]}"
        return (what, name, f"{time.monotonic() - started:.0f} s", said)

    with ThreadPoolExecutor(1 if args.cpu else args.jobs) as pool:
        yield from pool.map(train, cells)


def train_from_command_line(args: argparse.Namespace, work: Path) -> Iterator[Row]:
    """Train small models with the command ``fairseq-train``, in half precision on a GPU."""
    updates = 5 if args.cpu else 100

    def train(training: tuple[str, str]) -> Row:
        arch, precision = training
        started = time.monotonic()
        options = ["--no-save", "--cpu" if args.cpu else precision]
        done = _call(_training(work, arch, updates, *options))
        steps = [
            line.split(" | ")[-1] for line in done.stdout.splitlines() if "train_inner" in line
        ]
        losses = [float(json.loads(step)["total_loss"]) for step in steps]
        if done.returncode or not losses or not all(map(math.isfinite, losses)):
            said = f"FAILED: {(done.stdout + done.stderr).strip().splitlines()[-1][:120]}"
        else:
            said = f"finite, {losses[0]:.2f} to {losses[-1]:.2f}"
        what = f"fairseq-train {options[-1]}, {updates} updates"
        return (what, arch, f"{time.monotonic() - started:.0f} s", said)

    with ThreadPoolExecutor(1 if args.cpu else args.jobs) as pool:
        yield from pool.map(train, TRAININGS[: 1 if args.cpu else None])


def _training(work: Path, arch: str, updates: int, *options: Any) -> list[str]:
    """Return the command to train a small model."""
    return _command(
        "fairseq_cli.train:cli_main", work / "bin", "--user-dir", ROOT / "syncattn_fairseq",
        "--task", "translation_with_syntax", "--arch", arch,
        "--criterion", "label_smoothed_cross_entropy_with_syntax", "--label-smoothing", 0.1,
        "--optimizer", "adam", "--lr", 0.003, "--adam-betas", "(0.9, 0.98)",
        "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 100, "--clip-norm", 1,
        "--max-tokens", 1024, "--share-all-embeddings", "--seed", 1, "--max-update", updates,
        "--log-format", "json", "--log-interval", 1,
        *(SMALL_RNN if arch.startswith("rnn") else SMALL), *options,
    )  # fmt: skip


def prepare_corpus(work: Path) -> Iterator[Row]:
    """Generate and binarise a small parsed corpus from the built-in grammar."""
    words, pieces, data = work / "words", work / "pieces", work / "bin"
    splits = [f"{split}.{side}" for split in ("train", "valid", "test") for side in ("en", "de")]
    sizes = ("--train", 2000, "--valid", 50, "--test", 50)
    _run("syncattn_lab.recipes.generate:main", words, *sizes)
    pieces.mkdir()
    texts = [words / name for name in splits]
    model = pieces / "bpe"
    _run(
        "syncattn_fairseq.cli.bpe:main", "learn", "--vocab-size", 1000, "--model", model,
        "--input", *texts[:2],
    )  # fmt: skip
    _run(
        "syncattn_fairseq.cli.bpe:main", "apply", "--model", f"{model}.model",
        "--input", *texts, "--output", *(pieces / name for name in splits),
    )  # fmt: skip
    options: list[Any] = []
    for split in ("train", "valid", "test"):
        options += [f"--{split}pref", pieces / split, f"--{split}heads", words / split]
    _run(
        "syncattn_fairseq.cli.preprocess:main", "-s", "en", "-t", "de", "--joined-dictionary",
        "--destdir", data, *options,
    )  # fmt: skip
    yield from ()


def _command(entry: str, *arguments: Any) -> list[str]:
    """Return a command line to call the function of a command that may not be on the path."""
    module, function = entry.split(":")
    name = f"import sys; from {module} import {function}; sys.exit({function}())"
    return [sys.executable, "-c", name, *map(str, arguments)]


def _call(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command, from any folder, until its end or the time limit."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": path, **environment}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=LIMIT.left(),
    )


def _run(entry: str, *arguments: Any) -> None:
    _check(_call(_command(entry, *arguments)))


def _check(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-200:])


def parse_text(args: argparse.Namespace, work: Path) -> Iterator[Row]:
    """Parse a text with Stanza on the GPU and on the CPU, and compare the heads."""
    what = "syncattn-parse"
    if importlib.util.find_spec("stanza") is None:
        yield (what, "stanza:en", "-", "not run: Stanza is not installed")
        return
    models = args.stanza_dir or work / "stanza"
    if not args.stanza_dir:
        from tests.stanza_models import train_stanza_models

        models.mkdir()
        with contextlib.redirect_stdout(None):
            train_stanza_models(models, "en")
    text = work / "words" / "train.en"
    outputs = {}
    for device in ["cpu"] if args.cpu else ["cuda", "cpu"]:
        outputs[device] = work / f"parsed-{device}"
        started = time.monotonic()
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
        command = _command(
            "syncattn_fairseq.cli.parse:main", "--lang", "en", "--stanza-dir", models,
            "--input", text, "--output", outputs[device],
        )  # fmt: skip
        done = _call(command, **hidden)
        seconds = time.monotonic() - started
        said = "done" if not done.returncode else f"FAILED: {done.stderr.strip()[-120:]}"
        if device == "cpu" and len(outputs) == 2 and not done.returncode:
            said = compare_heads(*outputs.values())
        yield (what, f"stanza:en, {device}", f"{seconds:.0f} s", said)


def compare_heads(of_gpu: Path, of_cpu: Path) -> str:
    """Report how many dependency heads differ between two files; a few may, by rounding."""
    if not of_gpu.exists():
        return "FAILED: no heads from the GPU to compare with"
    ours, theirs = (path.read_text().replace("\n", " ; ").split() for path in (of_gpu, of_cpu))
    if len(ours) != len(theirs):
        return f"FAILED: {len(theirs)} heads, but {len(ours)} from the GPU"
    differ = sum(a != b for a, b in zip(ours, theirs, strict=True))
    failed = differ > MOST_DIFFERENT * len(theirs)
    return f"{'FAILED: ' * failed}{differ} heads differ from the GPU's"


def translate_exported(args: argparse.Namespace, work: Path) -> Iterator[Row]:
    """Train SyncAttn, export the model to CTranslate2, and translate on the device."""
    what = "CTranslate2"
    if importlib.util.find_spec("ctranslate2") is None:
        yield (what, "-", "-", "not run: ctranslate2 is not installed")
        return
    import ctranslate2

    saving = ["--save-dir", work / "saved", "--no-epoch-checkpoints", *["--cpu"] * args.cpu]
    updates = 5 if args.cpu else 200
    training = _training(work, "transformer_syncattn", updates, *saving)
    _check(_call(training))
    _run(
        "syncattn_fairseq.cli.export:main", "--path", work / "saved" / "checkpoint_last.pt",
        "--data-bin", work / "bin", "--format", "ctranslate2", "--output", work / "exported",
        "--subwords", work / "pieces" / "bpe.model",
    )  # fmt: skip
    device = "cpu" if args.cpu else "cuda"
    lines = [line.split() for line in (work / "pieces" / "test.en").read_text().splitlines()]
    outputs = {}
    for kind in ["float32"] if args.cpu else ["float32", "float16", "int8_float16"]:
        translator = ctranslate2.Translator(
            str(work / "exported"), device=device, compute_type=kind
        )
        translator.translate_batch(lines[:32], beam_size=5)
        started = time.monotonic()
        results = translator.translate_batch(lines, beam_size=5, max_batch_size=100)
        seconds = time.monotonic() - started
        outputs[kind] = [" ".join(result.hypotheses[0]) for result in results]
        same = sum(a == b for a, b in zip(outputs["float32"], outputs[kind], strict=True))
        said = f"{len(lines) / seconds:.0f} sentences/s, {same} of {len(lines)} as in float32"
        yield (what, kind, f"{seconds:.2f} s", said)


def attempt(name: str, section: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows of a check; an error becomes a row, so that later checks still run."""
    if LIMIT.is_over():
        yield (name, "-", "-", "not run: out of time")
        return
    try:
        yield from section
    except subprocess.TimeoutExpired:
        yield (name, "-", "-", "not run to the end: out of time")
    except Exception as error:
        traceback.print_exc()
        said = " ".join(f"{type(error).__name__}: {error}".split())
        yield (name, "-", "-", f"FAILED: {said[:200]}")


def main() -> None:
    """Run all checks, and write their rows as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="a smaller run, on a CPU")
    parser.add_argument("--output", type=Path, default=Path("gpu.md"), help="the table (gpu.md)")
    parser.add_argument("--jobs", type=int, default=8, help="trainings at a time (8)")
    parser.add_argument(
        "--stanza-dir", help="Stanza's models for the parsing check (small ones, trained here)"
    )
    parser.add_argument(
        "--data", type=Path, help="a binarised corpus for 4,000 updates (a generated one)"
    )
    parser.add_argument(
        "--sections", nargs="+", help="only these, by how their names begin, such as graphs (all)"
    )
    args = parser.parse_args()
    if not args.cpu and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here; --cpu makes a smaller run without one")
    torch.set_num_threads(1 if args.cpu else 2)
    if not args.cpu:
        LIMIT.begin()
    name = "CPU" if args.cpu else torch.cuda.get_device_name()
    title = f"{name}, Python {platform.python_version()}, torch {torch.__version__}"
    print(title, flush=True)
    columns = ("what", "system", "ms or s", "ratio or outcome", "MiB", "kernels of an update")
    written, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder, args.output.open("w") as table:

        def write(*cells: str) -> None:
            row = cells + ("",) * (len(columns) - len(cells))
            print("| " + " | ".join(row) + " |", file=table, flush=True)

        print(title, file=table, end="\n\n")
        write(*columns)
        write(*("---",) * len(columns))
        work = Path(folder)
        settings = SMALL_SETTINGS if args.cpu else SETTINGS
        sections: dict[str, Iterator[Row]] = {
            "graphs, losses": compare_graphs(args),
            "graphs, speed": try_graphs(args, "speed"),
            "corpus": prepare_corpus(work),
            "graphs, training": try_graphs(args, "training", "--data", args.data or work / "bin"),
            "losses": compare_losses(args),
            **{f"update, {setting}": measure_updates(args, setting) for setting in settings},
            **{f"decoding, {p}": measure_decoding(args, p) for p in ("fp32", "fp16")},
            "trainings": train_from_command_line(args, work),
            "parsing": parse_text(args, work),
            "exported model": translate_exported(args, work),
            "half precision": train_in_half(args),
        }
        chosen = args.sections or [*sections]
        for name, section in sections.items():
            if not any(name.startswith(begin) for begin in ("corpus", *chosen)):
                continue
            for row in attempt(name, section):
                write(*row)
                print(" | ".join(row), flush=True)
                written += 1
                failed += any("FAILED" in cell for cell in row)
    print(f"{written} rows in {args.output}, {failed} failed; {time.monotonic() - STARTED:.0f} s")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
