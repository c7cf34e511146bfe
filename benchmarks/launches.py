"""Count the kernels that a training update launches on a GPU, and the times it waits for one.

    python benchmarks/launches.py

The models run on PyTorch's ``meta`` device, whose tensors have shapes but no numbers, so it takes a
few minutes on a CPU. Forward and backward of one batch are counted, and then the whole update: with
clipping and fairseq's Adam, in each precision. An operation is one kernel; views and allocations
are none, an operation on a list of tensors is as many as its sizes take. Fused attention and
dropout are one kernel each way, as on a GPU. Where kernels are small, a GPU waits for the next
launch, and these ratios are ratios of time. RNNs launch the same kernels for every target word;
those are counted.

The exit status is 1 if a system launches more than its limit.
"""

import argparse
import contextlib
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from fairseq.optim.dynamic_loss_scaler import DynamicLossScaler
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import common, train_step  # noqa: E402
from syncattn_fairseq.base.text_tables import format_table, markdown_table  # noqa: E402
from syncattn_fairseq.models import rnn_decoder  # noqa: E402
from syncattn_fairseq.tasks.fast import fuse_optimizer  # noqa: E402

META = torch.device("meta")
#: They allocate or rename memory, and launch nothing.
FREE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
FREE |= {"_unsafe_view"}
#: How many tensors a kernel takes that works on 1, 2, 3 or 4 lists of them, and how many numbers.
TENSORS, NUMBERS = (110, 64, 48, 36), 320 * 65536
#: How many of fairseq's kernels an update of ours may launch.
UPDATE_LIMITS = {"fp32": 0.45, "bf16": 0.45, "fp16": 1.0}


@dataclass(frozen=True)
class System:
    """A Transformer whose kernel launches are counted, with a limit relative to fairseq's."""

    arch: str
    limit: float
    options: dict[str, Any] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)


TIED = {"distance_sync_layers": "5,6"}
TRANSFORMERS = {
    "Transformer": System("transformer", 1.0),
    "PASCAL": System("transformer_pascal", 1.05),
    "LISA": System("transformer_lisa", 1.08),
    "DBSA": System("transformer_dbsa", 1.08),
    "SyncAttn": System("transformer_syncattn", 1.12),
    "LPSI": System("transformer_lpsi", 1.12),
    "SynchMSE": System("transformer_lpsi", 1.20, TIED, {"sync_mse_weight": 0.01}),
    "SynchRank": System("transformer_lpsi", 1.20, TIED, {"sync_rank_weight": 0.01}),
    "local attention": System("transformer_local_attn", 1.05),
    "supervised gate": System("syntax_transformer", 1.05, {"supervised_gate_layers": "1,2"}),
    **{
        name: System("syntax_transformer", 1.24 if name == "rotary" else 1.05, options)
        for name, options in common.KINDS.items()
    },
}
#: How many kernels a recurrent decoder may launch for each target word.
RNNS = {
    "rnn_global": 44,
    "rnn_local": 65,
    "rnn_flexible": 68,
    "rnn_syntax_directed": 77,
    "rnn_local_double": 44,
    "rnn_flexible_double": 44,
    "rnn_syntax_directed_double": 44,
}


class Launches(TorchDispatchMode):
    """Counts the kernels that a GPU would be made to launch, and how often the CPU would wait.

    Operations are on meta tensors, so that nothing is computed. A wait is for a number that the
    program needs, such as by ``item``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[str] = Counter()
        self.waits = 0

    @property
    def total(self) -> int:
        """The number of launched kernels."""
        return sum(self.operations.values())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None
    ) -> Any:
        """Count the kernels of an operation, and run the operation."""
        name = func._schema.name.removeprefix("aten::")
        if name.startswith(("_foreach", "_fused")) and args[0][0].is_meta:
            lists = sum(isinstance(x, list) and len(x) > 0 for x in args[:4])
            numbers = sum(x.numel() for x in args[0])
            self.operations[name] += math.ceil(len(args[0]) / TENSORS[lists - 1])
            self.operations[name] += numbers // NUMBERS
            return None if name.endswith("_") else func(*args, **(kwargs or {}))
        if name == "_local_scalar_dense" and args[0].is_meta:
            self.waits += 1
            return True
        out = func(*args, **(kwargs or {}))
        first = out[0] if isinstance(out, tuple | list) and out else out
        if torch.is_tensor(first) and first.is_meta and not func.is_view and name not in FREE:
            self.operations[name] += 1
        return out


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
) -> Tensor:
    """Attend with a GPU's kernel for an additive mask.

    Raises:
        ValueError: a GPU would use none of its fused kernels, since the mask's layout is wrong.
    """
    if attn_mask is not None:
        if attn_mask.size(-1) > 1 and attn_mask.stride(-1) != 1:
            raise ValueError(f"a mask with strides {attn_mask.stride()}")
        attn_mask = attn_mask.expand(*query.shape[:-1], key.size(-2))
    attend = torch.ops.aten._scaled_dot_product_efficient_attention
    out: Tensor = attend(query, key, value, attn_mask, True, dropout_p, is_causal)[0]
    return out


def _drop(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop with a GPU's kernel."""
    return torch.native_dropout(x, p, True)[0] if training and p > 0 else x


class _Gru(torch.autograd.Function):
    """A GRU step as a single kernel, forward and backward, as on a GPU, with arbitrary numbers."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
        return torch.neg(state)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gates = gradient.new_empty(gradient.size(0), 3 * gradient.size(1))
        return gates, torch.empty_like(gates), torch.neg(gradient)


@contextlib.contextmanager
def counting() -> Iterator[Launches]:
    """Yield a counter of the kernels that are launched inside the context."""
    stand_ins = [
        mock.patch.object(F, "scaled_dot_product_attention", _attend),
        mock.patch.object(F, "dropout", _drop),
        mock.patch.object(rnn_decoder, "gru_step", _Gru.apply),
    ]
    with contextlib.ExitStack() as stack:
        for stand_in in stand_ins:
            stack.enter_context(stand_in)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # fairseq mixes types of masks
        yield stack.enter_context(Launches())


def count_update(
    system: System, vocabulary: int = 32000, tokens: int = 4096, precision: str = ""
) -> Launches:
    """Count the kernels of a training update, with the optimizer's if a precision is named.

    Args:
        system: the model, its options and losses.
        vocabulary: the number of subwords.
        tokens: the largest number of tokens in the batch.
        precision: a key of ``PRECISIONS``; empty: without the optimizer.
    """
    task = common.make_task(vocabulary)
    batch = common.make_batch(task, tokens, META)
    dropout = dict.fromkeys(("dropout", "attention_dropout"), 0.1)
    with META:
        model = common.make_model(system.arch, task, META, **dropout, **system.options).train()
    optimizer = None
    if precision:
        model = model.to(common.PRECISIONS[precision])
        with mock.patch("torch.cuda.current_device", return_value=None):
            optimizer = train_step.make_optimizer(model, precision, flat=True)
        if hasattr(model, "source_fields"):
            fuse_optimizer(optimizer)
    criterion = train_step.make_criterion(model, task, **system.losses)
    batch["net_input"] = common.net_input(model, batch)
    with counting() as launches:
        if optimizer is None:
            loss, sample_size, _ = criterion(model, batch)
            (loss / sample_size).backward()
            return launches
        for counts in (False, True):  # the first update makes the state
            loss, sample_size = sum(p.sum() for p in model.parameters()), 1
            if counts:
                launches.operations.clear()
                loss, sample_size, _ = criterion(model, batch)
            optimizer.backward(loss)
            optimizer.multiply_grads(1 / sample_size)
            with (
                mock.patch.object(DynamicLossScaler, "check_overflow"),
                mock.patch("torch.cuda.is_available", return_value=True),  # or norms go to the CPU
                mock.patch("torch.cuda.current_device", return_value=META),
            ):
                optimizer.clip_grad_norm(1.0)
            optimizer.step()
            optimizer.zero_grad()
    return launches


def count_step(arch: str, sentences: int = 64, words: int = 27) -> Launches:
    """Count the kernels that one more target word costs a recurrent decoder, backward included."""
    task = common.make_task(1000)
    sizes = dict.fromkeys(("encoder_hidden_size", "decoder_hidden_size"), 1000)
    with META:
        model = common.make_model(arch, task, META, **sizes).train()
        encoded = {
            "annotations": [torch.empty(sentences, words, 2000, requires_grad=True)],
            "summary": [torch.empty(sentences, 1000, requires_grad=True)],
            "padding_mask": [torch.empty(sentences, words, dtype=torch.bool)],
            "tree_distances": [],
        }
        if "syntax" in arch:
            distances = torch.empty(sentences, words, words, dtype=torch.int16)
            encoded["tree_distances"] = [distances]

    def run(length: int) -> Launches:
        target = torch.empty(sentences, length, dtype=torch.long, device=META)
        model.zero_grad()
        with counting() as launches:
            features, _ = model.decoder(target, encoded, features_only=True)
            features.sum().backward()
        return launches

    shorter, longer = run(8), run(9)
    longer.operations.subtract(shorter.operations)
    longer.waits -= shorter.waits
    return longer


def compare_transformers(count: Callable[[System], Launches]) -> tuple[list[list[str]], bool]:
    """Return a table of the Transformers' kernels, and whether all are within their limits."""
    rows = [["system", "kernels per update", "ratio", "limit", "waits"]]
    within, baseline = True, 0
    for name, system in TRANSFORMERS.items():
        launches = count(system)
        baseline = baseline or launches.total
        ratio = launches.total / baseline
        within &= ratio <= system.limit
        numbers = [f"{launches.total:,}", f"{ratio:.3f}", f"{system.limit:.2f}"]
        rows.append([name, *numbers, str(launches.waits)])
    return rows, within


def compare_updates(count: Callable[[System, str], Launches]) -> tuple[list[list[str]], bool]:
    """Return a table of whole updates' kernels, and whether all of ours are within the limits."""
    rows = [["system", *UPDATE_LIMITS]]
    baseline: list[int] = []
    within = True
    for name, system in TRANSFORMERS.items():
        totals = [count(system, precision).total for precision in UPDATE_LIMITS]
        ratios = [a / b for a, b in zip(totals, baseline or totals, strict=True)]
        if baseline:
            within &= all(r <= m for r, m in zip(ratios, UPDATE_LIMITS.values(), strict=True))
        baseline = baseline or totals
        rows.append([name, *(f"{n:,} ({r:.3f})" for n, r in zip(totals, ratios, strict=True))])
    return rows, within


def compare_rnns(count: Callable[[str], Launches]) -> tuple[list[list[str]], bool]:
    """Return a table of the RNNs' kernels, and whether all are within their limits."""
    rows = [["system", "kernels per target word", "limit", "waits"]]
    within = True
    for arch, limit in RNNS.items():
        launches = count(arch)
        within &= launches.total <= limit
        rows.append([arch, str(launches.total), str(limit), str(launches.waits)])
    return rows, within


def main() -> int:
    """Print tables of counted kernels; return 1 if a system exceeds its limit, else 0."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--markdown", action="store_true", help="print tables for a page")
    args = made.parse_args()
    tables = [
        compare_transformers(count_update),
        compare_updates(lambda system, precision: count_update(system, precision=precision)),
        compare_rnns(count_step),
    ]
    for rows, _ in tables:
        print((markdown_table if args.markdown else format_table)(rows), end="\n\n")
    return 0 if all(within for _, within in tables) else 1


if __name__ == "__main__":
    sys.exit(main())
