"""Every batch logs the same names, whatever it lacks: workers sum what they log by its names."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.option_fields import option
from syncattn_fairseq.criterions.terms import TERMS, Term
from tests.criterions.test_criterion import batch, criterion
from tests.criterions.test_guided_alignment import with_links
from tests.models import build
from tests.one_of_two_processes import unparsed
from tests.systems import SYSTEMS, weights_of


@pytest.mark.parametrize("system", SYSTEMS)
def test_batches_that_lack_parses_labels_or_links(system):
    arch, options = SYSTEMS[system]
    model = build.model(arch, **options)
    weights = weights_of(system) | {"guided_alignment_weight": 0.1}
    objective, logs = criterion(**weights), []
    for training in (True, False):
        model.train(training), objective.train(training)
        samples = [with_links(), batch(), unparsed()]
        if not training:  # which refuses data without parses
            samples += [batch(parents=False)]
        with torch.set_grad_enabled(training):
            logs += [objective(model, sample)[2] for sample in samples]
    names = [*logs[0]]
    assert [[*log] for log in logs] == [names] * 7
    assert {*TERMS} < {*names}
    for log in logs:  # as fairseq sums them
        assert all(torch.as_tensor(log[name]).shape in [(), (7,)] for name in names)


def test_losses_that_apply_to_no_batch_are_not_shown():
    make = criterion(guided_alignment_weight=0.5, src_dep_weight=0.5)
    model = build.model("syntax_transformer_tiny", noise=0.1)
    for samples, shown in (([batch(), batch()], False), ([batch(), with_links()], True)):
        with metrics.aggregate() as aggregated:
            make.reduce_metrics([make(model, sample)[2] for sample in samples])
        values = aggregated.get_smoothed_values()
        assert ("guided_alignment_loss" in values) == shown
        assert not {"src_dep_loss", "src_uas"} & values.keys(), "the model has no such heads"


@dataclass
class Options:
    own_weight: float = option(1.0, "weight")


class OwnTerm(Term):
    """A loss as a user's plugin could have it."""

    Options = Options
    weight_option = "own_weight"
    name = "own_loss"
    numbers = ("own_count",)
    logs = {"own_count": torch.ones(())}

    def applies(self, extra, sample):
        return "alignments" in sample

    def __call__(self, extra, sample):
        return extra["attn"][0].sum(), self.logs


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        ({"other": torch.ones(())}, "own_loss: the loss logs other, which its class does not list"),
        ({"own_count": torch.ones(2)}, "own_loss: own_count: log a tensor with a single number"),
        ({"own_count": 1}, "own_loss: own_count: log a tensor with a single number"),
    ],
)
def test_a_loss_logs_what_it_names(monkeypatch, logs, message):
    objective, model = criterion(), build.model("syntax_transformer_tiny")
    task = SimpleNamespace(target_dictionary=build.dictionary())
    objective.terms.append(OwnTerm(SimpleNamespace(own_weight=1.0), task))
    found = [objective(model, sample)[2] for sample in (batch(), with_links(), batch())]
    assert [log["own_count"].item() for log in found] == [0, 1, 0]
    assert [log["own_loss_applied"] for log in found] == [0, 1, 0]
    monkeypatch.setattr(OwnTerm, "logs", logs)
    with pytest.raises(DataError, match=message):
        objective(model, with_links())
