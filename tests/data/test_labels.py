from collections import Counter

import pytest
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.labels import (
    build_dictionary,
    load_dictionary,
    locate_dictionary,
    save_dictionary,
)


@given(st.lists(st.sampled_from("abcdefghijk")))
def test_the_most_frequent_label_comes_first(labels):
    dictionary = build_dictionary(Counter(labels))
    assert dictionary.symbols[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert dictionary.symbols[4:] == sorted(set(labels), key=lambda x: (-labels.count(x), x))


def test_the_file_is_read_back_by_fairseq(tmp_path):
    dictionary = build_dictionary(Counter({"nsubj:pass": 2, "mañana": 3}))
    path = locate_dictionary(tmp_path, "en")
    save_dictionary(dictionary, path)
    assert [path.name for path in tmp_path.iterdir()] == ["dict.labels.en.txt"]
    assert path.read_text(encoding="utf-8") == "mañana 3\nnsubj:pass 2\n"
    assert load_dictionary(path) == Dictionary.load(str(path)) == dictionary


def test_labels_that_end_in_a_colon_are_labels(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("acl: 3\nroot 1\n")
    assert load_dictionary(path).symbols[4:] == ["acl:", "root"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"det 1\nroot\n", "Incorrect dictionary format"),
        (b"det 1\ndet 2\n", "Duplicate word"),
        (b"a 1\n\xff 1\n", ":2: not UTF-8"),
        (
            b'"</s>": 0\n"<unk>": 1\nthe: 2\n"a b": 3\n',
            ":1: this is a vocabulary of Marian in YAML",
        ),
    ],
)
def test_what_is_not_a_dictionary_is_named_in_one_line(tmp_path, content, message):
    path = tmp_path / "labels.txt"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        load_dictionary(path)
    assert str(error.value).startswith(f"{path}:") and message in str(error.value)
    assert "\n" not in str(error.value)
