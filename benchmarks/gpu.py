"""Check all that needs a GPU in one run: speed, memory, half precision, parsing, exported models.

``bash benchmarks/gpu.sh`` installs and runs it, in under ten minutes, and writes one Markdown
table; ``--cpu`` makes a smaller run on a CPU. The table also names the checks that could not run.
"""

from __future__ import annotations

import argparse
import contextlib
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import common, decode, train_step  # noqa: E402

#: Architectures to train for some updates, with options so that all kinds of heads are used.
TRAININGS = {
    "syntax_transformer": [],
    "transformer_dbsa": [],
    "transformer_syncattn": [],
    "transformer_syncattn, softmax": ["--sync-backward=softmax"],
    "transformer_pascal": ["--parent-ignoring=0.3"],
    "transformer_lisa": ["--src-dep-weight=1"],
    "transformer_lpsi, MSE": ["--sync-mse-weight=0.01"],
    "transformer_lpsi, rank": ["--sync-rank-weight=0.01"],
    "transformer_local_attn": [],
    "transformer_sh": [],
    "syntax_transformer, tree window": ["--cross-attention-tree-window=4"],
    "syntax_transformer, supervised gate": ["--supervised-gate-layers=1,2"],
    "syntax_transformer, relative depth": ["--relative-depth-layers=1,2"],
    "rnn_global": [],
    "rnn_local": [],
    "rnn_flexible": [],
    "rnn_syntax_directed": [],
    "rnn_syntax_directed_double": [],
}
SMALL = ["--encoder-layers=2", "--decoder-layers=2", "--encoder-embed-dim=128"]
SMALL += ["--encoder-ffn-embed-dim=256", "--encoder-attention-heads=4"]
SMALL += ["--decoder-attention-heads=4"]
SMALL_RNN = ["--encoder-embed-dim=128", "--encoder-hidden-size=128"]
SMALL_RNN += ["--decoder-embed-dim=128", "--decoder-hidden-size=128"]

#: The largest share of heads that may differ between two devices.
MOST_DIFFERENT = 0.001

Row = tuple[str, ...]


def measure_updates(args: argparse.Namespace) -> Iterator[Row]:
    """Measure time and memory of an update of every architecture and size against fairseq's."""
    sizes = ["_tiny"] if args.cpu else ["_iwslt_de_en", ""]
    precisions = ["fp32"] if args.cpu else list(common.PRECISIONS)
    for family in common.FAMILIES:
        for size in sizes if family == "transformer" else sizes[:1]:
            for precision in precisions if family == "transformer" else precisions[:1]:
                options = _options(args, family=family, size=size, precision=precision)
                task, device = common.make_task(options.vocabulary), torch.device(options.device)
                tokens = 256 if args.cpu else 4096
                batches = [common.make_batch(task, tokens, device, seed=s) for s in range(4)]
                updates = {
                    name: train_step.make_update(arch, chosen, options, task, batches)
                    for name, (arch, chosen) in _systems(options).items()
                }
                memory = common.measure_memory(updates, device)
                seconds = common.interleaved(updates, options.rounds, device)
                yield from _ratio_rows("update", options, seconds, memory)
                del updates
                if device.type == "cuda":
                    torch.cuda.empty_cache()


def measure_decoding(args: argparse.Namespace) -> Iterator[Row]:
    """Measure the beam search of every architecture against fairseq's."""
    options = _options(args, size="_tiny" if args.cpu else "_iwslt_de_en")
    options.batch_size, options.beam, options.length = (4, 2, 5) if args.cpu else (32, 4, 25)
    options.rounds = 3 if args.cpu else 5
    task, device = common.make_task(options.vocabulary), torch.device(options.device)
    decoders = {
        name: decode.make_decoder(arch, chosen, options, task)
        for name, (arch, chosen) in _systems(options).items()
    }
    seconds = common.interleaved(decoders, options.rounds, device, warmup=1)
    yield from _ratio_rows("sentences per second", options, seconds, {}, invert=True)


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
    what: str,
    options: argparse.Namespace,
    seconds: dict[str, list[float]],
    memory: dict[str, float],
    invert: bool = False,
) -> Iterator[Row]:
    size = {"": "base", "_iwslt_de_en": "512/1024", "_tiny": "tiny"}[options.size]
    size = size if options.family == "transformer" else "620/1000"
    for name, (median, (low, middle, high)) in common.compare(seconds, invert).items():
        mib = f"{memory[name]:.0f}" if name in memory else "-"
        ratio = f"{middle:.3f} ({low:.3f} - {high:.3f})"
        yield (f"{what}, {size}, {options.precision}", name, f"{median:.1f}", ratio, mib)


def train_all(args: argparse.Namespace, work: Path) -> Iterator[Row]:
    """Train every architecture for some updates in half precision; losses must stay finite."""
    updates = 5 if args.cpu else 200
    precisions = ["fp32"] if args.cpu else ["fp16", "bf16"]
    chosen = list(TRAININGS)[:: 4 if args.cpu else 1]
    cells = [(name, precision) for precision in precisions for name in chosen]

    def train(cell: tuple[str, str]) -> Row:
        name, precision = cell
        log = work / f"{name}-{precision}.log"
        options = ["--no-save", "--cpu" if args.cpu else f"--{precision}"]
        started = time.monotonic()
        with log.open("w") as file:
            status = subprocess.run(
                _training(work, name, updates, *options),
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            ).returncode
        lines = (line.split(" | train_inner | ") for line in log.read_text().splitlines())
        steps = [json.loads(parts[1]) for parts in lines if len(parts) == 2]
        losses = [float(step["total_loss"]) for step in steps]
        skipped = updates - len(losses)
        if status or not losses:
            said = f"FAILED: {log.read_text().splitlines()[-1][:120]}"
        elif not all(map(math.isfinite, losses)):
            said = f"NOT FINITE after {[math.isfinite(x) for x in losses].index(False)} updates"
        else:
            said = f"finite, {losses[0]:.2f} to {losses[-1]:.2f}"
            said += f", {skipped} not logged" if skipped else ""
        return (
            f"{updates} updates, {precision}",
            name,
            f"{time.monotonic() - started:.0f} s",
            said,
        )

    with ThreadPoolExecutor(1 if args.cpu else args.jobs) as pool:
        yield from pool.map(train, cells)


def _training(work: Path, name: str, updates: int, *options: Any) -> list[str]:
    """Return the command that trains a small model of ``TRAININGS``."""
    arch = name.split(",")[0]
    return _command(
        "fairseq_cli.train:cli_main", work / "bin", "--user-dir", ROOT / "syncattn_fairseq",
        "--task", "translation_with_syntax", "--arch", arch,
        "--criterion", "label_smoothed_cross_entropy_with_syntax", "--label-smoothing", 0.1,
        "--optimizer", "adam", "--lr", 0.003, "--adam-betas", "(0.9, 0.98)",
        "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 100, "--clip-norm", 1,
        "--max-tokens", 1024, "--share-all-embeddings", "--seed", 1, "--max-update", updates,
        "--log-format", "json", "--log-interval", 1,
        *(SMALL_RNN if arch.startswith("rnn") else SMALL), *TRAININGS[name], *options,
    )  # fmt: skip


def prepare_corpus(work: Path) -> None:
    """Generate and binarise a small corpus from the built-in grammar, with heads and labels."""
    words, pieces, data = work / "words", work / "pieces", work / "bin"
    splits = [f"{split}.{side}" for split in ("train", "valid", "test") for side in ("en", "de")]
    _run("syncattn_fairseq.cli.corpus:main", words, "--train", 2000, "--valid", 50, "--test", 50)
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


def _command(entry: str, *arguments: Any) -> list[str]:
    """Return a command line that calls a command's function: it may not be on the path."""
    module, function = entry.split(":")
    name = f"import sys; from {module} import {function}; sys.exit({function}())"
    return [sys.executable, "-c", name, *map(str, arguments)]


def _run(entry: str, *arguments: Any) -> None:
    _check(subprocess.run(_command(entry, *arguments), capture_output=True, text=True))


def _check(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-200:])


def parse_text(args: argparse.Namespace, work: Path) -> Iterator[Row]:
    """Parse with Stanza on the device and on the CPU; the heads must be the same."""
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
        done = subprocess.run(
            _command(
                "syncattn_fairseq.cli.parse:main", "--lang", "en", "--stanza-dir", models,
                "--input", text, "--output", outputs[device],
            ),
            capture_output=True,
            text=True,
            env={**os.environ, **hidden},
        )  # fmt: skip
        seconds = time.monotonic() - started
        said = "done" if not done.returncode else f"FAILED: {done.stderr.strip()[-120:]}"
        if device == "cpu" and len(outputs) == 2 and not done.returncode:
            said = compare_heads(*outputs.values())
        yield (what, f"stanza:en, {device}", f"{seconds:.0f} s", said)


def compare_heads(of_gpu: Path, of_cpu: Path) -> str:
    """Say how many heads of two files differ; where two are as good, rounding may decide."""
    if not of_gpu.exists():
        return "FAILED: no heads from the GPU to compare with"
    ours, theirs = (path.read_text().replace("\n", " ; ").split() for path in (of_gpu, of_cpu))
    if len(ours) != len(theirs):
        return f"FAILED: {len(theirs)} heads, but {len(ours)} from the GPU"
    differ = sum(a != b for a, b in zip(ours, theirs, strict=True))
    failed = differ > MOST_DIFFERENT * len(theirs)
    return f"{'FAILED: ' * failed}{differ} heads differ from the GPU's"


def translate_exported(args: argparse.Namespace, work: Path) -> Iterator[Row]:
    """Train SyncAttn, export it to CTranslate2, and decode with it on the device."""
    what = "CTranslate2"
    if importlib.util.find_spec("ctranslate2") is None:
        yield (what, "-", "-", "not run: ctranslate2 is not installed")
        return
    import ctranslate2

    saving = ["--save-dir", work / "saved", "--no-epoch-checkpoints", *["--cpu"] * args.cpu]
    updates = 5 if args.cpu else 200
    training = _training(work, "transformer_syncattn", updates, *saving)
    _check(subprocess.run(training, capture_output=True, text=True))
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
    """Yield the rows of a section; an error becomes one more row, so that the others still run."""
    try:
        yield from section
    except Exception as error:
        traceback.print_exc()
        said = " ".join(f"{type(error).__name__}: {error}".split())
        yield (name, "-", "-", f"FAILED: {said[:200]}")


def main() -> None:
    """Run all checks and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="a smaller run, on a CPU")
    parser.add_argument("--output", type=Path, default=Path("gpu.md"), help="the table (gpu.md)")
    parser.add_argument("--jobs", type=int, default=8, help="trainings at a time (8)")
    parser.add_argument(
        "--stanza-dir", help="Stanza's models for the parsing check (small ones, trained here)"
    )
    args = parser.parse_args()
    if not args.cpu and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here; --cpu makes a smaller run without one")
    torch.set_num_threads(2)
    started = time.monotonic()
    name = "CPU" if args.cpu else torch.cuda.get_device_name()
    title = f"{name}, Python {platform.python_version()}, torch {torch.__version__}"
    print(title, flush=True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        prepare_corpus(work)
        sections: dict[str, Iterator[Row]] = {
            "updates": measure_updates(args),
            "decoding": measure_decoding(args),
            "trainings": train_all(args, work),
            "parsing": parse_text(args, work),
            "exported model": translate_exported(args, work),
        }
        for name, section in sections.items():
            for row in attempt(name, section):
                rows.append(row)
                print(" | ".join(row), flush=True)
    columns = ("what", "system", "ms or s", "ratio or outcome", "MiB")
    table = [columns, ("---",) * len(columns)]
    table += [row + ("",) * (len(columns) - len(row)) for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in table]
    args.output.write_text("\n".join([title, "", *lines]) + "\n")
    failed = [row for row in rows if any("FAILED" in cell or "NOT FINITE" in cell for cell in row)]
    print(f"{len(rows)} rows in {args.output}, {len(failed)} failed; "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
