from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.evaluation.significance import Significance, compare_with_baseline
from syncattn_fairseq.evaluation.translation import score_bleu

REFERENCES = [f"man {n} saw a dog and it saw him" + " too" * (n % 3) for n in range(20)]


def damaged(*which: int) -> list[str]:
    """The references, but for these with words in the wrong order."""
    return [
        text.replace("a dog and it", "it dog and a") if n in which else text
        for n, text in enumerate(REFERENCES)
    ]


SYSTEMS = {
    "good": damaged(),
    "better": damaged(0, 1),
    "base": damaged(*range(1, 6)),
    "copy": damaged(*range(1, 6)),
    "as bad": damaged(*range(7, 12)),  # as long as those of the baseline
}


@pytest.fixture(scope="module", autouse=True)
def _sacrebleus_own_seed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SACREBLEU_SEED", raising=False)
        yield


@pytest.fixture(scope="module")
def compared() -> dict[str, Significance]:
    return compare_with_baseline(SYSTEMS, "base", REFERENCES)


def test_a_difference_beyond_chance(compared: dict[str, Significance]) -> None:
    good, better = compared["good"], compared["better"]
    assert good.p_bootstrap is not None and better.p_bootstrap is not None
    assert good.p_bootstrap < 0.05 < better.p_bootstrap


def test_randomisation_agrees_with_all_ways_to_swap(compared: dict[str, Significance]) -> None:
    differing = [0, 2, 3, 4, 5]  # to swap the others does nothing
    differences = []
    for swaps in product([False, True], repeat=len(differing)):
        one, other = list(SYSTEMS["base"]), list(SYSTEMS["better"])
        for index, swap in zip(differing, swaps, strict=True):
            if swap:
                one[index], other[index] = other[index], one[index]
        differences.append(
            abs(score_bleu(one, REFERENCES).score - score_bleu(other, REFERENCES).score)
        )
    exact = np.mean([value > differences[0] + 1e-9 for value in differences])
    assert 0 < exact < 0.5
    assert compared["better"].p_randomisation == pytest.approx(exact, abs=0.02)


def test_interval_agrees_with_a_bootstrap_of_our_own(compared: dict[str, Significance]) -> None:
    random = np.random.default_rng(0)
    scores = []
    for chosen in random.integers(len(REFERENCES), size=(200, len(REFERENCES))):
        hypotheses = [SYSTEMS["base"][i] for i in chosen]
        scores.append(score_bleu(hypotheses, [REFERENCES[i] for i in chosen]).score)
    low, high = np.quantile(scores, [0.025, 0.975])
    assert compared["base"].confidence == pytest.approx((high - low) / 2, rel=0.25)


def test_no_difference(compared: dict[str, Significance]) -> None:
    for name in ("copy", "as bad"):
        assert (compared[name].p_bootstrap, compared[name].p_randomisation) == (1, 1)


def test_the_baseline_has_no_p(compared: dict[str, Significance]) -> None:
    assert (compared["base"].p_bootstrap, compared["base"].p_randomisation) == (None, None)
    assert {score.baseline for score in compared.values()} == {"base"}


def test_the_seed_is_fixed_but_can_be_chosen(
    compared: dict[str, Significance], monkeypatch: pytest.MonkeyPatch
) -> None:
    two = {name: SYSTEMS[name] for name in ("better", "base")}
    assert "|bs:1000|ar:10000|seed:12345|" in compared["better"].signature
    assert compare_with_baseline(two, "base", REFERENCES)["better"] == compared["better"]
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    other = compare_with_baseline(two, "base", REFERENCES)["better"]
    assert "|seed:7|" in other.signature
    assert other.p_randomisation != compared["better"].p_randomisation


def test_unknown_baseline() -> None:
    with pytest.raises(DataError, match="no system is named old; choose one of good, better"):
        compare_with_baseline(SYSTEMS, "old", REFERENCES)
