import json
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli.tokenise import read_preparation
from syncattn_fairseq.data.moses import open_detokenizer, open_tokenizer, raise_first
from syncattn_fairseq.data.preparation import NAME, Preparation, stored_preparations
from syncattn_fairseq.data.segmenters import Words

sacremoses = pytest.importorskip("sacremoses", reason="needs the extra moses")


def tokenise(language, text, rules=2):
    return Preparation("moses", language, rules=rules).tokenise([text])[0]


@pytest.mark.parametrize(
    "language, text, words",
    [
        ("yo", "Ẹ̀mí rẹ̀ dára.", "Ẹ̀mí rẹ̀ dára ."),
        ("fr", normalize("NFD", "L'été très élégant, c'é."), "L' été très élégant , c' é ."),
        ("en", normalize("NFD", "café's"), "café 's"),
        ("en", "☺\ufe0f, e-mai\u0301l", "☺\ufe0f , e-mai\u0301l"),
        ("fa", "می\u200cخواهم", "می\u200cخواهم"),
        ("fi", "EU:n USA:n: 12:30 a: B:C", "EU:n USA:n : 12:30 a : B : C"),
        ("sv", "S:t USA:s kl. 12:30: ja", "S:t USA:s kl. 12:30 : ja"),
        ("en", "a:b", "a : b"),
    ],
)
def test_marks_and_colons_stay_in_their_words(language, text, words):
    assert normalize("NFC", tokenise(language, text)) == normalize("NFC", words)
    assert tokenise(language, text, rules=1) != tokenise(language, text) or language == "en"


def test_marked_letters_are_split_as_others():
    """Aggressive hyphens and apostrophes, too: as in the composed form."""
    for text in ("café-crème", "l'été d'à", "peut-être à l'ou"):
        for aggressive in (False, True):
            prepared = Preparation("moses", "fr", aggressive=aggressive, rules=2)
            [whole, apart] = prepared.tokenise([text, normalize("NFD", text)])
            assert normalize("NFC", apart) == whole


@given(st.text(st.sampled_from("aé\u0301\u0323. ,'’-:;3&\u200d☺")))
def test_no_space_is_put_before_a_mark(text):
    words = tokenise("fr", text)
    marks = "\u0301\u0323\u200d"
    for mark in marks:
        for before in "aé☺&" + marks:  # what has spaces around it has them around its marks
            apart = words.count(f"{before} {mark}")
            assert apart <= text.count(f"{before} {mark}")


@pytest.mark.parametrize(
    "language, text",
    [
        ("cs", "Od 4. října 1988 do roku 2014."),
        ("cs", "Je to 3,5 nebo 3.14 a pošle-li „to“ e-mail."),
        ("fi", "EU:n ja USA:n johtajat sanoivat: ”Ei.”"),
        ("sv", "Han sade ”ja” och ”nej, tack” till S:t Erik."),
        ("pl", "To „nie”, lecz „tak”."),
        ("hi", "वह घर गया।"),
        ("hi", "उसने कहा, “मैं आऊँगा।”"),
        ("bn", "সে গেল। কেন?"),
    ],
)
def test_what_is_split_comes_back(language, text):
    prepared = Preparation("moses", language, rules=2)
    words = prepared.tokenise([text])
    assert prepared.detokenise(words) == [text]


def test_words_of_earlier_texts_are_joined_by_their_rules():
    before = open_detokenizer("cs", 1)("Od 4. října 1988 do roku 2014 .")
    assert before == "Od 4. října1988 do roku2014."
    assert open_detokenizer("hi", 1)("वह गया ।") == "वह गया ।"


TEXTS = [
    "Don't say “well-known & <b>” - at 12:30: yes, 3,000.",
    *(
        "Ẹ̀mí rẹ̀.",
        "EU:n 5. května 1988.",
        "वह गया।",
        "L'été.",
        "U.S.A. (x) ... a,b",
        "☺\ufe0f e\u0301",
    ),
]


@pytest.mark.parametrize("language", ["en", "de", "ro", "tr", "fr", "fi", "cs", "hi"])
def test_the_first_rules_are_sacremoses(language):
    """The texts of published recipes, and of records that say no rules, stay as they were."""
    tokenizer = sacremoses.MosesTokenizer(language)
    prepared = Preparation("moses", language, rules=1)
    plain = [tokenizer.tokenize(text, escape=False, return_str=True) for text in TEXTS]
    assert prepared.tokenise(TEXTS) == plain
    # Whose apostrophes we have always put back otherwise.
    back = [sacremoses.MosesDetokenizer(language).detokenize(x.split()) for x in plain[2:4]]
    assert prepared.detokenise(plain[2:4]) == back


@pytest.mark.parametrize("language", ["en", "de", "ro", "tr"])
def test_the_languages_of_published_recipes_lose_nothing_by_the_new_rules(language):
    text = ["Don't say “well-known & <b>” - at 12:30: yes, 3,000.", "L'art (x) „y”; U.S.A. 5 %"]
    old, new = (Preparation("moses", language, rules=rules) for rules in (1, 2))
    words = old.tokenise(text)
    assert new.tokenise(text) == words
    assert new.detokenise(words) == old.detokenise(words)


@pytest.mark.parametrize(
    "words, language, sentence",
    [
        ("5 people died .", "en", "5 people died."),
        ("iPhone sales rise .", "en", "iPhone sales rise."),
        ("( 3 ) men", "en", "(3) men"),
        ("the dog", "en", "The dog"),
        ("“ the dog ”", "en", "“The dog ”"),
        ("ßen", "de", "ßen"),
        ("ilk adım", "tr", "İlk adım"),
        ("ilk", "en", "Ilk"),
        ("é\u0301a", "en", "É\u0301a"),
        ("_ a", "en", "_ A"),
        (". . .", "en", "..."),
        ("", "en", ""),
    ],
)
def test_the_first_word_alone_gets_a_capital(words, language, sentence):
    prepared = Preparation("moses", language, case="true", rules=2)
    assert prepared.detokenise([words]) == [sentence]


def test_earlier_records_give_the_capitals_that_they_gave():
    prepared = Preparation("moses", "en", case="true", rules=1)
    assert prepared.detokenise(["5 people", "iPhone", "ßa"]) == ["5 People", "IPhone", "SSa"]
    assert raise_first("5 people", "en") == "5 people"


@pytest.mark.parametrize("rules", [1, 2])
def test_only_the_first_word_is_read_in_small_letters(rules):
    segmenter = Words()
    segmenter.known = {"people": 0, "the": 1, "iki": 2}
    segmenter.preparation = Preparation("spaces", "en", case="true", rules=rules)
    found = segmenter.tokenise(["5 People", "“ The", ". ."])
    assert found == [["5 people", "5 People"][rules - 1], "“ the", ". ."]
    segmenter.preparation = Preparation("spaces", "tr", case="true", rules=2)
    assert segmenter.tokenise(["İki"]) == ["iki"]


def test_new_records_have_the_new_rules_and_old_ones_the_first(tmp_path):
    assert read_preparation("syncattn-tokenise --lang cs").rules == 2
    assert read_preparation("syncattn-tokenise --lang cs --rules 1").rules == 1
    assert read_preparation("kytea").rules == 2
    record = {"tokenizer": "moses", "language": "cs"}
    (tmp_path / NAME).write_text(json.dumps({"cs": record}))
    assert stored_preparations(tmp_path) == {"cs": Preparation("moses", "cs", rules=1)}
    assert Preparation("moses", "cs").rules == 2
    for rules in (0, 3, "2", True, None):
        (tmp_path / NAME).write_text(json.dumps({"cs": record | {"rules": rules}}))
        with pytest.raises(DataError, match="damaged"):
            stored_preparations(tmp_path)


def test_a_tokenizer_is_mended_alone():
    """The mended patterns are of one object, not of sacremoses's class."""
    open_tokenizer("fi", 2)
    text = "EU:n e\u0301"
    assert tokenise("fi", text, rules=1) == "EU : n e \u0301"
