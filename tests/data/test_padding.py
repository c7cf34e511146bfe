"""Batches padded to another shape train every system in the same way."""

from typing import Any

import numpy as np
import pytest
import torch

from syncattn_fairseq import testing
from syncattn_fairseq.criterions.terms import TERMS
from syncattn_fairseq.data.shapes import Plan
from tests.criterions.test_criterion import criterion
from tests.models import build
from tests.systems import SYSTEMS, no_dropout, weights_of

#: Three sentences, and the columns of their longest sides, their ends included.
OWN = (3, max(testing.SOURCE_LENGTHS) + 1, max(testing.TARGET_LENGTHS) + 1)
LARGER = np.array([[5, 14, 11]])
#: Which a dataset gives to guided alignment: pairs of columns.
LINKS = ([[0, 1], [3, 0]], [[1, 2]], [[8, 3], [2, 2], [4, 0]])
#: Systems that draw a random number for each token of a batch.
DRAWN = ("ignoring",)


def make_dataset(model: Any, losses: Any, left_pad: bool, left_pad_target: bool) -> Any:
    dataset = testing.make_dataset(model, left_pad, left_pad_target)
    dataset.loss_fields = sorted(losses.list_fields(), key=lambda field: field.name)
    dataset.lengths_on_cpu = getattr(model, "takes_lengths_on_cpu", False)
    dataset.dataset.align_dataset = [torch.tensor(links).flatten() for links in LINKS]
    return dataset


def train(model: Any, losses: Any, batch: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    model.zero_grad()
    objective, size, log = losses(model, batch)
    objective.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return objective.detach(), {"size": size, **log, **gradients}


@pytest.mark.parametrize("name", [name for name in SYSTEMS if not any(d in name for d in DRAWN)])
@pytest.mark.parametrize("sides", [(True, False), (False, True)])
def test_losses_and_gradients_are_those_of_the_batch_without_padding(name, sides):
    arch, options = SYSTEMS[name]
    if "rnn" in arch:
        sides = sides[0], False  # fairseq's too read what stands before a target
    model = build.model(arch, noise=0.1, **no_dropout(arch), **options).double().train()
    losses = criterion(**weights_of(name), guided_alignment_weight=0.5, report_accuracy=True)
    dataset = make_dataset(model, losses, *sides)
    sentences = [dataset[index] for index in range(3)]
    expected, known = train(model, losses, dataset.collater(sentences))
    dataset.plan = Plan(LARGER, np.array([OWN]))
    batch = dataset.collater(sentences)
    assert batch["target"].shape == (5, 11) and batch["net_input"]["src_tokens"].shape == (5, 14)
    assert known["nsentences"] == 3 and known["ntokens"] == sum(testing.TARGET_LENGTHS) + 3
    objective, found = train(model, losses, batch)
    assert objective.isfinite()
    torch.testing.assert_close(objective, expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found, known, rtol=1e-5, atol=1e-7)
    if "rnn" not in arch:
        assert "guided_alignment_loss" in known and known["total_loss"] > known["loss"]


def test_every_loss_meets_a_padded_batch():
    met = {key for name in SYSTEMS for key, weight in weights_of(name).items() if weight > 0}
    met.add("guided_alignment_weight")
    assert met >= {term.weight_option for term in TERMS.values()}


def test_rows_of_padding_have_an_end_and_no_target():
    model = build.model("transformer_pascal_tiny")
    for left_pad, left_pad_target in ((True, False), (False, True)):
        dataset = make_dataset(model, criterion(), left_pad, left_pad_target)
        dataset.plan = Plan(LARGER, np.array([OWN]))
        batch = dataset.collater([dataset[index] for index in range(3)])
        net_input = batch["net_input"]
        for key, left in (("src_tokens", left_pad), ("prev_output_tokens", left_pad_target)):
            rows = net_input[key][3:]
            assert rows.ne(build.PAD).sum(1).tolist() == [1, 1]
            assert rows[:, -1 if left else 0].tolist() == [build.EOS, build.EOS]
        assert net_input["src_lengths"].tolist()[3:] == [1, 1]
        assert batch["target"][3:].eq(build.PAD).all()
        assert batch["src_parents"][3:].eq(-1).all() and batch["tgt_parents"][3:].eq(-1).all()
        # In an empty sentence, the end is its own parent.
        positions = net_input["src_parent_positions"][3:]
        assert positions[net_input["src_tokens"][3:].eq(build.PAD)].isnan().all()


def test_links_are_repeated_until_there_are_few_numbers_of_them():
    model = build.model("syntax_transformer_tiny")
    dataset = make_dataset(model, criterion(), True, False)
    own = dataset.collater([dataset[0]])["alignments"]
    dataset.plan = Plan(LARGER, np.array([OWN]))
    batch = dataset.collater([dataset[0]])
    assert batch["alignments"].shape == (5 * 11, 2) and batch["align_weights"].shape == (5 * 11,)
    assert batch["align_weights"].count_nonzero() == len(own)
    shift = torch.tensor([14 - len(dataset[0]["source"]), 0])
    plain = torch.tensor(LINKS[0]) + shift
    assert torch.equal(batch["alignments"].unique(dim=0), plain.unique(dim=0))


def test_a_batch_that_the_plan_does_not_hold_stays_as_it_is():
    model = build.model("syntax_transformer_tiny")
    dataset = make_dataset(model, criterion(), True, False)
    sentences = [dataset[index] for index in range(3)]
    expected = dataset.collater(sentences)
    dataset.plan = Plan(np.array([[2, 20, 20]]), np.array([[2, 20, 20]]))
    torch.testing.assert_close(dataset.collater(sentences), expected)
