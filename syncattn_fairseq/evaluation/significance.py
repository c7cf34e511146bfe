"""Whether BLEU differs from a baseline's by more than chance, by sacreBLEU's paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sacrebleu.metrics.base import Signature
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, Result

from ..base.errors import DataError


@dataclass(frozen=True)
class Significance:
    """BLEU of one system beside that of the baseline; p is None for the baseline itself."""

    baseline: str
    confidence: float
    """Half the width of the 95 % interval of BLEU that bootstrap resampling gives."""
    p_bootstrap: float | None
    """Of paired bootstrap resampling (Koehn 2004)."""
    p_randomisation: float | None
    """Of paired approximate randomisation (Riezler and Maxwell 2005)."""
    signature: str
    """SacreBLEU's, with the samples of bootstrap (bs) and randomisation (ar) and the seed."""


def compare_with_baseline(
    translations: Mapping[str, Sequence[str]],
    baseline: str,
    references: Sequence[str],
    tokenize: str = "13a",
) -> dict[str, Significance]:
    """Test each system's BLEU against that of the baseline.

    The numbers of samples are sacreBLEU's defaults. So is the seed, which is fixed: the same
    translations give the same result, unless the variable SACREBLEU_SEED says otherwise.

    Args:
        translations: detokenised text of each system, the baseline included.
        baseline: its name.
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
    # force: sacreBLEU has warned about tokenised text when it computed the score.
    metrics = {"BLEU": BLEU(tokenize=tokenize, force=True)}
    signatures, results = PairedTest(systems, metrics, [references], kind)()
    return signatures["BLEU"], [x for x in results["BLEU"] if isinstance(x, Result)]


def _correct_p_value(result: Result, baseline: float) -> float | None:
    # SacreBLEU counts only samples that differ by more than the systems do. So it finds systems
    # that do not differ at all, in no sample, to be different with the smallest p that there is.
    return 1.0 if result.p_value and result.score == baseline else result.p_value
