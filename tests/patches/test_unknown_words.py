"""--replace-unk, and soft alignments in fairseq-interactive."""

import sys

import pytest
from fairseq import utils
from fairseq.data import Dictionary

import syncattn_fairseq.plugin  # noqa: F401
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.patches import soft_alignments
from syncattn_fairseq.patches.soft_alignments import format_links


def process(alignment, align_dict, remove_bpe=None):
    words = Dictionary()
    tokens = words.encode_line("a x b", append_eos=False, add_if_not_exist=True)
    tokens[1] = words.unk()
    return utils.post_process_prediction(tokens, "u v w", alignment, align_dict, words, remove_bpe)


def test_unknown_words_are_those_of_the_source_that_they_are_linked_to(tmp_path):
    path = tmp_path / "words"
    path.write_text("v V\nw W\n")
    known = utils.load_align_dict(str(path))
    assert known == {"v": "V", "w": "W"}
    links = [(0, 0), (2, 1), (1, 2)]
    _, text, shown = process(links, known)
    assert (text, shown) == ("a W b", links)
    assert process(links, {})[1] == "a w b"
    assert process([(0, 0)], {})[1] == "a <eos> b"
    assert utils.load_align_dict(None) is None
    assert process([], None)[1] == "a <unk> b"


@pytest.mark.parametrize(
    ("alignment", "more", "message"),
    [
        ([], {}, "^--replace-unk: add --print-alignment hard"),
        ([["0.5", "0.5"]], {}, "^--replace-unk: add --print-alignment hard"),
        ([(0, 0)], {"remove_bpe": "sentencepiece"}, "^--replace-unk: .* leave --remove-bpe out"),
    ],
)
def test_what_replacing_them_needs(alignment, more, message):
    with pytest.raises(DataError, match=message):
        process(alignment, {}, **more)


def test_without_a_dictionary_or_with_another_file(tmp_path):
    with pytest.raises(DataError, match="^--replace-unk: give the file of a bilingual dictionary"):
        utils.load_align_dict("@@ ")
    (tmp_path / "words").write_text("v V\nw\n")
    with pytest.raises(
        DataError, match="words:2: expected a source word and a target word, got 1 words"
    ):
        utils.load_align_dict(str(tmp_path / "words"))


def test_soft_alignments_are_printed(monkeypatch):
    from fairseq_cli import interactive

    assert format_links([(0, 0), (2, 1)]) == ["0-0", "2-1"]
    assert format_links([["0.5", "0.5"], ["1", "0"]]) == ["0.5,0.5", "1,0"]
    assert format_links([]) == []
    monkeypatch.setattr(interactive, "main", interactive.main)
    soft_alignments.mend()
    assert interactive._format_links is format_links
    assert "_format_links" in interactive.main.__code__.co_names
    soft_alignments.mend()  # does nothing the second time
    monkeypatch.delitem(sys.modules, "fairseq_cli.interactive")
    soft_alignments.mend()
