from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from syncattn_fairseq.tasks.waits import CannotRecord, Watch, WatchedBatch
from tests.criterions.test_criterion import criterion
from tests.data.test_padding import make_dataset
from tests.models import build
from tests.systems import SYSTEMS, weights_of

X = torch.ones(3, 3, device="meta")
ONES = torch.ones(3, dtype=torch.long, device="meta")
WAITS: dict[str, Callable[[], Any]] = {
    "item": lambda: X.sum().item(),
    "condition": lambda: 1 if X.any() else 0,
    "float": lambda: float(X.sum()),
    "to a list": lambda: X.tolist(),
    "to the host": lambda: X.cpu(),
    "index of truth values": lambda: X[X > 0],
    "assigned by truth values": lambda: X.__setitem__(X > 0, 1.0),
    "nonzero": lambda: X.nonzero(),
    "argwhere": lambda: torch.argwhere(X),
    "masked_select": lambda: X.masked_select(X > 0),
    "unique": lambda: X.unique(),
    "equal": lambda: torch.equal(X, X),
    "repeat_interleave": lambda: X.repeat_interleave(ONES, 0),
    "inverse": lambda: torch.linalg.inv(X),
    "from the host": lambda: torch.ones(3).to("meta"),
    "copied from the host": lambda: X.copy_(torch.ones(3, 3)),
    "a list of numbers": lambda: torch.tensor([1.0, 2.0], device="meta"),
    "a number": lambda: torch.as_tensor(3.0, device="meta"),
    "a new tensor": lambda: X.new_tensor([1.0]),
    "drawn on the host": lambda: torch.rand(3),
    "dropped on the host": lambda: F.dropout(torch.ones(3)),
    "another generator": lambda: torch.rand(3, generator=torch.Generator(), device="cpu"),
    "packed": lambda: torch.nn.utils.rnn.pack_padded_sequence(X, torch.tensor([3, 2, 1])),
}
FINE: dict[str, Callable[[], Any]] = {
    "dropout": lambda: F.dropout(X).softmax(-1),
    "random": lambda: torch.rand(3, device="meta"),
    "mask": lambda: X.masked_fill(X > 0, 0.0),
    "where": lambda: torch.where(X > 0, X, 0.0),
    "index": lambda: X[ONES],
    "gather": lambda: X.gather(1, ONES.unsqueeze(1)),
    "factor": lambda: X * torch.tensor(2.0),
    "numbers": lambda: torch.arange(3, device="meta"),
    "filled": lambda: torch.full((), 3.0, device="meta"),
    "converted": lambda: X.half().to(X),
    "copied": lambda: torch.as_tensor(X).copy_(X + 1),
    "repeated": lambda: X.repeat_interleave(ONES, 0, output_size=3),
    "on the host alone": lambda: torch.ones(3).sum().item(),
}


@pytest.mark.parametrize("name", WAITS)
def test_what_a_graph_cannot_hold_is_refused_where_it_is_called(name):
    with pytest.raises(CannotRecord, match=rf"^{__file__}:\d+: \w.*$"), Watch("meta", refuse=True):
        WAITS[name]()


@pytest.mark.parametrize("name", FINE)
def test_the_rest_is_done(name):
    with Watch("meta", refuse=True) as watch:
        FINE[name]()
    assert watch.places == []


def test_places_are_noted_and_the_operation_is_done():
    with Watch("cpu") as watch:
        assert torch.ones(3).sum().item() == 3
        x = torch.tensor([1.0, -1.0])
        assert x[x > 0].tolist() == [1]
    assert len(watch.places) == 2 and all(place.startswith(__file__) for place in watch.places)


class Square(torch.autograd.Function):
    """Waits when it goes backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        [x] = ctx.saved_tensors
        return gradient * 2 * x if x.any() else gradient


def test_a_backward_pass_is_watched_too():
    x = torch.ones(3, requires_grad=True)
    with Watch("cpu") as watch:
        Square.apply(x).sum().backward()
    [place] = watch.places
    assert place.startswith(f"{__file__}:") and "a condition on a tensor" in place


def test_what_is_read_but_not_made_is_known():
    weight, mask = torch.ones(3, requires_grad=True), torch.ones(5)
    with Watch("cpu") as watch:
        made = weight * mask[:3]
        (made + made[:1]).sum().backward()
    assert {tensor.data_ptr() for tensor in watch.read.values()} == {
        weight.data_ptr(),
        mask.data_ptr(),
    }


def test_a_batch_says_what_is_read_on_the_host():
    noted: list[str] = []
    batch = WatchedBatch({"target": X, "net_input": {}, "ntokens": 3, "id": ONES}, noted.append)
    assert batch["target"] is X and batch.get("net_input") == {} and batch.get("none", 7) == 7
    assert "ntokens" in batch and noted == []
    assert batch["ntokens"] == 3 and batch.get("id") is ONES
    assert noted == [
        "sample['ntokens'], which is not on the GPU",
        "sample['id'], which is not on the GPU",
    ]


@pytest.mark.parametrize("name", [name for name in SYSTEMS if "rnn" not in name])
def test_no_transformer_and_no_loss_waits_for_a_device(name, monkeypatch):
    """On a device without numbers; only fairseq's mask of the future comes from the host."""
    arch, options = SYSTEMS[name]
    model = build.model(arch, dropout=0.1, attention_dropout=0.1, **options).train()
    losses = criterion(**weights_of(name), guided_alignment_weight=0.5, report_accuracy=True)
    dataset = make_dataset(model, losses, True, False)
    batch = dataset.collater([dataset[index] for index in range(3)])
    for place in (batch, batch["net_input"]):
        place |= {key: x.to("meta") for key, x in place.items() if torch.is_tensor(x)}
    model.to("meta").decoder.buffered_future_mask(X.new_empty(20, 1, 1))
    with Watch("meta", refuse=True):
        objective, log = losses.train().compute(model, batch)
        objective.backward()
    assert {tensor.device.type for tensor in log.values()} == {"meta"}
