import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data import splitters
from syncattn_fairseq.data.languages import LANGUAGES, find_language, know_language
from syncattn_fairseq.data.splitters import (
    DICTIONARIES,
    SPLITTERS,
    check_splitter,
    choose_splitter,
    find_splitter,
    split_words,
)


@pytest.fixture
def stand_in(monkeypatch):
    """Give `rjieba` that cuts after every second character, and forget it afterwards."""

    def give(cut=lambda text: [text[n : n + 2] for n in range(0, len(text), 2)]):
        monkeypatch.setitem(
            sys.modules, "rjieba", SimpleNamespace(cut=cut, __spec__=SimpleNamespace())
        )
        splitters._open_splitter.cache_clear()

    yield give
    splitters._open_splitter.cache_clear()


def words(text, splitter="uax29"):
    return [text[begin:end] for begin, end in split_words(text, splitter)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The dog's tail: 3.14 %, 4. října.", "The|dog's|tail|:|3.14|%|,|4|.|října|."),
        ("cafe\u0301 Ẹ\u0300mí", "cafe\u0301|Ẹ\u0300mí"),
        ("EU:n 10\u202f000 \u00a0x\u3000y", "EU:n|10|000|x|y"),
        ("वह गया।", "वह|गया|।"),
        ("  \t ", ""),
        ("", ""),
        (" \u0301a", "\u0301|a"),
        ("a\u200bb\u200b c", "a\u200b|b\u200b|c"),
        ("a👩‍👩‍👧b 🇩🇪🇫🇷", "a|👩‍👩‍👧|b|🇩🇪|🇫🇷"),
        ("我看", "我|看"),
    ],
)
def test_the_rules_of_unicode_split_words(text, expected):
    assert words(text) == [word for word in expected.split("|") if word]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("L'eau d’hier, jusqu'ici.", "L'|eau|d’|hier|,|jusqu'|ici|."),
        ("Qu'est-ce qu'il y a aujourd'hui?", "Qu'|est|-|ce|qu'|il|y|a|aujourd'hui|?"),
        ("d'aujourd'hui à quelqu'un", "d'|aujourd'hui|à|quelqu'un"),
        ("un'altra dell'arte c'è O'Brien", "un'|altra|dell'|arte|c'|è|O'Brien"),
        ("dona'm l'home John's s'y", "dona|'m|l'|home|John|'s|s'|y"),
        ("'l' un po' d'acqua", "'|l|'|un|po|'|d'|acqua"),
    ],
)
def test_elided_words_end_with_their_apostrophe(text, expected):
    assert words(text, "elision") == expected.split("|")
    assert words("The dog's tail") == ["The", "dog's", "tail"]  # not where there is no elision


def test_a_dictionary_splits_the_runs_of_its_script_only(stand_in):
    stand_in()
    found = words("我看见狗 don't 3.14, 他们。", "rjieba")
    assert found == ["我看", "见狗", "don't", "3.14", ",", "他们", "。"]


def test_what_a_dictionary_says_never_moves_or_loses_characters(stand_in):
    stand_in(lambda text: ["看", text])  # words that are not in the text: one word
    assert words("我看见 x", "rjieba") == ["我看见", "x"]
    stand_in(lambda text: [*text])  # a mark is no word
    assert words("我\u0301看", "rjieba") == ["我\u0301", "看"]


@example("\u0301 ")
@given(
    st.text(st.sampled_from("aZ3.,:'’ \t\u3000\u0301\u200b\u200d我看狗กา👩🇩-") | st.characters())
)
def test_spans_cover_everything_but_white_space(text):
    for splitter in ("uax29", "elision"):
        spans = split_words(text, splitter)
        covered = [at for begin, end in spans for at in range(begin, end)]
        assert covered == [at for at, c in enumerate(text) if not c.isspace()]
        assert all(begin < end for begin, end in spans)
        marked = [text[begin] for begin, _ in spans if begin and not text[begin - 1].isspace()]
        assert not {*marked} & {"\u0301", "\u200b"}


@given(st.text(st.sampled_from("a'’ \u0301我看狗3")))
def test_a_dictionary_covers_everything_but_white_space(text):
    with pytest.MonkeyPatch.context() as patch:
        cut = SimpleNamespace(cut=lambda run: [*run], __spec__=SimpleNamespace())
        patch.setitem(sys.modules, "rjieba", cut)
        splitters._open_splitter.cache_clear()
        spans = split_words(text, "rjieba")
    splitters._open_splitter.cache_clear()
    covered = [at for begin, end in spans for at in range(begin, end)]
    assert covered == [at for at, c in enumerate(text) if not c.isspace()]


def test_the_kind_of_white_space_does_not_matter():
    text = "10 000 e\u0301t l'\u0301a  b \u0301"
    for space in "\t\u00a0\u202f\u2028\u3000":
        assert split_words(text.replace(" ", space), "elision") == split_words(text, "elision")


def test_each_language_has_its_splitter():
    assert {choose_splitter(x) for x in ("fr", "fra", "Italian", "ca", "fr_CA")} == {"elision"}
    assert [choose_splitter(x) for x in ("zh", "zh-TW", "japanese", "th", "km", "lo", "my")] == [
        *("rjieba", "rjieba", "fugashi", "pythainlp", "khmercut", "laonlp", "icu")
    ]
    assert {choose_splitter(x) for x in ("en", "de", "hi", "ko", "tlh", "x")} == {"uax29"}
    assert {choose_splitter(x) for x in LANGUAGES} == {*SPLITTERS}


def test_without_its_splitter_a_language_has_the_words_of_unicode_and_a_line(monkeypatch):
    assert [find_splitter(x) for x in ("en", "fr")] == [("uax29", ""), ("elision", "")]
    monkeypatch.setattr(splitters, "find_spec", lambda name: object())
    assert find_splitter("th") == ("pythainlp", "")
    monkeypatch.setattr(splitters, "find_spec", lambda name: None)
    name, lack = find_splitter("zh_TW")
    assert name == "uax29" and "\n" not in lack
    assert lack.startswith(
        "zh_TW: each letter of this language counts as a word: rjieba is needed "
    )
    assert lack.endswith("pip install 'syncattn-fairseq[chinese]'")


def test_a_splitter_that_is_not_there_is_named_with_its_extra(monkeypatch):
    check_splitter("uax29")
    check_splitter("elision")
    monkeypatch.setattr(splitters, "find_spec", lambda name: None)
    for name, dictionary in DICTIONARIES.items():
        with pytest.raises(DataError, match=rf"\[{dictionary.extra}\]'$"):
            check_splitter(name)
    splitters._open_splitter.cache_clear()
    with pytest.raises(
        DataError, match=r"^rjieba is needed .*pip install 'syncattn-fairseq\[chinese\]'$"
    ):
        split_words("我", "rjieba")
    with pytest.raises(
        DataError, match=r"^'moses' is not a splitter of sentences into words; give one of uax29, "
    ):
        check_splitter("moses")


REAL = {
    "rjieba": ("我看见一只大狗。", "我|看见|一只|大狗|。"),
    "fugashi": ("犬を見た。", "犬|を|見|た|。"),
    "pythainlp": ("ฉันเห็นหมา ตัวใหญ่", "ฉัน|เห็น|หมา|ตัว|ใหญ่"),
    "khmercut": ("ខ្ញុំឃើញឆ្កែ", "ខ្ញុំ|ឃើញ|ឆ្កែ"),
    "laonlp": ("ຂ້ອຍເຫັນໝາ", "ຂ້ອຍ|ເຫັນ|ໝາ"),
    "icu": ("😀 မြန်မာ စာ x", "😀|မြန်မာ|စာ|x"),
}


def is_tested(name):
    """With CI set, what dev installs must be there; the others are tested where they are."""
    return name in ("rjieba", "pythainlp") or all(map(find_spec, DICTIONARIES[name].libraries))


@pytest.mark.parametrize("name", [*filter(is_tested, DICTIONARIES)])
def test_installed_dictionaries_split_their_language(name):
    for library in DICTIONARIES[name].libraries:
        pytest.importorskip(library)
    text, expected = REAL[name]
    assert words(text, name) == expected.split("|")


@pytest.mark.parametrize(
    "name, code",
    [
        *[("en", "en"), ("eng", "en"), ("English", "en"), ("GERMAN", "de"), ("ger", "de")],
        *[("pt_BR", "pt"), ("pt-br", "pt"), ("zh-Hans-CN", "zh"), ("zho_Hant", "zh")],
        *[("es-419", "es"), ("cmn", "zh"), ("Cantonese", "yue"), ("swiss german", "gsw")],
        *[("xx", None), ("", None), ("src", None), ("texts", None), ("en1", None), ("e", None)],
        *[("-", None), ("xxeng", None), ("en_", None), ("en-US-x", None)],
    ],
)
def test_languages_are_known_by_codes_names_and_regions(name, code):
    assert know_language(name) == code


@pytest.mark.parametrize(
    "path, code",
    [
        *[("english.txt", "en"), ("a/x.eng", "en"), ("z.pt_BR", "pt"), ("train.de.gz", "de")],
        *[("news.de-en.en", "en"), ("train_fr.txt", "fr"), ("test-zh-Hant.txt", "zh")],
        *[("corpus", None), ("en/corpus.txt", None), ("train.src", None), ("", None)],
    ],
)
def test_names_of_files_say_languages(path, code):
    assert find_language(path) == code


def test_every_code_is_a_name_of_its_language():
    assert all(know_language(code) == code for code in LANGUAGES)
    assert all(know_language(name) is not None for name in LANGUAGES.values())
    assert len(LANGUAGES) > 180
