from argparse import Namespace
from dataclasses import fields
from typing import Any

import pytest
import torch

from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules import heads as kinds

KINDS = (
    kinds.ConstantGateHeads,
    kinds.DependencyHeads,
    kinds.DistanceBiasHeads,
    kinds.GatedHeads,
    kinds.ParentScaledHeads,
    kinds.ShuffledGateHeads,
    kinds.SupervisedGateHeads,
    kinds.WindowHeads,
)


def test_every_row_of_window_heads_sees_a_word():
    lengths = torch.tensor([9, 2, 1])
    for padding in (torch.arange(9) >= lengths[:, None], torch.arange(9) < 9 - lengths[:, None]):
        mask = torch.zeros(3, 1, 1, 9).masked_fill(padding[:, None, None, :], -torch.inf)
        scope = kinds.Scope(mask, padding, False, torch.nn.Dropout(0.0))
        query = torch.randn(3, 2, 9, 4)
        scores = mask + kinds.WindowHeads(2, 4, BatchView(), window=1).bias(query, query, scope)
        assert scores.isfinite().any(-1).all()
        for row, column in ((t, c) for t in range(9) for c in range(9)):
            words = ~padding[:, row] & ~padding[:, column]
            assert (scores[words, 0, row, column].isfinite() == (abs(row - column) <= 1)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_heads_made_by_hand_are_those_of_the_default_options(kind):
    view = BatchView()
    owners = (kinds.GatedHeads, kind)  # whose options shuffled gates share
    options = Namespace(**{o.name: o.default for owner in owners for o in fields(owner.Options)})
    slot = kinds.Slot("encoder", 1, range(2), 2, 4, view)
    by_options, by_hand = kind.build(options, slot), kind(2, 4, view)
    for name, value in vars(by_options).items():
        if not name.startswith("_"):
            assert getattr(by_hand, name) == value, name
    shapes, same = (
        {name: parameter.shape for name, parameter in heads.named_parameters()}
        for heads in (by_options, by_hand)
    )
    assert shapes == same


def make_kind(strength):
    """A kind from outside, which shares a bias under the name that any other might choose."""

    class Near(kinds.Heads):
        made = 0

        def bias(self, query, key, scope):
            return self.share("bias", self.make)

        def make(self):
            type(self).made += 1
            return -strength * torch.arange(3.0).expand(3, 3)

    return Near


def test_kinds_from_outside_that_choose_the_same_name_share_nothing():
    one, other = make_kind(0.5), make_kind(2.0)
    below = type("Below", (one,), {"made": 0, "make": lambda self: 5 * one.make(self)})
    states = torch.randn(1, 1, 3, 4)
    scope = kinds.Scope(None, None, False, torch.nn.Dropout(0.0))
    alone = [kind(1, 4, BatchView()).attend(states, states, states, scope) for kind in (one, other)]
    assert not torch.allclose(*alone)
    view = BatchView()
    for kind, expected in zip((one, other), alone, strict=True):
        for layer in (kind(1, 4, view), kind(1, 4, view)):
            assert layer.attend(states, states, states, scope).equal(expected)
        assert kind.made == 2, "the layers of a kind share"
    assert below(1, 4, view).bias(states, states, scope).equal(5 * one(1, 4, view).make())


def test_the_convolution_of_distances_starts_as_a_linear_layer_does():
    torch.manual_seed(0)
    heads = kinds.GatedHeads(8, 64, BatchView(), look_back=3)
    limit = torch.nn.Linear(4 * 64, 8).weight.abs().max().item()
    assert heads.weight.abs().max().item() == pytest.approx(limit, rel=0.01)
    assert heads.weight.min() < -0.99 * limit and heads.weight.max() > 0.99 * limit


def test_only_heads_that_attend_as_ordinary_ones_fold():
    class Biased(kinds.Heads):
        def bias(self, query: Any, key: Any, scope: Any) -> Any:
            return None

    class Turned(kinds.Heads):
        def rewrite_query(self, query: Any) -> Any:
            return -query

    class Attending(Turned):
        def attend(self, query: Any, key: Any, value: Any, scope: Any) -> Any:
            return value

    class Below(Attending):
        pass

    class Mixin:
        def bias(self, query: Any, key: Any, scope: Any) -> Any:
            return query @ key.mT

    class Mixed(Mixin, kinds.Heads):  # type: ignore[misc]
        pass

    class Said(Mixed):
        folds = True

    classes = (Biased, Turned, Attending, Below, Mixed, Said)
    assert [kind.folds for kind in classes] == [False, True, False, False, False, True]
