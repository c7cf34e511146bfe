from __future__ import annotations

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.fields import SourceFields


def test_an_ensemble_wants_what_its_models_want() -> None:
    pascal, lisa = SourceFields(scaling=frozenset(["parse"])), SourceFields(frozenset(["first"]))
    rest = SourceFields(labels=True) | SourceFields(tree_distances=True)
    both = pascal | SourceFields() | lisa | rest
    assert both == SourceFields(frozenset(["first"]), frozenset(["parse"]), True, True)
    assert (both.rule(), both.scaled_parents()) == ("first", "parse")


def test_who_reads_heads() -> None:
    assert SourceFields(scaling=frozenset(["parse"])).reads_heads()
    assert SourceFields(tree_distances=True).reads_heads()
    assert not SourceFields(rules=frozenset(["chain"]), labels=True).reads_heads()


def test_nothing_is_wanted_to_begin_with() -> None:
    assert SourceFields().scaled_parents() is None
    assert SourceFields().rule() == "chain"


def test_one_ensemble_cannot_be_given_two_kinds_of_parents() -> None:
    with pytest.raises(DataError, match=r"different parents \(parse, random\)"):
        (
            SourceFields(scaling=frozenset(["parse"])) | SourceFields(scaling=frozenset(["random"]))
        ).scaled_parents()
