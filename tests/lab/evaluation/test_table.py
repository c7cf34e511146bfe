from __future__ import annotations

from dataclasses import replace

from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.lab.evaluation.attachment import AttachmentScore
from syncattn_fairseq.lab.evaluation.length import BucketScore
from syncattn_fairseq.lab.evaluation.score_table import format_scores
from syncattn_fairseq.lab.evaluation.scoring import SystemScore
from syncattn_fairseq.lab.evaluation.significance import Significance
from syncattn_fairseq.lab.evaluation.translation import BleuScore, TranslationScore

OLD = SystemScore(
    sentences=500,
    bleu=BleuScore(20.0, "nrefs:1", 97.5),
    chrf=TranslationScore(40.0, "nc:6"),
    ribes=TranslationScore(70.125, "alpha:0.25"),
    source_attachment=None,
    target_attachment=None,
    alignment=None,
    left_out=0,
)
NEW = replace(OLD, bleu=BleuScore(21.5, "nrefs:1", 101.25), left_out=3)


def test_columns_are_aligned() -> None:
    assert format_table([["system", "BLEU"], ["a", "7.00"], ["b", "100.00"]]) == (
        "system    BLEU\na         7.00\nb       100.00"
    )


def test_main_table() -> None:
    assert format_scores({"Old": OLD, "New": NEW}).splitlines() == [
        "system   BLEU  length   chrF  RIBES  UAS source  UAS target  AER  sentences",
        "Old     20.00    97.5  40.00  70.12           -           -    -        500",
        "New     21.50   101.2  40.00  70.12           -           -    -        500",
        "",
        "length: words of the translations, in % of the references'",
        "BLEU nrefs:1",
        "chrF nc:6",
        "RIBES alpha:0.25",
        "New: 3 sentences without UAS or AER, since an unknown subword hides where their words "
        "begin",
    ]


def test_no_counted_word_is_no_score() -> None:
    nothing = AttachmentScore(0, 0, 3)
    score = replace(OLD, source_attachment=nothing, target_attachment=nothing)
    assert format_scores({"Old": score}).splitlines()[1].split()[5:8] == ["-", "-", "-"]


def test_significance_table() -> None:
    old = replace(OLD, significance=Significance("Old", 0.0, 1.25, None, "bs:1000"))
    new = replace(NEW, significance=Significance("Old", 1.5, 1.0, 0.0001, "bs:1000"))
    lines = format_scores({"New": new, "Old": old}).split("\n\n")[2].splitlines()
    assert lines == [
        "system   BLEU  ± 95 %  difference       p",
        "New     21.50    1.00       +1.50  0.0001  better",
        "Old     20.00    1.25           -       -",
    ]


def test_length_table() -> None:
    buckets = {"1-10": BucketScore(20, 30.0), "51+": BucketScore(1, 5.5)}
    tables = format_scores({"Old": replace(OLD, bleu_by_length=buckets), "New": NEW}).split("\n\n")
    assert tables[2].splitlines() == [
        "system  1-10 (20)  51+ (1)",
        "Old         30.00     5.50",
    ]
    assert tables[3] == "BLEU by the number of words in the source (sentences)"
