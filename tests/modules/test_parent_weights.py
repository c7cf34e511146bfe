from __future__ import annotations

import pytest
import torch

from syncattn_fairseq.functional import parent_gaussian
from syncattn_fairseq.modules import ParentWeights

TOKENS = torch.zeros(2, 4, dtype=torch.long)
PARENTS = torch.tensor([[1.5, 0, 3, float("nan")], [2, 2, 0.5, 0]]).double()


@pytest.mark.parametrize("parents", ["parse", "shuffled", "random"])
def test_parents_of_the_data_are_weighed_by_the_density(parents: str) -> None:
    weights = ParentWeights(parents, std=2.0)
    assert weights.reads_parents
    torch.testing.assert_close(
        weights(TOKENS, PARENTS), parent_gaussian(PARENTS, 4, 2.0).float(), atol=1e-6, rtol=0
    )
    with pytest.raises(ValueError, match=r"need net_input\.src_parents"):
        weights(TOKENS, None)


def test_the_control_self_is_distance_alone() -> None:
    weights = ParentWeights("self", std=1.0)
    assert not weights.reads_parents
    for b in range(2):
        torch.testing.assert_close(
            weights(TOKENS, None)[b], parent_gaussian(torch.arange(4.0), 4, 1.0)
        )


@pytest.mark.parametrize("std", [1.0, 2.0])
def test_the_control_constant_is_the_densitys_peak(std: float) -> None:
    weights = ParentWeights("constant", std)
    assert not weights.reads_parents
    peak = parent_gaussian(torch.tensor([[0.0]]), 1, std).item()
    torch.testing.assert_close(weights(TOKENS, None), torch.full((2, 4, 4), peak))


@pytest.mark.parametrize("parents", ["parse", "constant"])
def test_ignored_rows_are_ones_in_training_only(parents: str) -> None:
    torch.manual_seed(0)
    tokens, columns = torch.zeros(40, 50, dtype=torch.long), torch.zeros(40, 50)
    kept = ParentWeights(parents)(tokens, columns)
    some = ParentWeights(parents, ignoring=0.3)
    ignored = some(tokens, columns).eq(1).all(-1)
    assert 0.25 < ignored.float().mean() < 0.35
    weights = some(tokens, columns)
    assert not weights.eq(1).all(-1).equal(ignored), "drawn anew each time"
    torch.testing.assert_close(weights[~weights.eq(1).all(-1)], kept[~weights.eq(1).all(-1)])
    torch.testing.assert_close(some.eval()(tokens, columns), kept)


def test_all_rows_can_be_ignored() -> None:
    assert ParentWeights(ignoring=1.0)(TOKENS, PARENTS).eq(1).all()
