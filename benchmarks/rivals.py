"""Compare the time of a training update with fairseq's, and with what you might use instead.

    python benchmarks/rivals.py --size small

Every program trains a Transformer of the same size on the same batches, one at a time, in a process
of its own, since the allocator is one for a process. The batches are composed as fairseq does, and
have hundreds of shapes. The programs take turns; the table has the median and the range of each
round's speed relative to fairseq's own model, in CPU time, and the memory after the first updates,
in the middle, and at the end. fairseq's own loss must be equal to ours in all digits, except with
``--fast``. ``--updates 25 --rounds 20`` shows 516 updates.
Hugging Face's Marian needs ``transformers``, Joey NMT ``joeynmt``, Eole ``eole``; ``--python``
names an interpreter that has them beside this package. A row says so if one is missing.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

#: Layers on each side, width, width inside, vocabulary, and mean length of a sentence.
SIZES = {
    "quickstart": (2, 128, 256, 3904, 12),
    "small": (3, 256, 1024, 8000, 14),
    "iwslt": (6, 512, 1024, 10000, 26),
}
MAX_TOKENS = 1024
HEADS = 4
DROPOUT = 0.1
SMOOTHING = 0.1
#: Updates that do not count.
WARM_UP = 16
#: Sentence pairs, whose batches come in random order.
PAIRS = 40_000

Update = Callable[[], Tensor | None]


def make_batches(size: str, task: Any) -> list[dict[str, Any]]:
    """Make batches of random sentences, sorted by length and filled up to a number of tokens."""
    mean = SIZES[size][-1]
    generator = np.random.default_rng(1)
    source = generator.gamma(4, mean / 4, PAIRS).clip(1, 100).astype(int) + 1
    target = (source + generator.normal(0, 0.15 * source)).round().clip(2, 101).astype(int)
    order = np.lexsort((target, source))
    batches: list[list[int]] = [[]]
    longest = 0
    for index in order:
        longest = max(longest, source[index], target[index])
        if longest * (len(batches[-1]) + 1) > MAX_TOKENS:
            batches.append([])
            longest = max(source[index], target[index])
        batches[-1].append(index)
    generator.shuffle(batches)
    return [_make_batch(task, source[batch], target[batch], generator) for batch in batches]


def _make_batch(
    task: Any, source: np.ndarray, target: np.ndarray, generator: np.random.Generator
) -> dict[str, Any]:
    """Make a batch of sentences with so many subwords, their ends included."""
    words = task.source_dictionary
    pad, eos = words.pad(), words.eos()

    def draw(lengths: np.ndarray) -> list[Tensor]:
        drawn = [generator.integers(words.nspecial, len(words), n - 1) for n in lengths]
        return [torch.tensor([*sentence, eos]) for sentence in drawn]

    sources, targets = draw(-np.sort(-source)), draw(target)
    tokens = data_utils.collate_tokens(sources, pad, left_pad=True)
    read = data_utils.collate_tokens(targets, pad, eos, move_eos_to_beginning=True)
    return {
        "nsentences": len(source),
        "ntokens": int(target.sum()),
        "target": data_utils.collate_tokens(targets, pad),
        "net_input": {
            "src_tokens": tokens,
            "src_lengths": tokens.ne(pad).sum(1),
            "prev_output_tokens": read,
        },
    }


def make_fairseq(
    size: str, ours: bool = False, fast: bool = False, precision: str = "fp32"
) -> Update:
    """Return a function that trains fairseq's Transformer, or ours without syntax, by one update.

    Args:
        size: a key of `SIZES`.
        ours: whether to train this package's Transformer.
        fast: as with ``--fast``.
        precision: a key of ``PRECISIONS`` in ``common.py``.
    """
    from benchmarks import common, train_step
    from syncattn_fairseq.patches.returned_memory import set_allocator

    layers, width, inner, vocabulary, _ = SIZES[size]
    options: dict[str, Any] = {"dropout": DROPOUT, "attention_dropout": 0, "activation_dropout": 0}
    for side in ("encoder", "decoder"):
        options |= {f"{side}_layers": layers, f"{side}_embed_dim": width}
        options |= {f"{side}_ffn_embed_dim": inner, f"{side}_attention_heads": HEADS}
    task = common.make_task(vocabulary)
    arguments = Namespace(device="cpu", precision=precision)
    if ours:  # as the plugin does when a training begins
        set_allocator()
    arch = "syntax_transformer" if ours else "transformer"
    return train_step.make_update(
        arch, options, arguments, task, make_batches(size, task), fast=fast
    )


def make_marian(size: str) -> Update:
    """Return a function that trains Hugging Face's Marian model by one update."""
    from transformers import MarianConfig, MarianMTModel

    from benchmarks import common

    layers, width, inner, vocabulary, _ = SIZES[size]
    task = common.make_task(vocabulary)
    pad = task.target_dictionary.pad()
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", layers), ("ffn_dim", inner), ("attention_heads", HEADS))
    }
    torch.manual_seed(1)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=vocabulary,
            d_model=width,
            **sides,
            dropout=DROPOUT,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            pad_token_id=pad,
            eos_token_id=task.target_dictionary.eos(),
            decoder_start_token_id=task.target_dictionary.eos(),
            use_cache=False,
        )
    ).train()

    def loss(batch: dict[str, Any]) -> Tensor:
        words = batch["net_input"]["src_tokens"]
        out = model(
            input_ids=words,
            attention_mask=words.ne(pad).long(),
            decoder_input_ids=batch["net_input"]["prev_output_tokens"],
        )
        return torch.nn.functional.cross_entropy(
            out.logits.flatten(0, 1),
            batch["target"].flatten(),
            ignore_index=pad,
            label_smoothing=SMOOTHING,
        )

    return _with_adamw(model, loss, make_batches(size, task))


def make_joey(size: str) -> Update:
    """Return a function that trains Joey NMT's Transformer, with its optimizer, by one update."""
    from joeynmt.model import build_model

    from benchmarks import common

    layers, width, inner, vocabulary, _ = SIZES[size]
    task = common.make_task(vocabulary)
    dictionary = task.target_dictionary
    pad = dictionary.pad()

    class Vocabulary(SimpleNamespace):
        def __len__(self) -> int:
            return vocabulary

        def lookup(self, token: str) -> int:
            return int(dictionary.index(token))

    words = Vocabulary(
        pad_index=pad,
        bos_index=dictionary.bos(),
        eos_index=dictionary.eos(),
        unk_index=dictionary.unk(),
        sep_index=None,
        specials=[],
        lang_tags=[],
    )
    side = {
        "type": "transformer",
        "num_layers": layers,
        "num_heads": HEADS,
        "embeddings": {"embedding_dim": width, "scale": True, "dropout": DROPOUT},
        "hidden_size": width,
        "ff_size": inner,
        "dropout": DROPOUT,
        "layer_norm": "post",
    }
    torch.manual_seed(1)
    model = build_model(
        {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": dict(side),
            "decoder": dict(side),
        },
        words,
        words,
    ).train()
    model.loss_function = ("crossentropy", SMOOTHING)

    def loss(batch: dict[str, Any]) -> Tensor:
        net = batch["net_input"]
        target = batch["target"]
        total, *_ = model(
            return_type="loss",
            src=net["src_tokens"],
            src_mask=net["src_tokens"].ne(pad).unsqueeze(1),
            src_length=net["src_lengths"],
            trg_input=net["prev_output_tokens"],
            trg=target,
            trg_mask=target.ne(pad).unsqueeze(1),
        )
        return total / batch["ntokens"]

    return _with_adamw(model, loss, make_batches(size, task))


def make_eole(size: str) -> Update:
    """Return a function that trains Eole's Transformer by one update.

    It also has dropout inside the feed-forward network.
    """
    from eole.config.models import TransformerModelConfig
    from eole.config.training import TrainingConfig
    from eole.models.model import EncoderDecoderModel

    from benchmarks import common

    layers, width, inner, vocabulary, _ = SIZES[size]
    task = common.make_task(vocabulary)
    pad = task.target_dictionary.pad()

    class Vocabulary:
        def __len__(self) -> int:
            return vocabulary

        def __getitem__(self, token: str) -> int:  # it is only asked for padding
            return int(pad)

    torch.manual_seed(1)
    model = EncoderDecoderModel.for_training(
        TransformerModelConfig(
            layers=layers,
            hidden_size=width,
            heads=HEADS,
            transformer_ff=inner,
            word_vec_size=width,
            share_embeddings=True,
            share_decoder_embeddings=True,
            add_qkvbias=True,
            add_ffnbias=True,
            embeddings={"position_encoding_type": "SinusoidalInterleaved", "word_vec_size": width},
        ),
        {"src": Vocabulary(), "tgt": Vocabulary(), "specials": {}},
        TrainingConfig(dropout=[DROPOUT], attention_dropout=[0.0]),
        device_id=-1,
    ).train()

    def loss(batch: dict[str, Any]) -> Tensor:
        net, target = batch["net_input"], batch["target"]
        words = net["src_tokens"].flip(1)  # padding has to be on the right
        # It leaves out the last column itself.
        given = torch.cat([net["prev_output_tokens"], target[:, -1:]], 1)
        out = model(words, given, words.ne(pad).sum(1))
        return torch.nn.functional.cross_entropy(
            model.generator(out.dec_out).flatten(0, 1),
            target.flatten(),
            ignore_index=pad,
            label_smoothing=SMOOTHING,
        )

    return _with_adamw(model, loss, make_batches(size, task))


def _with_adamw(
    model: Any, loss: Callable[[dict[str, Any]], Tensor], batches: list[dict[str, Any]]
) -> Update:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    count = 0

    def update() -> Tensor:
        nonlocal count
        value = loss(batches[count % len(batches)])
        count += 1
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return value.detach()

    return update


ARMS: dict[str, Callable[[str], Update]] = {
    "fairseq": make_fairseq,
    "fairseq again": make_fairseq,
    "fairseq, --bf16": lambda size: make_fairseq(size, precision="bf16"),
    "plugin": lambda size: make_fairseq(size, ours=True),
    "plugin, --fast": lambda size: make_fairseq(size, ours=True, fast=True),
    "Hugging Face's Marian": make_marian,
    "Joey NMT": make_joey,
    "Eole": make_eole,
}
OTHERS = ("Hugging Face's Marian", "Joey NMT", "Eole")


def serve(arm: str, size: str) -> None:
    """Train for each number of updates read from standard input; print time, memory and loss."""
    torch.set_num_threads(1)
    update = ARMS[arm](size)
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.process_time(), time.perf_counter()
        for _ in range(int(line)):
            loss = update()
        cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        memory = pages * resource.getpagesize() / 2**20
        assert loss is not None
        print(cpu, wall, memory, f"{loss.item():.6f}", flush=True)


class Arm:
    """A compared program, which trains in a process of its own when asked to."""

    def __init__(self, name: str, size: str, python: str) -> None:
        self.process = subprocess.Popen(
            [python, __file__, "--arm", name, "--size", size],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.rounds: list[list[float]] = []
        assert self.process.stdout is not None
        self.works = self.process.stdout.readline() == "ready\n"

    def run(self, updates: int) -> list[float]:
        """Train for some updates; return CPU seconds, elapsed seconds, MiB and the last loss."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(updates, file=self.process.stdin, flush=True)
        return [float(number) for number in self.process.stdout.readline().split()]


def main() -> None:
    """Run the compared programs in turns, and print their times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="quickstart")
    parser.add_argument("--updates", type=int, default=10, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--python", default=sys.executable, help="interpreter of the others")
    parser.add_argument("--arm", choices=ARMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.arm:
        serve(args.arm, args.size)
        return
    arms = {
        name: Arm(name, args.size, args.python if name in OTHERS else sys.executable)
        for name in dict.fromkeys(["fairseq", *args.arms])
    }
    for name in [name for name, arm in arms.items() if not arm.works]:
        print(f"{name}: not installed, or does not work")
        del arms[name]
    first = {name: arm.run(WARM_UP)[2] for name, arm in arms.items()}
    for number in range(args.rounds):
        order = [*arms]
        shift = number % len(order)
        for name in order[shift:] + order[:shift]:
            arms[name].rounds.append(arms[name].run(args.updates))
    print(f"{args.size}: {args.rounds} rounds of {args.updates} updates, one thread, CPU time")
    print(f"{'':24}{'ms':>8}{'speed':>8}  {'range':15}{'MiB':>6}{'':12}  last loss")
    base = [taken[0] for taken in arms["fairseq"].rounds]
    for name, arm in arms.items():
        times = [taken[0] for taken in arm.rounds]
        speeds = sorted(b / t for b, t in zip(base, times, strict=True))
        middle, (*_, memory, loss) = arm.rounds[(len(times) - 1) // 2][2], arm.rounds[-1]
        print(
            f"{name:24}{1000 * statistics.median(times) / args.updates:8.1f}"
            f"{statistics.median(speeds):8.3f}  {speeds[0]:.3f} – {speeds[-1]:.3f}"
            f"{first[name]:6.0f}{middle:6.0f}{memory:6.0f}  {loss:.6f}"
        )


if __name__ == "__main__":
    main()
