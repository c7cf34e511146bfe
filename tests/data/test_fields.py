from __future__ import annotations

import pytest

from syncattn_fairseq.data.errors import DataError
from syncattn_fairseq.data.fields import SourceFields


def test_an_ensemble_wants_what_its_models_want() -> None:
    pascal, lisa = SourceFields(scaling=frozenset(["parse"])), SourceFields(frozenset(["first"]))
    both = pascal | SourceFields() | lisa | SourceFields(labels=True)
    assert both == SourceFields(frozenset(["first"]), frozenset(["parse"]), labels=True)
    assert (both.rule(), both.scaled_parents()) == ("first", "parse")


def test_nothing_is_wanted_to_begin_with() -> None:
    assert SourceFields().scaled_parents() is None
    assert SourceFields().rule() == "chain"


def test_one_ensemble_cannot_be_given_two_kinds_of_parents() -> None:
    with pytest.raises(DataError, match=r"different parents \(parse, random\)"):
        (
            SourceFields(scaling=frozenset(["parse"])) | SourceFields(scaling=frozenset(["random"]))
        ).scaled_parents()
