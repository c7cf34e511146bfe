"""CUDA graphs, with tapes in their place, which are played on a CPU."""

import logging
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import options, tasks
from fairseq.data.iterators import GroupedIterator
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import LegacyDistributedDataParallel, ModuleProxyWrapper
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from torch import Tensor

from benchmarks.tape import FreedMemory, Tapes, as_on_a_gpu
from benchmarks.train_step import make_optimizer
from syncattn_fairseq.criterions.terms.dependency_loss import SourceDependencyTerm
from syncattn_fairseq.data.shapes import Plan
from syncattn_fairseq.modules.heads.controls.window import WindowHeads
from syncattn_fairseq.tasks import graphs as module
from syncattn_fairseq.tasks import translation_with_syntax
from syncattn_fairseq.tasks.graphs import GraphedTraining, find_obstacle
from tests.criterions.test_criterion import criterion
from tests.data.test_padding import make_dataset
from tests.models import build
from tests.systems import SYSTEMS, no_dropout, weights_of

SHAPES = np.array([[4, 14, 11], [2, 8, 12]])
#: Sentences of the batches of an epoch; every shape comes in the first two.
EPOCH = ([0, 1, 2], [0, 1], [2], [1], [0, 2], [0])


@pytest.fixture(autouse=True)
def _as_on_a_gpu() -> Iterator[None]:
    with as_on_a_gpu():
        yield


class Training:
    """A small training, with tapes or without."""

    def __init__(
        self, name: str, taped: bool = True, precision: str = "fp32", dropout: float = 0.0
    ) -> None:
        torch.manual_seed(0)
        arch, options = SYSTEMS[name]
        drops = dict.fromkeys(no_dropout(arch), dropout)
        self.model = build.model(arch, noise=0.0, **drops, **options).train()
        self.losses = criterion(**weights_of(name), report_accuracy=True).train()
        if precision != "fp32":
            self.model.to({"fp16": torch.float16, "bf16": torch.bfloat16}[precision])
        self.optimizer = make_optimizer(self.model, precision)
        dataset = make_dataset(self.model, self.losses, True, False)
        dataset.plan = Plan(SHAPES, np.array([[3, 10, 8]]))
        self.batches = [dataset.collater([dataset[n] for n in batch]) for batch in EPOCH]
        self.taped = taped
        self.graphs = GraphedTraining(self.model, self.losses, self.optimizer, Tapes())
        self.updates = 0
        self.seen: list[Any] = []

    def pass_through(self, batch: dict[str, Any]) -> Any:
        """Go forward and backward, as the task does."""
        trained = self.graphs.step(batch, self.updates) if self.taped else None
        if trained is None:
            trained = self.losses(self.model, batch)
            self.optimizer.backward(trained[0])
        return trained

    def update(self, *batches: int) -> None:
        """Make an update from some batches, as fairseq's trainer does; note all that it gives."""
        self.optimizer.zero_grad()
        torch.manual_seed(self.updates)
        results = [self.pass_through(self.batches[n % len(EPOCH)]) for n in batches]
        self.optimizer.multiply_grads(1 / sum(size for _, size, _ in results))
        gradients = [None if p.grad is None else p.grad.clone() for p in self.model.parameters()]
        try:
            norm = self.optimizer.clip_grad_norm(1.0)
            self.optimizer.step()
        except OverflowError:
            norm = None
        self.updates += 1
        logs = [dict(sorted(log.items())) for _, _, log in results]
        scaler = getattr(self.optimizer, "scaler", None)
        self.seen.append((logs, gradients, norm, scaler and scaler.loss_scale))

    def epochs(self, count: int = 2) -> list[Any]:
        for number in range(count * len(EPOCH)):
            self.update(number)
        return self.seen

    @property
    def played(self) -> int:
        recorder: Any = self.graphs.recorder
        return int(recorder.played)


def assert_same(actual: Any, expected: Any) -> None:
    """Bit for bit."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in SYSTEMS if "rnn" not in name])
def test_every_transformer_trains_with_the_same_bits(name):
    with_graphs = Training(name)
    assert_same(with_graphs.epochs(), Training(name, taped=False).epochs())
    assert with_graphs.graphs.obstacle == ""
    assert with_graphs.graphs.count == 2 and with_graphs.played == 2 * len(EPOCH) - 2


@pytest.mark.parametrize("name", ["rnn_global", "rnn_syntax_directed_double"])
def test_recurrent_models_go_without(name, caplog):
    training = Training(name)
    assert_same(training.epochs(1), Training(name, taped=False).epochs(1))
    assert training.played == 0
    line = "the training goes on without CUDA graphs: the model packs sequences by lengths"
    assert caplog.text.count(line) == 2


def test_dropout_draws_anew_at_each_replay():
    training = Training("transformer_dbsa_tiny", dropout=0.5)
    losses = []
    for seed in (3, 4, 3, 4, 3):
        torch.manual_seed(seed)
        training.optimizer.zero_grad()
        losses.append(training.pass_through(training.batches[0])[2]["loss"].item())
    assert training.played == 4
    assert losses[2:] == [losses[0], losses[1], losses[0]] and losses[0] != losses[1]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_the_gradients_of_several_batches_are_added_up(precision):
    """Batches of one shape and of two, recorded before, in this update, or not yet."""
    updates = [(0, 0), (0, 1), (0, 1, 2, 0), (2, 2, 1), (1,), (0, 1, 0)]
    sides = [Training("transformer_syncattn_tiny", taped, precision) for taped in (True, False)]
    for side in sides:
        for update in updates:
            side.update(*update)
    assert_same(sides[0].seen, sides[1].seen)
    assert sides[0].played > 10


def test_the_scale_of_the_loss_may_change_between_replays():
    sides = [Training("transformer_dbsa_tiny", taped, "fp16") for taped in (True, False)]
    for side in sides:
        side.optimizer.scaler.scale_window = 3
        side.optimizer.scaler.loss_scale = 2.0**18
        side.epochs(3)
    assert_same(sides[0].seen, sides[1].seen)
    scales = {scale for *_, scale in sides[0].seen}
    assert len(scales) > 3 and any(norm is None for _, _, norm, _ in sides[0].seen)
    assert sides[0].played > 10


def test_what_a_graph_reads_is_kept_when_fairseq_replaces_it():
    """A longer batch, as in validation, makes another mask of the future."""
    sides = [Training("syntax_transformer_tiny", taped) for taped in (True, False)]
    for side in sides:
        side.epochs(1)
        side.model.decoder.buffered_future_mask(torch.empty(40, 1, 1))
        side.epochs(1)
    assert_same(sides[0].seen, sides[1].seen)

    forgetful = Training("syntax_transformer_tiny")
    forgetful.epochs(1)
    for graph in forgetful.graphs._graphs.values():
        graph.read.clear()
    forgetful.model.decoder.buffered_future_mask(torch.empty(40, 1, 1))
    with pytest.raises(FreedMemory):
        forgetful.epochs(1)


def test_a_graph_knows_nothing_of_the_host_but_what_it_is_told():
    """The counts are each batch's own, though its shape is recorded."""
    training = Training("syntax_transformer_tiny")
    training.epochs(2)
    counts = [
        [log["ntokens"], log["nsentences"], log["sample_size"]] for [log], *_ in training.seen
    ]
    known = [[b["ntokens"], b["nsentences"], b["ntokens"]] for b in training.batches]
    assert counts == known * 2


class Waiting:
    """Heads that do something that cannot be recorded."""

    def __init__(self, wait: Callable[[Tensor], Any]) -> None:
        self.wait = wait

    def bias(self, heads: Any, query: Tensor, key: Tensor, scope: Any) -> Tensor:
        self.wait(query)
        return query.new_zeros(1, 1)


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (
            lambda q: q.sum().item(),
            r"the host waits for the GPU (.item(), or a condition on a tensor's value)",
        ),
        (lambda q: q if q.sum() > 0 else -q, "a condition on a tensor"),
        (lambda q: q[q > 0], "an index of truth values"),
        (lambda q: q.nonzero(), "nonzero"),
        (lambda q: random.random(), "random numbers of Python or numpy"),
        (lambda q: np.random.rand(), "random numbers of Python or numpy"),
        (
            lambda q: torch.rand(1, generator=torch.Generator().manual_seed(1)),
            "random numbers of a generator other",
        ),
    ],
)
def test_heads_that_wait_are_named_and_trained_without_graphs(wait, said, monkeypatch, caplog):
    monkeypatch.setattr(WindowHeads, "bias", lambda *args: Waiting(wait).bias(*args))
    sides = [Training("transformer_local_attn_tiny", taped) for taped in (True, False)]
    for side in sides:
        random.seed(1)
        np.random.seed(1)
        side.epochs(2)
    assert_same(sides[0].seen, sides[1].seen)
    assert sides[0].played == 0
    lines = [r.getMessage() for r in caplog.records if r.name == module.__name__]
    assert len(lines) == 1 and said in lines[0] and "\n" not in lines[0]
    if "Python" not in said:
        assert f"{__file__}:" in lines[0]


def test_a_loss_that_reads_the_host_is_named(monkeypatch):
    summed = SourceDependencyTerm.__call__
    for change, said in (
        (
            lambda self, extra, sample: summed(self, extra, sample)[0] / sample["ntokens"],
            f"{__file__}:.*sample\\['ntokens'\\], which is not on the GPU",
        ),
        (
            lambda self, extra, sample: summed(self, extra, sample)[0] + len(sample.get("id")),
            f"{__file__}:.*sample\\['id'\\], which is not on the GPU",
        ),
    ):
        monkeypatch.setattr(
            SourceDependencyTerm, "__call__", lambda *args, change=change: (change(*args), {})
        )
        training = Training("transformer_dbsa_tiny")
        training.epochs(1)
        assert training.played == 0
        assert re.search(said, training.graphs.obstacle)


def test_a_recording_that_fails_ends_graphs_but_not_the_training(monkeypatch, caplog):
    def fail(function: Any) -> Any:
        raise RuntimeError("CUDA error:\n out of memory")

    sides = [Training("syntax_transformer_tiny", taped) for taped in (True, False)]
    monkeypatch.setattr(sides[0].graphs.recorder, "record", fail)
    for side in sides:
        side.update(0, 0, 1)
        side.epochs(1)
    assert_same(sides[0].seen, sides[1].seen)
    assert "without CUDA graphs: CUDA error: out of memory" in caplog.text
    assert len([r for r in caplog.records if r.name == module.__name__]) == 1


def test_what_is_known_to_be_impossible_is_named():
    def ask(**options: Any) -> str:
        model = build.model("syntax_transformer_tiny", **options)
        return find_obstacle(model, criterion(), make_optimizer(model, "fp32"))

    assert ask() == ""
    assert ask(encoder_layerdrop=0.5).startswith("LayerDrop chooses layers at random")
    assert ask(checkpoint_activations=True).startswith("--checkpoint-activations changes")
    model = build.model("syntax_transformer_tiny")
    fine = criterion(), make_optimizer(model, "fp16")
    assert find_obstacle(model, *fine) == ""
    assert find_obstacle(model, torch.nn.Identity(), fine[1]) == (
        "Identity is not the criterion label_smoothed_cross_entropy_with_syntax"
    )
    told = "by ReducedElsewhere, which graphs do not support; use --ddp-backend legacy_ddp"
    assert told in find_obstacle(type("ReducedElsewhere", (torch.nn.Module,), {})(), *fine)

    class Own(type(fine[1])):  # type: ignore[misc]
        def backward(self, loss: Any) -> None:
            loss.backward()

    fine[1].__class__ = Own
    assert find_obstacle(model, *fine) == "Own has its own backward pass"
    layer = model.encoder.layers[0]
    layer.__class__ = type("Annealed", (type(layer),), {"set_num_updates": lambda self, n: None})
    assert find_obstacle(model, *fine) == "Annealed depends on the number of updates"


def test_gradients_that_are_reduced_after_the_backward_pass_are_no_obstacle(monkeypatch):
    monkeypatch.setattr("fairseq.distributed.utils.get_world_size", lambda group: 1)
    model = build.model("syntax_transformer_tiny")
    wrapped = ModuleProxyWrapper(LegacyDistributedDataParallel(model, None))
    assert find_obstacle(wrapped, criterion(), make_optimizer(model, "fp32")) == ""


def test_several_gpus_reduce_gradients_after_the_replay(monkeypatch):
    """The other worker has the same gradients; they are halved, and added."""
    monkeypatch.setattr("fairseq.distributed.utils.get_world_size", lambda group: 2)
    monkeypatch.setattr("fairseq.distributed.utils.all_reduce", lambda x, group: x.mul_(2))
    sides = [Training("transformer_dbsa_tiny", taped) for taped in (True, False)]
    for side in sides:
        spread = ModuleProxyWrapper(LegacyDistributedDataParallel(side.model, None))
        multiply = side.optimizer.multiply_grads

        def reduce(
            factor: float, side: Any = side, spread: Any = spread, then: Any = multiply
        ) -> None:
            side.optimizer.all_reduce_grads(spread)
            then(factor)

        side.optimizer.multiply_grads = reduce
        side.model, model = spread, side.model
        side.graphs = GraphedTraining(spread, side.losses, side.optimizer, Tapes())
        for batches in ((0,), (0,), (0, 1), (1, 0)):
            side.update(*batches)
        side.model = model
    assert_same(sides[0].seen, sides[1].seen)
    assert sides[0].played == 4


def test_shapes_beyond_the_most_are_trained_as_they_are(monkeypatch):
    monkeypatch.setattr(module, "MOST_SHAPES", 1)
    training = Training("syntax_transformer_tiny")
    assert_same(training.epochs(2), Training("syntax_transformer_tiny", taped=False).epochs(2))
    assert training.graphs.count == 1 and 0 < training.played < 2 * len(EPOCH) - 2


def test_parameters_that_move_are_recorded_anew():
    sides = [Training("syntax_transformer_tiny", taped) for taped in (True, False)]
    for side in sides:
        side.epochs(1)
        weight = side.model.encoder.layers[0].fc1.weight
        weight.data = weight.data.clone() + 1
        side.epochs(1)
    assert_same(sides[0].seen, sides[1].seen)
    assert sides[0].played == 2 * len(EPOCH) - 2


def test_there_is_one_training_for_a_model_and_its_optimizer():
    training = Training("syntax_transformer_tiny")
    own = training.model, training.losses, training.optimizer
    assert training.graphs.belongs_to(*own)
    assert not training.graphs.belongs_to(*own[:2], make_optimizer(training.model, "fp32"))


def test_the_log_says_how_many_graphs_there_are_and_what_they_take(caplog):
    caplog.set_level(logging.INFO)
    training = Training("syntax_transformer_tiny")
    training.graphs.report()
    training.epochs(1)
    training.graphs.report()
    training.graphs.report()
    [line] = [r.getMessage() for r in caplog.records if r.name == module.__name__]
    assert line.startswith("--fast: 2 CUDA graphs, recorded in ")
    parameters = sum(p.numel() for p in training.graphs.parameters)
    taped = training.graphs.recorder.measure_memory()
    assert training.graphs.measure_memory() > taped + 4 * parameters > 4 * parameters
    assert training.graphs.seconds > 0


class RealTraining:
    """fairseq's own trainer and task, on a corpus."""

    def __init__(self, data: Any, folder: Any, *words: str) -> None:
        parser = options.get_training_parser()
        given = [
            *(str(data), "--task=translation_with_syntax", "--arch=transformer_syncattn_tiny"),
            *("--criterion=label_smoothed_cross_entropy_with_syntax", "--label-smoothing=0.1"),
            *("--encoder-layers=2", "--decoder-layers=2", "--share-all-embeddings", "--cpu"),
            *("--dropout=0", "--optimizer=adam", "--lr=0.003", "--clip-norm=1", "--seed=1"),
            *("--max-tokens=160", "--num-workers=0", "--max-epoch=9", f"--save-dir={folder}"),
            *words,
        ]
        cfg: Any = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, given))
        self.task = tasks.setup_task(cfg.task)
        torch.manual_seed(1)
        model = self.task.build_model(cfg.model)
        criterion = self.task.build_criterion(cfg.criterion)
        self.task.load_dataset("train")
        self.task.load_dataset("valid")
        self.trainer = Trainer(cfg, self.task, model, criterion)
        self.every = cfg.optimization.update_freq[0]

    def train(self, last: int = 3, first: int = 1) -> list[Any]:
        """Train and validate for some epochs, and return what is logged."""
        seen = []
        for epoch in range(first, last + 1):
            iterator = self.trainer.get_train_iterator(epoch, load_dataset=False)
            if epoch == first:
                iterator.epoch = epoch
            self.trainer.begin_epoch(epoch)
            with metrics.aggregate("train", new_root=True):
                for samples in GroupedIterator(iterator.next_epoch_itr(), self.every):
                    log = self.trainer.train_step(samples)
                    seen.append({key: float(value) for key, value in log.items()})
            self.trainer.begin_valid_epoch(epoch)
            with metrics.aggregate("valid", new_root=True):
                iterator = self.trainer.get_valid_iterator("valid")
                for sample in iterator.next_epoch_itr(shuffle=False):
                    seen.append(float(self.trainer.valid_step(sample)["loss"]))
        return seen


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--update-freq=2", "--store-ema", "--dropout=0.3", "--report-accuracy"),
        ("--bf16", "--sentence-avg", "--arch=transformer_lpsi_tiny"),
        ("--memory-efficient-bf16", "--arch=transformer_pascal_tiny"),
        ("--amp",),
    ],
)
def test_fairseqs_trainer_trains_with_the_same_bits(
    words, small_corpus, tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("syncattn_fairseq.patches.returned_memory.set_allocator", lambda: True)
    tapes = Tapes()
    monkeypatch.setattr(translation_with_syntax, "find_recorder", lambda device: tapes)
    training = RealTraining(small_corpus.data, tmp_path, "--fast", *words)
    found = training.train()
    batches = len(training.task._planned)
    assert tapes.played > batches, "most of three epochs"
    for line in (
        r"--fast: \d+ batches are padded to \d+ shapes, which adds \d\.\d % of",
        r"CUDA graphs, ",
    ):
        assert any(re.search(line, r.getMessage()) for r in caplog.records)
    assert "without CUDA graphs" not in caplog.text

    # The same batches, padded in the same way, without graphs.
    monkeypatch.setattr(GraphedTraining, "step", lambda *args: None)
    expected = RealTraining(small_corpus.data, tmp_path, "--fast", *words).train()
    assert found == expected
    if not words:  # and without padding, but for rounding
        monkeypatch.setattr(translation_with_syntax, "find_recorder", lambda device: None)
        plain = RealTraining(small_corpus.data, tmp_path).train()
        assert found[0]["loss"] == pytest.approx(plain[0]["loss"], rel=1e-5)
        assert found[-1] == pytest.approx(plain[-1], rel=1e-2)


def test_a_resumed_training_is_the_same_as_a_straight_one(small_corpus, tmp_path, monkeypatch):
    """Though it trains some shapes as usual that the straight one had recorded."""
    monkeypatch.setattr("syncattn_fairseq.patches.returned_memory.set_allocator", lambda: True)
    monkeypatch.setattr(translation_with_syntax, "find_recorder", lambda device: Tapes())
    words = (small_corpus.data, tmp_path, "--fast", "--dropout=0.3", "--update-freq=2")
    straight = RealTraining(*words).train(3)
    before, after = RealTraining(*words), RealTraining(*words)
    begun = before.train(1)
    path = str(tmp_path / "checkpoint.pt")
    before.trainer.consolidate_optimizer()
    before.trainer.save_checkpoint(path, {"train_iterator": {"epoch": 1}})
    after.trainer.load_checkpoint(path)
    assert begun + after.train(first=2) == straight
