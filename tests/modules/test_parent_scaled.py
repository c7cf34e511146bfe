from typing import Any

import pytest
import torch
from torch import Tensor

from syncattn_fairseq.functional import parent_gaussian
from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules.heads import ParentScaledHeads

TOKENS = torch.zeros(2, 4, dtype=torch.long)
PARENTS = torch.tensor([[1.5, 0, 3, float("nan")], [2, 2, 0.5, 0]]).double()


def weigh(heads: ParentScaledHeads, tokens: Tensor, parents: Tensor | None) -> Tensor:
    heads.view.fill(tokens, tokens.bool(), {"src_parent_positions": parents})
    return heads.weigh_parents()


def scaled(*options: Any) -> ParentScaledHeads:
    return ParentScaledHeads(1, 4, BatchView(), *options)


def test_parents_of_the_data_are_weighed_by_the_density():
    weights = scaled("parse", 2.0)
    torch.testing.assert_close(
        weigh(weights, TOKENS, PARENTS), parent_gaussian(PARENTS, 4, 2.0).float(), atol=1e-6, rtol=0
    )
    with pytest.raises(ValueError, match=r"net_input\.src_parent_positions"):
        weigh(weights, TOKENS, None)


def test_heads_with_other_settings_may_share_a_batch():
    view = BatchView()
    view.fill(TOKENS, TOKENS.bool(), {"src_parent_positions": PARENTS})
    for options in (("parse", 1.0), ("parse", 3.0), ("self", 1.0), ("constant", 1.0)):
        alone = weigh(scaled(*options), TOKENS, PARENTS)
        assert ParentScaledHeads(1, 4, view, *options).weigh_parents().equal(alone)


def test_the_control_self_is_distance_alone():
    weights = scaled("self", 1.0)
    for b in range(2):
        torch.testing.assert_close(
            weigh(weights, TOKENS, None)[b], parent_gaussian(torch.arange(4.0), 4, 1.0)
        )


@pytest.mark.parametrize("std", [1.0, 2.0])
def test_the_control_constant_is_the_densitys_peak(std):
    weights = scaled("constant", std)
    peak = parent_gaussian(torch.tensor([[0.0]]), 1, std).item()
    torch.testing.assert_close(weigh(weights, TOKENS, None), torch.full((2, 4, 4), peak))


@pytest.mark.parametrize("parents", ["parse", "constant"])
def test_ignored_rows_are_ones_in_training_only(parents):
    torch.manual_seed(0)
    tokens, columns = torch.zeros(40, 50, dtype=torch.long), torch.zeros(40, 50)
    plain = weigh(scaled(parents), tokens, columns)
    some = scaled(parents, 1.0, 0.3)
    ignored = weigh(some, tokens, columns).eq(1).all(-1)
    assert 0.25 < ignored.float().mean() < 0.35
    weights = weigh(some, tokens, columns)
    assert not weights.eq(1).all(-1).equal(ignored), "drawn anew each time"
    torch.testing.assert_close(weights[~weights.eq(1).all(-1)], plain[~weights.eq(1).all(-1)])
    torch.testing.assert_close(weigh(some.eval(), tokens, columns), plain)


def test_all_rows_can_be_ignored():
    assert weigh(scaled("parse", 1.0, 1.0), TOKENS, PARENTS).eq(1).all()
