"""Every system on an emulated GPU, in half precision; ``test_devices.py`` runs this file.

The device must be there before PyTorch's first backward pass: these tests need their own process.
"""

from typing import Any

import pytest
import torch
from fairseq.logging import metrics
from fairseq.logging.progress_bar import format_stat
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from benchmarks.common import PRECISIONS
from benchmarks.train_step import make_optimizer
from syncattn_fairseq.inference.forced import SIDES, ForcedDecoding
from syncattn_fairseq.tasks.fast import FusedAdam, fuse_optimizer
from tests.criterions.test_criterion import SYNC, TIED, batch, criterion
from tests.emulated_gpu import GPU_ONLY, NAME, EmulatedGpu, OnGpu, move, register
from tests.models import build
from tests.systems import SYSTEMS, WEIGHTS, no_dropout, weights_of

register()

#: Systems that draw at random in training.
DRAWN = ("ignoring", "shuffled")


def make(name: str) -> Any:
    arch, options = SYSTEMS[name]
    if "rnn" not in arch:
        options = {"activation_fn": "gelu", **options}  # half precision flips the bend of a ReLU
    return build.model(arch, noise=0.0, **no_dropout(arch), **options).train()


def train(name: str, model: Any, sample: dict[str, Any]) -> Tensor:
    torch.manual_seed(0)
    loss, _, _ = criterion(**weights_of(name))(model, sample)
    (128 * loss).backward()  # fairseq's first scale
    return loss.detach()


def numbers(x: Tensor) -> Tensor:
    return x.numbers if isinstance(x, OnGpu) else x


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_trains_validates_decodes_and_prints(name):
    # What is drawn in half precision is other numbers.
    dtype = torch.float32 if any(kind in name for kind in DRAWN) else torch.float16
    model, sample, words = make(name), batch(), build.dictionary()
    if getattr(model, "takes_lengths_on_cpu", False):
        net_input = sample["net_input"]
        net_input["lengths_on_cpu"] = net_input["src_tokens"].ne(build.PAD).sum(1).tolist()
    expected = train(name, model, sample)
    gradients = [p.grad for p in model.parameters()]
    nothing = 1e-5 * max(g.norm() for g in gradients if g is not None)
    model.zero_grad()
    names = [n for n, _ in model.named_parameters()]

    with EmulatedGpu() as gpu:
        model, sample = move(model.to(dtype)), move(sample)
        assert {numbers(p).dtype for p in model.parameters()} == {dtype}
        loss = train(name, model, sample)
        assert gpu.waits == []
        assert gpu.kernels == ({*GPU_ONLY} if "rnn" in name else set())
        rough = 5e-3 if dtype == torch.float16 else 1e-5
        assert numbers(loss).item() == pytest.approx(expected.item(), rel=rough)
        for key, p, exact in zip(names, model.parameters(), gradients, strict=True):
            assert (p.grad is None) == (exact is None), key
            if exact is None:
                continue
            found = numbers(p.grad).double().flatten()
            assert found.isfinite().all(), key
            if exact.norm() > nothing:  # that of a key's bias is 0 but for rounding
                cosine = torch.cosine_similarity(found, exact.double().flatten(), dim=0)
                assert cosine >= 0.999, f"{key}: {cosine}"

        model.eval()
        with torch.no_grad():
            valid, _, _ = criterion(**weights_of(name))(model, sample)
        assert valid.device.type == NAME and numbers(valid).isfinite()
        generator = SequenceGenerator([model], words, beam_size=2, max_len_a=0, max_len_b=4)
        hypotheses = [found[0]["tokens"] for found in generator.generate([model], sample)]
        assert all(tokens.device.type == NAME for tokens in hypotheses)
        transformer = "rnn" not in name
        _, extra = model(**sample["net_input"])
        gpu.waits.clear()
        forced = ForcedDecoding([model], sample["net_input"], hypotheses, words)
        for side in ("source", "target"):
            assert (forced.read_dependencies(side) is None) == (
                f"{SIDES[side]}_dependency" not in extra
            )
            assert bool(forced.read_distances(side)[0]) == (f"{SIDES[side]}_distances" in extra)
        layers = forced.read_links_of_layers() if transformer else {}
        assert len(layers) == (2 if transformer else 0)
        waits = [wait for wait in gpu.waits if "/syncattn_fairseq/inference/" in wait]
        # Source and target; for each layer, two sides and links, of all sentences at once.
        assert len(waits) <= 2 + 2 * 3, waits


def test_neither_losses_nor_what_is_logged_after_an_update_wait_for_the_device():
    weights = WEIGHTS | dict.fromkeys(("src_planted_weight", "tgt_planted_weight"), 0.5)
    options = {"sync_without_eos": True, "sync_shift": True, "guided_alignment_weight": 0.5}
    losses = criterion(**weights, **options)
    model, sample = build.model("transformer_syncattn_tiny", noise=0.1, **SYNC, **TIED), batch()
    sample["alignments"] = torch.tensor([[2, 1], [3, 6]])
    with EmulatedGpu() as gpu:
        model, sample = move(model), move(sample)
        _, extra = model(**sample["net_input"])
        gpu.waits.clear()
        for term in losses.terms:
            assert term.applies(extra, sample)
            term(extra, sample)
        assert gpu.waits == []
        with metrics.aggregate() as meters:
            losses.reduce_metrics([losses(model, sample)[2]])
        fairseqs = {"loss", "nll_loss", "ppl"}
        ours = [name for name in meters if not name.startswith("_") and name not in fairseqs]
        assert {"total_loss", "src_uas", "tgt_dep_loss", "sync_loss"} < set(ours)
        gpu.waits.clear()
        values = {name: meters.get_smoothed_value(name) for name in ours}
        assert gpu.waits == []
        shown = format_stat(values["src_uas"])
    assert shown == round(shown, 3), "no digits that mean nothing"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_gpu_moves_all_parameters_together(precision, monkeypatch):
    """As fairseq does one by one on a CPU, but for rounding."""

    def update(model: Any, sample: dict[str, Any], optimizer: Any) -> float:
        optimizer.zero_grad()
        loss, size, _ = losses(model, sample)
        optimizer.backward(loss)
        optimizer.multiply_grads(1 / size)
        optimizer.clip_grad_norm(1.0)
        optimizer.step()
        return float(numbers(loss.detach()))

    losses = criterion()
    model, sample = make("transformer_dbsa_tiny").to(PRECISIONS[precision]), batch()
    fairseqs = make_optimizer(model, precision)
    fairseqs.set_lr(1e-2)
    expected = [update(model, sample, fairseqs) for _ in range(4)]
    with EmulatedGpu() as gpu:
        model, sample = move(make("transformer_dbsa_tiny").to(PRECISIONS[precision])), move(sample)
        monkeypatch.setattr("torch.cuda.current_device", lambda: 0)
        ours = make_optimizer(model, precision)
        ours.set_lr(1e-2)
        fuse_optimizer(ours)
        assert type(ours.optimizer) is FusedAdam
        actual = [update(model, sample, ours) for _ in range(4)]
        waits = [wait for wait in gpu.waits if "/fairseq/" not in wait]
    assert waits == [] and actual[-1] < 0.9 * actual[0]
    assert actual == pytest.approx(expected, rel=1e-5 if precision == "fp32" else 0.02)


def test_the_emulated_device_notices_what_a_gpu_would():
    with EmulatedGpu() as gpu:
        x = move(torch.ones(3))
        assert not gpu.waits and (x + torch.tensor(1.0)).sum().device.type == NAME
        for strays in (lambda: x + torch.ones(3), lambda: torch.cat([x, torch.arange(3)])):
            with pytest.raises(RuntimeError, match=r"on the CPU .*on_emulated_gpu.py"):
                strays()
        for waits in (
            lambda: float(x.sum()),
            lambda: x.tolist(),
            lambda: x[x > 0],
            lambda: bool(x.any()),
            lambda: x.cpu(),
            lambda: x.nonzero(),
        ):
            gpu.waits.clear()
            waits()
            assert gpu.waits and all("on_emulated_gpu.py" in wait for wait in gpu.waits)
