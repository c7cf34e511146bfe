from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from syncattn_fairseq.data.words import count_subwords, find_schemes, join_subwords


@pytest.mark.parametrize(
    ("scheme", "text", "lengths", "words"),
    [
        ("subword_nmt", "the ob@@ ser@@ ver sleeps", [1, 3, 1], "the observer sleeps"),
        ("subword_nmt", "cut o@@", [1, 1], "cut o"),
        ("subword_nmt", "@@@ @", [2], "@@"),
        ("sentencepiece", "▁the ▁ob ser ver", [1, 3], "the observer"),
        ("sentencepiece", "ob ser ▁sees", [2, 1], "obser sees"),
        ("sentencepiece", "▁a ▁ 猫 ▁b", [1, 2, 1], "a 猫 b"),
        ("sentencepiece", "▁ ▁a b ▁ ▁ ▁c", [3, 3], "ab c"),
        ("sentencepiece", "▁a ▁ ▁", [3], "a"),
        ("sentencepiece", "a b ▁ c d", [2, 3], "ab cd"),  # fairseq's characters
        ("sentencepiece", "der▁ al te▁ s ▁ .▁", [1, 2, 2, 1], "der alte s ."),
        ("sentencepiece", "▁ al te▁ ▁ s ▁", [4, 2], "alte s"),
        ("sentencepiece", "▁a ▁ <0xE4> <0xB8> <0x80> b", [1, 5], "a 一b"),
        ("sentencepiece", "<0xE4> <0xB8> <0x80> ▁ a▁", [4, 1], "一 a"),
        ("sentencepiece", "▁a <0xE4> <0xB8> ▁b <0x0A>", [3, 2], "a\ufffd\ufffd b\ufffd"),
        ("sentencepiece", "▁<0x41> x<0x41>", [2], "<0x41>x<0x41>"),
        ("none", "a@@ ▁b <0x41>", [1, 1, 1], "a@@ ▁b <0x41>"),
        ("subword_nmt", "", [], ""),
        ("sentencepiece", "", [], ""),
        ("none", "", [], ""),
    ],
)
def test_words_of_subwords(scheme, text, lengths, words):
    assert count_subwords(text.split(), scheme) == lengths
    assert join_subwords(text.split(), scheme) == words.split()


@pytest.fixture(scope="session", params=[False, True])
def processor(request: pytest.FixtureRequest) -> SentencePieceProcessor:
    """A model with bytes, which marks the beginnings of words, or their ends."""
    model = BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["the old man saw it"] * 9),
        model_writer=model,
        vocab_size=280,
        model_type="bpe",
        byte_fallback=True,
        treat_whitespace_as_suffix=request.param,
        hard_vocab_limit=False,
        minloglevel=3,
    )
    return SentencePieceProcessor(model_proto=model.getvalue())


@given(
    st.lists(st.text(st.sampled_from("theold猫éß😀\u3000<0xE4>"), min_size=1, max_size=5)),
    st.lists(st.sampled_from(["<0xE4>", "<0xB8>", "<0x41>", "<0xF0>", "<0xFF>", "old", "t"])),
)
def test_join_agrees_with_the_decoder_of_sentencepiece(processor, words, others):
    for pieces in (processor.encode(" ".join(words), out_type=str), others):
        joined = " ".join(join_subwords(pieces, "sentencepiece"))
        assert joined == processor.decode_pieces(pieces).strip(" ")


def test_join_agrees_with_fairseq():
    from fairseq.data.data_utils import post_process

    for text in ("the ob@@ ser@@ ver x@@", "▁the ▁ob ser ver ▁ 猫"):
        scheme = "subword_nmt" if "@@" in text else "sentencepiece"
        assert " ".join(join_subwords(text.split(), scheme)) == post_process(text, scheme)


def test_unknown_scheme():
    with pytest.raises(ValueError, match="unknown scheme 'wordpiece'; choose one of subword_nmt"):
        count_subwords(["a"], "wordpiece")


def test_schemes_are_found_in_the_order_of_their_marks():
    texts = ["no marks, a▁b and a@@b", "a@@ b ▁c", "▁a b@@", "▁a", "a▁"]
    both = ["subword_nmt", "sentencepiece"]
    assert list(find_schemes(texts)) == [*both, *reversed(both), "sentencepiece", "sentencepiece"]
