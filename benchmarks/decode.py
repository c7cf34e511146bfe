"""Measure sentences per second of beam search against fairseq's own model of the same size.

All models decode the same sentences to the same lengths, in turns, in one process. Usage:
``python benchmarks/decode.py [--family rnn] [--batch-size 32] ...``.

``--exports`` compares a DBSA model with random weights in fairseq and in CTranslate2. ``--path
CHECKPOINT --data-bin DIR --subwords FILE --text FILE --references FILE`` does so with a trained
model, and counts the translations that are the same as fairseq's. Both measure CPU seconds, which
depend less on what else the machine does. Only ``fairseq-generate``, which translates the test set
of the data in its own process, measures the elapsed seconds of its search, and prints them.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.sequence_generator import SequenceGenerator
from omegaconf import OmegaConf
from sacrebleu.metrics.bleu import BLEU

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import syncattn_fairseq  # noqa: E402
from benchmarks import common  # noqa: E402
from syncattn_fairseq.export import export  # noqa: E402
from syncattn_fairseq.export.ctranslate2_format import CTranslate2Format  # noqa: E402
from syncattn_fairseq.export.fold import (  # noqa: E402
    FoldedModel,
    fold,
    list_transformer_options,
)
from syncattn_fairseq.inference import load  # noqa: E402
from syncattn_fairseq.inference.exported import load_ctranslate2  # noqa: E402
from syncattn_fairseq.tasks.translating import sharing_sources  # noqa: E402


def make_decoder(
    arch: str, options: dict[str, Any], args: argparse.Namespace, task: Any
) -> Callable[[], None]:
    """Return a function that decodes one batch by beam search with a new model.

    Args:
        arch: the architecture's name.
        options: the options of the model.
        args: the command line: device, precision, beam, length and number of sentences.
        task: the task, which has the dictionaries.
    """
    device = torch.device(args.device)
    dtype = common.PRECISIONS[args.precision]
    model = common.make_model(arch, task, device, **options).to(dtype).eval()
    model.prepare_for_inference_(OmegaConf.create({"generation": {"print_alignment": None}}))
    # Untrained models end sentences anywhere: all hypotheses get the same, fixed length.
    generator = SequenceGenerator(
        [model],
        task.target_dictionary,
        beam_size=args.beam,
        max_len_b=args.length,
        min_len=args.length,
    )
    tokens = args.batch_size * (args.length + 3)
    sample = common.make_batch(task, tokens, device, mean_length=args.length)
    sample["net_input"] = common.net_input(model, sample)

    beam_size = args.beam if hasattr(model, "source_fields") else 1  # as our task does

    def decode() -> None:
        with sharing_sources([model], beam_size):
            hypotheses = generator.generate([model], sample)
        assert len(hypotheses) == args.batch_size

    return decode


def make_exports(
    args: argparse.Namespace, task: Any, folder: Path
) -> dict[str, Callable[[], None]]:
    """Return functions that decode a batch: with a random model, and with each of its exports."""
    arch, device = "transformer_dbsa" + args.size, torch.device("cpu")
    options = Namespace(arch=arch, share_all_embeddings=True)
    ARCH_CONFIG_REGISTRY[arch](options)
    model = common.make_model(arch, task, device).eval()
    plain = FoldedModel(
        name=arch,
        original=model,
        model=fold(model, options, task),
        options=list_transformer_options(model, options),
        task=task,
        source="en",
        target="de",
        labels=None,
        alignment_layer=1,
        subwords=None,
        segmenters=None,
        preparations={},
        history=[],
    )
    decoders = {"fairseq, as trained": make_decoder(arch, {}, args, task)}
    tokens = args.batch_size * (args.length + 3)
    batch = common.make_batch(task, tokens, device, mean_length=args.length)
    words = task.source_dictionary.symbols
    sources = [
        [words[i] for i in row if i > 2] for row in batch["net_input"]["src_tokens"].tolist()
    ]
    for weights in ("float32", "int8"):
        place = folder / weights
        place.mkdir()
        CTranslate2Format().write(plain, place, None if weights == "float32" else weights)
        translator = load_ctranslate2().Translator(str(place), intra_threads=args.threads)

        def decode(translator: Any = translator) -> None:
            found = translator.translate_batch(
                sources,
                beam_size=args.beam,
                min_decoding_length=args.length,
                max_decoding_length=args.length,
            )
            assert len(found) == args.batch_size

        decoders[f"CTranslate2, {weights}"] = decode
    return decoders


def compare_trained(args: argparse.Namespace) -> None:
    """Translate a text with a trained model and with each of its exports; print a table."""
    sentences = Path(args.text).read_text(encoding="utf-8").splitlines()
    references = [Path(args.references).read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        original = load(args.path, args.data_bin, args.subwords, device="cpu")
        models = {"fairseq, as trained": original}
        for name, form, weights in (
            ("fairseq, folded", "fairseq", None),
            ("CTranslate2, float32", "ctranslate2", None),
            ("CTranslate2, int8", "ctranslate2", "int8"),
        ):
            place = Path(folder) / name
            export(args.path, args.data_bin, form, place, weights, [args.subwords])
            models[name] = load(place, device="cpu")
        for model in models.values():
            model.beam, model.batch_size = args.beam, args.batch_size
        translations = {name: model.translate(sentences) for name, model in models.items()}
        actions = {
            name: (lambda model=model: model.translate(sentences[: args.sentences]))
            for name, model in models.items()
        }
        seconds = interleaved_cpu(actions, args.rounds)
        generate = max(count_generate(args) for _ in range(args.rounds))
    expected = translations["fairseq, as trained"]
    print(f"{'model':24}{'sentences/s':>12}{'ratio':>8}{'same':>12}{'BLEU':>8}")
    print(f"{'fairseq-generate':24}{generate:12.1f}{1:8.2f}")
    for name, found in translations.items():
        # The fastest round of each: other work on the machine only makes rounds slower.
        speed = len(sentences[: args.sentences]) / min(seconds[name])
        same = sum(a == b for a, b in zip(found, expected, strict=True))
        bleu = BLEU(tokenize="none", force=True).corpus_score(found, references).score
        equal = f"{same} of {len(found)}"
        print(f"{name:24}{speed:12.1f}{speed / generate:8.2f}{equal:>12}{bleu:8.2f}")


def count_generate(args: argparse.Namespace) -> float:
    """Run fairseq-generate on the test set; return the sentences per second that it reports."""
    command = [sys.executable, "-m", "fairseq_cli.generate", args.data_bin, "--path", args.path]
    command += ["--user-dir", str(Path(syncattn_fairseq.__file__).parent), "--cpu"]
    command += ["--task", "translation_with_syntax", "--beam", str(args.beam)]
    command += ["--batch-size", str(args.batch_size)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(re.findall(r"([\d.]+) sentences/s", ran.stdout + ran.stderr)[-1])


def interleaved_cpu(
    actions: dict[str, Callable[[], object]], rounds: int
) -> dict[str, list[float]]:
    """Return the CPU seconds of each action in each round, after a warm-up round."""
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()
    for _ in range(rounds):
        for name, action in actions.items():
            start = time.process_time()
            action()
            seconds[name].append(time.process_time() - start)
    return seconds


def main() -> None:
    """Measure beam search of every system, and print its speed relative to fairseq's."""
    parser = common.parser(__doc__)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--exports", action="store_true", help="compare exports of a DBSA model")
    parser.add_argument("--path", help="compare exports of this checkpoint")
    parser.add_argument("--data-bin", help="its binarised corpus")
    parser.add_argument("--subwords", help="its subword model")
    parser.add_argument("--text", help="source text to translate")
    parser.add_argument("--references", help="translations of it")
    parser.add_argument("--sentences", type=int, help="time only the first N")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.path:
        compare_trained(args)
        return
    device = torch.device(args.device)
    task = common.make_task(args.vocabulary)
    if args.exports:
        with tempfile.TemporaryDirectory() as folder:
            decoders = make_exports(args, task, Path(folder))
            print(
                f"decode {args.batch_size} sentences of {args.length} tokens, beam {args.beam}, "
                f"{common.describe(args)}; CPU seconds; a ratio above 1 is faster"
            )
            common.print_ratios(interleaved_cpu(decoders, args.rounds), invert=True)
        return
    decoders = {
        name: make_decoder(arch, options, args, task)
        for name, (arch, options) in common.systems(args).items()
    }
    print(
        f"decode {args.batch_size} sentences of {args.length} tokens, beam {args.beam}, "
        f"{common.describe(args)}; a ratio above 1 is faster"
    )
    seconds = common.interleaved(decoders, args.rounds, device, warmup=1)
    common.print_ratios(seconds, invert=True)


if __name__ == "__main__":
    main()
