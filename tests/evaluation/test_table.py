from __future__ import annotations

from syncattn_fairseq.evaluation.table import text_table


def test_columns_are_aligned() -> None:
    assert text_table([["system", "BLEU"], ["a", "7.00"], ["b", "100.00"]]) == (
        "system    BLEU\na         7.00\nb       100.00"
    )
