from dataclasses import replace

from syncattn_lab.evaluation.attachment import AttachmentScore
from syncattn_lab.evaluation.length import BucketScore
from syncattn_lab.evaluation.score_table import tabulate_scores
from syncattn_lab.evaluation.scoring import SystemScore
from syncattn_lab.evaluation.significance import Significance
from syncattn_lab.evaluation.translation import BleuScore, TranslationScore

OLD = SystemScore(
    sentences=500,
    texts={
        "bleu": BleuScore(20.0, "nrefs:1", 97.5),
        "chrf": TranslationScore(40.0, "nc:6"),
        "ribes": TranslationScore(70.125, "alpha:0.25"),
    },
    source_attachment=None,
    target_attachment=None,
    alignment=None,
    left_out=0,
)
NEW = replace(OLD, texts=OLD.texts | {"bleu": BleuScore(21.5, "nrefs:1", 101.25)}, left_out=3)


def format_scores(scores):
    return "\n\n".join(table.format() for table in tabulate_scores(scores))


def test_main_table():
    """It has no empty columns: where no word is counted, there is no UAS."""
    nothing = AttachmentScore(0, 0, 3)
    old = replace(OLD, source_attachment=nothing, target_attachment=nothing)
    assert format_scores({"Old": old, "New": NEW}).splitlines() == [
        "system   BLEU   chrF  RIBES  length  sentences",
        "Old     20.00  40.00  70.12    97.5        500",
        "New     21.50  40.00  70.12   101.2        500",
        "",
        "length: words of the translations, in % of the references'",
        "BLEU nrefs:1",
        "chrF nc:6",
        "RIBES alpha:0.25",
        "New: 3 sentences without UAS, AER or trees, since an unknown subword hides where their "
        "words begin",
    ]


def test_significance_table():
    old = replace(OLD, significance=Significance("Old", 0.0, 1.25, None, "bs:1000"))
    test = Significance("Old", 1.5, 1.0, 0.0001, "bs:1000", 0.0001, "better")
    new = replace(NEW, significance=test)
    lines = format_scores({"New": new, "Old": old}).split("\n\n")[2].splitlines()
    assert lines == [
        "system   BLEU  ± 95 %  difference       p  verdict",
        "New     21.50    1.00       +1.50  <0.001   better",
        "Old     20.00    1.25           –       –        –",
    ]
    worse = Significance("Old", -1.5, 1.0, 0.03, "bs:1000", 0.06, "not known")
    three = {"New": new, "Old": old, "Third": replace(NEW, significance=worse)}
    lines = format_scores(three).split("\n\n")[2].splitlines()
    assert lines[0].endswith("     p  p Holm    verdict")
    assert lines[3].endswith(" −1.50   0.030   0.060  not known")


def test_length_table():
    buckets = {"1-10": BucketScore(20, 30.0), "51+": BucketScore(1, 5.5)}
    old = replace(OLD, bleu_by_length=buckets)
    tables = format_scores({"Old": old, "New": replace(NEW, bleu_by_length=buckets)}).split("\n\n")
    assert tables[2].splitlines()[:2] == [
        "system  1-10 (20)  51+ (1)",
        "Old         30.00     5.50",
    ]
    assert tables[3] == "BLEU by the number of words in the source (sentences)"
