"""Models and batches for the benchmarks: random text with random trees, of realistic lengths."""

import argparse
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary, data_utils
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

import syncattn_fairseq.plugin  # noqa: F401  (registers the models)
from syncattn_fairseq.functional import tree_distances

#: The systems to compare, fairseq's own model first. It is there twice, to show how much of a ratio
#: is noise. "tied": with both losses that tie distances.
FAMILIES = {
    "transformer": [
        "transformer",
        "transformer again",
        "syntax_transformer",
        "transformer_dbsa",
        "transformer_syncattn",
        "transformer_lpsi",
        "transformer_lpsi tied",
        "transformer_local_attn",
        "transformer_pascal",
        "transformer_lisa",
        "transformer_sh",
    ],
    "rnn": [
        "lstm",
        "lstm again",
        "rnn_global",
        "rnn_local",
        "rnn_flexible",
        "rnn_syntax_directed",
        "rnn_syntax_directed_double",
    ],
}
#: Kinds of heads and positions, as options of a Transformer without syntax.
KINDS: dict[str, dict[str, Any]] = {
    "forget gate": {"forget_gate_layers": "1,2"},
    "distance heads": {"distance_bias_layers": "1,2"},
    "DASA": {"dasa_layers": "1,2"},
    "rotary": {"positions": "rotary"},
    "ALiBi": {"positions": "alibi"},
    "T5's bias": {"positions": "bias"},
}
FAMILIES["kinds"] = ["transformer", "transformer again", *KINDS]

#: Sizes that no architecture of fairseq has: layers on each side, width, and width inside.
SIZES = {"quickstart": (2, 128, 256), "small": (3, 256, 1024)}

#: The type of a model's parameters, as with fairseq's --fp16 and --bf16.
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make an argument parser with the options that all benchmarks share."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--family", default="transformer", choices=FAMILIES)
    made.add_argument(
        "--size",
        default="_iwslt_de_en",
        choices=["", "_iwslt_de_en", "_tiny", *SIZES],
        help="size of Transformers: that of an architecture, quickstart (2 + 2 layers, 128/256) or "
        "small (3 + 3, 256/1024); RNNs have the paper's 620/1000",
    )
    made.add_argument("--vocabulary", type=int, default=10000)
    made.add_argument("--rounds", type=int, default=20)
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--precision", default="fp32", choices=PRECISIONS)
    made.add_argument(
        "--systems",
        nargs="+",
        choices=[name for family in FAMILIES.values() for name in family],
        help="systems of the family to compare with fairseq's own (all)",
    )
    return made


def systems(args: argparse.Namespace) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the architecture and options of each system to compare, fairseq's own first."""
    names = FAMILIES[args.family]
    chosen = [name for name in names if name in (args.systems or names) or name == names[0]]
    if args.family != "rnn":
        size = args.size if args.size not in SIZES else ""
        found = {}
        for name in chosen:
            arch = "syntax_transformer" if name in KINDS else name.split()[0]
            options = options_of_size(args.size) | KINDS.get(name, {})
            if name.endswith(" tied"):
                last = options.get("decoder_layers", 2 if size == "_tiny" else 6)
                options["distance_sync_layers"] = f"{last - 1},{last}"
            found[name] = arch + size, options
        return found
    sizes = {
        "encoder_embed_dim": 620,
        "encoder_hidden_size": 1000,
        "decoder_embed_dim": 620,
        "decoder_hidden_size": 1000,
    }
    lstm = {"decoder_out_embed_dim": 620, "encoder_bidirectional": True, "criterion": None}
    return {
        name: (name.removesuffix(" again"), sizes | (lstm if name.startswith("lstm") else {}))
        for name in chosen
    }


def options_of_size(size: str) -> dict[str, Any]:
    """Return the model options of a size in `SIZES`; none for any other size.

    Other sizes, such as ``_tiny``, are part of the architecture's name.
    """
    if size not in SIZES:
        return {}
    layers, width, inner = SIZES[size]
    options: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        options |= {f"{side}_layers": layers, f"{side}_embed_dim": width}
        options |= {f"{side}_ffn_embed_dim": inner, f"{side}_attention_heads": 4}
    return options


def describe(args: argparse.Namespace) -> str:
    """Format the models' family and size, and the hardware, in one line."""
    size = "620/1000" if args.family == "rnn" else args.size or "base"
    return f"{args.family} {size}, {hardware(args)}"


def hardware(args: argparse.Namespace) -> str:
    """Return the GPU's name, or ``CPU`` with the number of threads."""
    on_gpu = torch.device(args.device).type == "cuda"
    return torch.cuda.get_device_name() if on_gpu else f"CPU, {args.threads} threads"


def make_task(vocabulary: int) -> Any:
    """Make a translation task without data, with one dictionary for both sides and 40 labels."""
    dictionary = Dictionary()
    for i in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(str(i))
    labels = Dictionary()
    for i in range(40):
        labels.add_symbol(str(i))
    return SimpleNamespace(
        source_dictionary=dictionary, target_dictionary=dictionary, source_label_dictionary=labels
    )


def make_model(arch: str, task: Any, device: torch.device, seed: int = 1, **options: Any) -> Any:
    """Build a model of an architecture; options have the names of the command line.

    Args:
        arch: the architecture's name.
        task: the task, which has the dictionaries.
        device: the device of the model.
        seed: the seed of the first weights.
    """
    args = Namespace(arch=arch, share_all_embeddings=True, **options)
    ARCH_CONFIG_REGISTRY[arch](args)
    torch.manual_seed(seed)
    return ARCH_MODEL_REGISTRY[arch].build_model(args, task).to(device)


def make_batch(
    task: Any, max_tokens: int, device: torch.device, mean_length: int = 26, seed: int = 1
) -> dict[str, Any]:
    """Make a batch of random sentences of similar lengths, with random dependency heads.

    Args:
        task: the task, which has the dictionaries.
        max_tokens: the largest number of tokens, with padding.
        device: the device of the batch.
        mean_length: the mean number of subwords of a sentence.
        seed: the seed of lengths, subwords and heads.
    """
    generator = torch.Generator().manual_seed(seed)
    dictionary = task.source_dictionary
    longest = mean_length + 2
    count = max_tokens // (longest + 1)
    lengths = torch.randint(mean_length - 2, longest + 1, (2, count), generator=generator)
    lengths[0] = lengths[0].sort(descending=True).values  # as fairseq's batches are
    sides = [
        [
            torch.cat(
                [
                    torch.randint(4, len(dictionary), (n,), generator=generator),
                    torch.tensor([dictionary.eos()]),
                ]
            )
            for n in side
        ]
        for side in lengths.tolist()
    ]
    pad, eos = dictionary.pad(), dictionary.eos()
    source, target = sides
    src_tokens = data_utils.collate_tokens(source, pad, left_pad=True)
    tgt_tokens = data_utils.collate_tokens(target, pad)

    def parents(tokens: torch.Tensor) -> torch.Tensor:
        words = (tokens.ne(pad) & tokens.ne(eos)).double()
        columns = words.multinomial(tokens.size(1), replacement=True, generator=generator)
        return columns.masked_fill(words == 0, -1)

    src_parents = parents(src_tokens)
    size = src_tokens.size(1)
    trees = torch.rand(src_tokens.shape, generator=generator) * torch.arange(size)
    batch: dict[str, Any] = {
        "id": torch.arange(count),
        "nsentences": count,
        "ntokens": int(lengths[1].sum()) + count,
        "net_input": {
            "src_tokens": src_tokens,
            "src_lengths": src_tokens.ne(pad).sum(1),
            "src_parent_positions": src_parents.double().masked_fill(src_parents < 0, float("nan")),
            "src_labels": 4 + src_tokens % 40,
            "src_tree_distances": tree_distances(trees.long()).short(),
            "src_gap_heights": (src_tokens % 7).double(),
            "prev_output_tokens": data_utils.collate_tokens(
                target, pad, eos, move_eos_to_beginning=True
            ),
        },
        "target": tgt_tokens,
        "src_parents": src_parents,
        "tgt_parents": parents(tgt_tokens),
    }
    return _to(batch, device)


def net_input(model: Any, batch: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a batch that a model reads; fairseq's own model reads no parses."""
    ours = hasattr(model, "source_fields")
    plain = ("src_tokens", "src_lengths", "prev_output_tokens")
    return {k: v for k, v in batch["net_input"].items() if ours or k in plain}


def _to(value: Any, device: torch.device) -> Any:
    if isinstance(value, dict):
        return {k: _to(v, device) for k, v in value.items()}
    return value.to(device) if torch.is_tensor(value) else value


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished all work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure_memory(
    actions: Mapping[str, Callable[[], object]], device: torch.device
) -> dict[str, float]:
    """Measure each action's peak memory on a GPU above what was allocated before, in MiB.

    On a CPU, where PyTorch does not count memory, the result is empty.
    """
    if device.type != "cuda":
        return {}
    used = {}
    for name, action in actions.items():
        action()  # allocates what stays, such as the optimizer's state
        synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        action()
        synchronize(device)
        used[name] = (torch.cuda.max_memory_allocated(device) - before) / 2**20
    return used


def interleaved(
    actions: Mapping[str, Callable[[], object]], rounds: int, device: torch.device, warmup: int = 2
) -> dict[str, list[float]]:
    """Time each action once per round, in rotating order; return the seconds by action.

    Args:
        actions: the actions by name.
        rounds: the number of measured rounds.
        device: the device to wait for before and after each action.
        warmup: the number of rounds before, not measured.
    """
    return interleaved_twice(actions, rounds, device, warmup)[0]


def interleaved_twice(
    actions: Mapping[str, Callable[[], object]], rounds: int, device: torch.device, warmup: int = 2
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Time actions as :func:`interleaved` does; return both elapsed and CPU seconds.

    Args:
        actions: the actions by name.
        rounds: the number of measured rounds.
        device: the device to wait for before and after each action.
        warmup: the number of rounds before, not measured.
    """
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    cpu: dict[str, list[float]] = {name: [] for name in actions}
    names = list(actions)
    for number in range(warmup + rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            synchronize(device)
            start, start_cpu = time.perf_counter(), time.process_time()
            actions[name]()
            synchronize(device)
            if number >= warmup:
                seconds[name].append(time.perf_counter() - start)
                cpu[name].append(time.process_time() - start_cpu)
    return seconds, cpu


def compare(
    seconds: dict[str, list[float]], invert: bool = False
) -> dict[str, tuple[float, tuple[float, float, float]]]:
    """Return each action's median time in ms, and quartiles of its ratio to the first action.

    Args:
        seconds: what :func:`interleaved` returned.
        invert: return ratios of speed, not of time.
    """
    baseline = next(iter(seconds.values()))
    compared = {}
    for name, values in seconds.items():
        ratios = [a / b for a, b in zip(values, baseline, strict=True)]
        low, middle, high = statistics.quantiles([1 / r for r in ratios] if invert else ratios, n=4)
        compared[name] = (1000 * statistics.median(values), (low, middle, high))
    return compared


def print_ratios(
    seconds: dict[str, list[float]], invert: bool = False, memory: dict[str, float] | None = None
) -> None:
    """Print each action's median time, and the quartiles of its ratio to the first action.

    Args:
        seconds, invert: as for :func:`compare`.
        memory: MiB of each action; None or empty: not measured.
    """
    unit = f"{'MiB':>9}" if memory else ""
    print(f"{'model':34}{'ms':>9}{'ratio':>9}   quartiles of the ratio{unit}")
    for name, (median, (low, middle, high)) in compare(seconds, invert).items():
        mib = f"{memory[name]:9.0f}" if memory else ""
        print(f"{name:34}{median:9.1f}{middle:9.3f}   {low:.3f} - {high:.3f}         {mib}")
