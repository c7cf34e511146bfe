"""Test whether BLEU differs from a baseline's by more than chance, as sacreBLEU does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sacrebleu.metrics.base import Signature
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, Result

from ..base.errors import DataError

#: sacreBLEU's defaults.
_SAMPLES, _SEED = 1000, 12345


@dataclass(frozen=True)
class Significance:
    """BLEU of one system compared with the baseline's; p is None for the baseline itself."""

    baseline: str
    confidence: float
    """Half the width of the 95 % interval of BLEU, by bootstrap resampling."""
    p_bootstrap: float | None
    """Of paired bootstrap resampling (Koehn 2004)."""
    p_randomisation: float | None
    """Of paired approximate randomisation (Riezler and Maxwell 2005)."""
    signature: str
    """sacreBLEU's, with the samples of bootstrap (bs) and randomisation (ar) and the seed."""


def compare_with_baseline(
    translations: Mapping[str, Sequence[str]],
    baseline: str,
    references: Sequence[str],
    tokenize: str = "13a",
) -> dict[str, Significance]:
    """Test each system's BLEU against the baseline's.

    The numbers of samples are sacreBLEU's defaults. So is the fixed seed: the same translations
    give the same result, unless the environment variable SACREBLEU_SEED is set.

    Args:
        translations: detokenised text of each system, including the baseline.
        baseline: the baseline's name.
        references: as many as each system has translations.
        tokenize: sacreBLEU's tokenizer.

    Raises:
        DataError: no system has the baseline's name.
    """
    if baseline not in translations:
        raise DataError(f"no system is named {baseline}; choose one of {', '.join(translations)}")
    ordered = sorted(translations.items(), key=lambda system: system[0] != baseline)
    signature, bootstrap = _test_pairs("bs", ordered, references, tokenize)
    randomised, randomisation = _test_pairs("ar", ordered, references, tokenize)
    signature.update("ar", randomised.info["ar"])
    score = bootstrap[0].score
    return {
        name: Significance(
            baseline,
            float(bs.ci or 0),
            _correct_p_value(bs, score),
            _correct_p_value(ar, score),
            str(signature),
        )
        for (name, _), bs, ar in zip(ordered, bootstrap, randomisation, strict=True)
    }


def _test_pairs(
    kind: Literal["bs", "ar"],
    systems: list[tuple[str, Sequence[str]]],
    references: Sequence[str],
    tokenize: str,
) -> tuple[Signature, list[Result]]:
    # force: sacreBLEU already warned about tokenised text when it computed the score.
    metrics = {"BLEU": BLEU(tokenize=tokenize, force=True)}
    signatures, results = PairedTest(systems, metrics, [references], kind)()
    return signatures["BLEU"], [x for x in results["BLEU"] if isinstance(x, Result)]


def _correct_p_value(result: Result, baseline: float) -> float | None:
    # sacreBLEU counts only samples that differ by more than the systems do. So it gives systems
    # that do not differ in any sample the smallest possible p.
    return 1.0 if result.p_value and result.score == baseline else result.p_value


def welch(values: Sequence[float], baseline: Sequence[float]) -> float | None:
    """Return the p of Welch's t-test of whether two samples of seeds have different means.

    None if a sample has fewer than two values, or if nothing varies.
    """
    if min(len(values), len(baseline)) < 2 or len({*values}) == len({*baseline}) == 1:
        return None
    from scipy.stats import ttest_ind  # takes a second to import

    return float(ttest_ind(values, baseline, equal_var=False).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p of several tests, by the method of Holm (1979).

    If nothing differs, the chance that any corrected p is below .05 is at most 5 %, whether or not
    the tests are independent.

    Returns:
        For the k-th smallest of n values, the largest of ``(n - i + 1) * p_i`` with i up to k; at
        most 1.
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, (len(p_values) - rank) * p_values[index])
        corrected[index] = min(1.0, largest)
    return corrected


def count_ngrams(
    translations: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> np.ndarray:
    """Return what BLEU counts in each sentence: all that `pooled_bootstrap` needs of an output.

    Args:
        translations: detokenised sentences.
        references: as many.
        tokenize: sacreBLEU's tokenizer.

    Returns:
        Integers of shape ``(sentences, 10)``, the sums of which are sacreBLEU's statistics: the
        lengths of translation and reference, the matching 1- to 4-grams, and all 1- to 4-grams.

    Raises:
        DataError: the numbers of translations and references differ.
    """
    if len(translations) != len(references):
        raise DataError(f"{len(translations)} translations, but {len(references)} references")
    metric: Any = BLEU(tokenize=tokenize, force=True)
    return np.asarray(metric._extract_corpus_statistics(translations, [references]))


def pooled_bootstrap(
    system: Sequence[np.ndarray], baseline: Sequence[np.ndarray]
) -> tuple[float, float]:
    """Test the BLEU of a system's outputs with all seeds against the baseline's.

    Paired bootstrap resampling (Koehn 2004) of sentences. The outputs of all seeds for a sentence
    are drawn together, since they are not independent. Samples and p are computed as in sacreBLEU;
    with one seed, so is the result.

    Args:
        system: the counts of `count_ngrams` with each seed.
        baseline: the same for the baseline, perhaps with other seeds.

    Returns:
        The difference of BLEU to the baseline, and p.

    Raises:
        DataError: the outputs have different numbers of sentences.
    """
    lengths = sorted({len(counts) for counts in (*system, *baseline)})
    if len(lengths) > 1:
        raise DataError(f"outputs of different texts, with {lengths[0]} and {lengths[1]} sentences")
    metric: Any = BLEU(force=True)

    def bleu(totals: np.ndarray) -> float:
        return float(metric._compute_score_from_stats(totals.tolist()).score)

    # The mean counts as one output, however many seeds.
    pair = [np.asarray(counts).mean(axis=0) for counts in (system, baseline)]
    difference = bleu(pair[0].sum(0)) - bleu(pair[1].sum(0))
    generator = np.random.default_rng(_SEED)
    chosen = generator.choice(len(pair[0]), (_SAMPLES, len(pair[0])))
    ours, theirs = (np.array([bleu(part[rows].sum(0)) for rows in chosen]) for part in pair)
    chance = np.abs(ours - theirs)
    p = (float((chance - chance.mean() > abs(difference)).sum()) + 1) / (_SAMPLES + 1)
    return difference, p if difference else 1.0
