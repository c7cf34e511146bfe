"""Compute BLEU, chrF and RIBES of translations, and turn subwords into plain text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.packed import BLOCK, Packed
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.moses import check_language, load_sacremoses, open_detokenizer
from syncattn_fairseq.data.preparation import split_by

from .ribes import ALPHA, BETA, score_sentence


@dataclass(frozen=True)
class TranslationScore:
    """A corpus-level score from 0 to 100, with sacreBLEU's signature of the score's settings."""

    score: float
    signature: str


@dataclass(frozen=True)
class BleuScore(TranslationScore):
    """BLEU, and the length of the translations in % of the references' words.

    Below 100, BLEU has a brevity penalty; above, its precision suffers.
    """

    length: float


def score_bleu(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> BleuScore:
    """Compute BLEU (Papineni et al. 2002) of detokenised text, with a tokenizer of sacreBLEU."""
    return sum_bleu(count_ngrams(hypotheses, references, tokenize, warn=True), tokenize)


def count_ngrams(
    translations: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    warn: bool = False,
) -> np.ndarray:
    """Return the n-gram counts of each sentence, from which BLEU and its tests are computed.

    Args:
        translations: the translations, detokenised unless ``tokenize`` is ``none``.
        references: a reference for each translation.
        tokenize: the name of sacreBLEU's tokenizer.
        warn: whether sacreBLEU may warn if the translations look tokenised.

    Returns:
        Integers of shape ``(sentences, 10)``, the sums of which are sacreBLEU's statistics: the
        lengths of translation and reference, the matching 1- to 4-grams, and all 1- to 4-grams.

    Raises:
        DataError: the numbers of translations and references differ, or there are none.
    """
    metric = BLEU(tokenize=tokenize, force=not warn or tokenize == "none")
    return np.concatenate([*_count(metric, translations, references)])


def sum_bleu(counts: np.ndarray, tokenize: str = "13a") -> BleuScore:
    """Compute corpus BLEU from the counts of `count_ngrams`, made with the same tokenizer."""
    metric: Any = BLEU(tokenize=tokenize)
    metric.num_refs = 1  # it would learn that from the texts
    bleu = metric._compute_score_from_stats(counts.sum(axis=0).tolist())
    length = 100 * bleu.sys_len / max(1, bleu.ref_len)
    return BleuScore(bleu.score, str(metric.get_signature()), length)


def _count(
    metric: Any, hypotheses: Sequence[str], references: Sequence[str]
) -> Iterator[np.ndarray]:
    """Yield the statistics of a sacreBLEU metric for each sentence, in blocks.

    It keeps all n-grams of all references that it is given: 4 GB for 100,000, if not in blocks.
    """
    _check_numbers(hypotheses, references)
    for start in range(0, len(references), BLOCK):
        block = slice(start, start + BLOCK)
        counts = metric._extract_corpus_statistics(hypotheses[block], [references[block]])
        yield np.array(counts, np.int32)


def check_tokenizer(tokenize: str) -> None:
    """Raise `DataError` if sacreBLEU cannot load the named tokenizer, or its package is missing."""
    try:
        BLEU(tokenize=tokenize)
    except (ImportError, RuntimeError) as error:
        raise DataError(f"--tokenize {tokenize}: {' '.join(str(error).split())[:200]}") from None


def score_compound_split_bleu(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> BleuScore:
    """Compute BLEU as papers on WMT14 English-German do: Moses tokens, compounds split at hyphens.

    Both sides are tokenised by the Moses tokenizer, and then ``A-B`` counts as the three words
    ``A``, ``-`` and ``B``, as in the script of tensor2tensor that Vaswani et al. (2017) used. It is
    some tenths of a point higher than sacreBLEU's; do not compare the two.

    Raises:
        DataError: sacremoses is not installed, or does not know the language.
    """
    ours = _split_compounds(hypotheses, language)
    theirs = _split_compounds(references, language)
    bleu = score_bleu(ours, theirs, "none")
    signature = bleu.signature.replace("tok:none", f"tok:moses-{language}+split-compounds")
    return replace(bleu, signature=signature)


def score_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> TranslationScore:
    """Compute the character n-gram F-score chrF2 (Popovic 2015) of detokenised text."""
    metric: Any = CHRF()
    totals = sum(block.sum(axis=0) for block in _count(metric, hypotheses, references))
    score = metric._compute_score_from_stats(totals.tolist()).score
    return TranslationScore(score, str(metric.get_signature()))


def score_ribes(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> TranslationScore:
    """Compute RIBES (Isozaki et al. 2010), averaged over sentences."""
    _check_numbers(hypotheses, references)
    tokenizer = BLEU(tokenize=tokenize).tokenizer
    sides = (split_words(texts, tokenize) for texts in (hypotheses, references))
    total = sum(map(score_sentence, *sides))
    return TranslationScore(
        100 * total / len(references),
        f"nrefs:1|case:mixed|alpha:{ALPHA}|beta:{BETA}|tok:{tokenizer.signature()}",
    )


def split_words(texts: Iterable[str], tokenize: str = "13a") -> Iterator[list[str]]:
    """Yield the words of each text, split by a tokenizer of sacreBLEU's, as BLEU counts words.

    Args:
        texts: detokenised, unless ``tokenize`` is ``none``.
        tokenize: the name of sacreBLEU's tokenizer.
    """
    tokenizer = BLEU(tokenize=tokenize).tokenizer
    for text in texts:
        yield tokenizer(text.rstrip()).split()


def _split_compounds(texts: Iterable[str], language: str) -> Packed[str]:
    words = _split_moses(texts, language)
    return Packed(re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", text) for text in words)


def _split_moses(texts: Iterable[str], language: str) -> Iterator[str]:
    check_language(language)
    tokenizer = load_sacremoses().MosesTokenizer(language)
    return (tokenizer.tokenize(text, return_str=True, escape=False) for text in texts)


def detokenize_moses(texts: Iterable[str], language: str) -> Sequence[str]:
    """Undo the Moses tokenizer in each text; raise `DataError` for a language without rules."""
    return Packed(map(open_detokenizer(language), texts))


def score_round_trip(references: Sequence[str], language: str, tokenize: str) -> float:
    """Compute the BLEU of references after the Moses tokenizer and `detokenize_moses`.

    It is the most that a perfect translation of tokenised text gets.
    """
    joined = detokenize_moses(_split_moses(references, language), language)
    return sum_bleu(count_ngrams(joined, references, tokenize), tokenize).score


def words_by(command: str, texts: Sequence[str]) -> list[str]:
    """Split texts written without spaces into words, by a command such as KyTea; see `split_by`.

    For languages without spaces, this makes systems with different words comparable.
    """
    name = f"--words-by {command}"
    try:
        program = shlex.split(command)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from None
    if not program:
        raise DataError("--words-by: the command is empty; name a program that splits lines")
    return split_by(program, texts, name)


def bleu_by_part(counts: np.ndarray, parts: Mapping[str, int]) -> dict[str, float]:
    """Compute BLEU of each test set in a concatenation of test sets, and their ``mean``.

    ``parts`` has the test sets' names and sizes in order. `DataError` if these sizes do not add up.
    """
    if sum(parts.values()) != len(counts):
        raise DataError(
            f"--parts: the parts have {sum(parts.values())} sentences, but the references have "
            f"{len(counts)}"
        )
    ends = [*accumulate(parts.values())]
    sets = np.split(counts, ends[:-1])
    scores = {name: sum_bleu(one).score for name, one in zip(parts, sets, strict=True)}
    return scores | {"mean": fmean(scores.values())}


def looks_tokenised(texts: Iterable[str]) -> bool | None:
    """Tell whether full stops and commas stand alone more often than at the end of a word.

    None if both are equally frequent.
    """
    alone = attached = 0
    for text in texts:
        for token in text.split():
            if token[-1] in ".,":
                alone += len(token) == 1
                attached += len(token) > 1
    return None if alone == attached else alone > attached


def read_text(path: str | Path) -> Sequence[str]:
    """Read the lines of a text file."""
    return Packed(read_lines(path))


def _check_numbers(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations, but {len(references)} references; give one "
            "translation for each sentence"
        )
    if not references:
        raise DataError("no translation and no reference: there is nothing to score")
