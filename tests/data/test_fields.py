from dataclasses import replace

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.fields import (
    LABELS,
    NOTHING,
    PARENT_POSITIONS,
    TREE_DISTANCES,
    SourceFields,
)


def test_the_wishes_of_an_ensemble_are_united():
    pascal = SourceFields(fields=frozenset([PARENT_POSITIONS]))
    lisa = SourceFields(frozenset(["first"]))
    rest = SourceFields(fields=frozenset([LABELS, TREE_DISTANCES]))
    both = pascal | NOTHING | lisa | rest
    names = ["src_labels", "src_parent_positions", "src_tree_distances"]
    assert [field.name for field in both.list_by_name()] == names
    assert both.choose_rule() == "first"
    assert (both | pascal) == both
    assert NOTHING.choose_rule() == "chain"


def test_what_is_read_in_decoding():
    for fields, heads, labels in (
        ([PARENT_POSITIONS], True, False),
        ([TREE_DISTANCES], True, False),
        ([LABELS], False, True),
        ([], False, False),
    ):
        wanted = SourceFields(frozenset(["chain"]), frozenset(fields))
        assert (wanted.reads("heads"), wanted.reads("labels")) == (heads, labels)


def test_different_parents_cannot_scale_one_ensemble():
    parse, random = (
        SourceFields(fields=frozenset([replace(PARENT_POSITIONS, control=control)]))
        for control in ("parse", "random")
    )
    with pytest.raises(
        DataError, match=r"read src_parent_positions of different kinds \(parse, random\)"
    ):
        (parse | random).list_by_name()
