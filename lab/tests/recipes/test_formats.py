"""What each reader makes of well and badly written files."""

import html
import io
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import MAX_LINE, join_line
from syncattn_lab.recipes.text_formats import PAIRS, TEXTS

NEWSTEST = """\
\ufeff<refset setid="newstest2013" srclang="any" trglang="de">
<DOC sysid="ref" docid="a" genre="news" origlang="de">
<hl>
<seg id="1"> Überschrift </seg>
</hl>
<p>
<SEG id=2>A &amp;amp; B &lt;/seg&gt; &quot;&#8217;&#x2019;&apos; R&D AT&T; x < y > z</SEG>
<seg
 id="3">über zwei
Zeilen</seg ><seg id="4"></seg>
</p>
</DOC>
<doc docid="b"><seg id="1">noch einer</seg></doc>
</refset>
"""

IWSLT_XML = """\
<?xml version="1.0" encoding="UTF-8"?>\r
<mteval>\r
<srcset setid="iwslt2014-dev2010" srclang="german">\r
<doc docid="767" genre="lectures">\r
<url>http://www.ted.com/talks/a</url>\r
<title>Ein Titel</title>\r
<description>Worum es geht.</description>\r
<seg id="1"> Danke, Chris. </seg>\r
<seg id="2">Tom &amp; Jerry</seg>\r
</doc>\r
</srcset>\r
</mteval>\r
"""

TRAIN_TAGS = """\
<url>http://www.ted.com/talks/a</url>
<keywords>talks, oceans</keywords>
<speaker>A Name</speaker>
<talkid>343</talkid>
<title>A Name: Life in the oceans</title>
<description>A &amp; B go <b>down</b>.</description>
 The first sentence.

<reviewer href="http://www.ted.com/profiles/1">Another Name</reviewer>
<translator href="http://www.ted.com/profiles/2">A Third</translator>
<doc docid="2" genre="lectures">
<title></title>
 The < second > one.
</doc>
"""


def texts(name: str, content: str | bytes) -> list[str]:
    data = content.encode() if isinstance(content, str) else content
    return list(TEXTS[name](io.BytesIO(data), "f"))


def pairs(name: str, content: str, *languages: str) -> list[tuple[str, str]]:
    source, target = languages
    return list(PAIRS[name](io.BytesIO(content.encode()), "f", (source, target)))


def plain_spaces(text: str) -> str:
    """Do as `join_line`, character by character, by Unicode's categories."""
    if {*map(unicodedata.category, text)} <= {"Cc", "Zl", "Zp", "Zs", "Cf"}:
        return ""
    line = [" "]
    for character in text:
        space = unicodedata.category(character) in ("Cc", "Zl", "Zp", "Zs")
        if not (space and line[-1] == " "):
            line.append(" " if space else character)
    return "".join(line).strip(" ")


spaces = st.sampled_from("a é\0\t\n\r\x0b\x1c\x7f\x85\x9f\xa0\u1680\u2003\u2028\u2029\u202f\u3000")


@given(st.text(spaces | st.characters()))
@example("\x1b\xad")  # seen by nobody, a control character and a soft hyphen
@example("\U000e0001")
def test_a_run_of_spaces_and_controls_is_one_space(text):
    assert join_line(text) == plain_spaces(text)


UTF_16 = ("utf-16-le", "utf-16-be")


def test_every_space_of_unicode_counts():
    text = "".join(map(chr, range(0x110000)))
    assert join_line(text) == plain_spaces(text)


@given(st.text(spaces | st.characters(exclude_categories=["Cs"]), min_size=1), st.booleans())
def test_only_newlines_end_a_line_of_plain_text(text, bom):
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    # A first character U+FEFF is a mark of the encoding, one of them.
    lines[0] = lines[0].removeprefix("\ufeff") if not bom else lines[0]
    assert texts("plain", "\ufeff" * bom + text) == [plain_spaces(line) for line in lines]


@pytest.mark.parametrize("name", ["plain", "sgm", "iwslt_tags"])
def test_what_is_not_utf_8_names_its_line(name):
    with pytest.raises(DataError, match=r"^f:2: not UTF-8; .*latin1$"):
        texts(name, b"<seg>a</seg>\nGr\xfc\xdfe\n")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        *(("\ufeffthe man\n".encode(code), "f:1: UTF-16, not UTF-8; convert") for code in UTF_16),
        (
            "the old man\n".encode("utf-16-le"),
            "f:1: UTF-16, not UTF-8; convert it: iconv -f UTF-16",
        ),
        (
            b'<?xml version="1.0"?>\n<tmx version="1.4">\n',
            "f:1: this is XML (such as TMX or XLIFF)",
        ),
        (b'\xef\xbb\xbf<xliff version="1.2">\n', "f:1: this is XML (such as TMX or XLIFF)"),
    ],
)
@pytest.mark.parametrize("name", ["plain", "latin1", "iwslt_tags", "conllu"])
def test_what_is_another_kind_of_file_is_named(name, data, fault):
    with pytest.raises(DataError, match=f"^{re.escape(fault)}"):
        texts(name, data)


@given(st.lists(st.tuples(st.text(st.sampled_from("a &<>;'\"\u2028é")), st.booleans())))
def test_segments_are_read_whether_escaped_or_not(sentences):
    segments = (html.escape(text) if escaped else text for text, escaped in sentences)
    document = "\n".join(f'<p><seg id="1">{segment}</seg></p>' for segment in segments)
    assert texts("sgm", document) == [plain_spaces(text) for text, _ in sentences]


def test_numbers_of_characters_that_are_none():
    numbers = ("&#65;", "&#x41;", "&#99999999;", f"&#{'9' * 5000};", "&#xD800;")
    found = [texts("sgm", f"<seg>{number}</seg>")[0] for number in numbers]
    assert found == ["A", "A", *numbers[2:4], "\ufffd"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_line_without_end_is_no_text(name):
    long = b"<seg>" + b"a" * MAX_LINE
    with pytest.raises(
        DataError, match="^f:2: the line has more than 16,777,216 bytes; check that"
    ):
        texts(name, b"\n" + long)


TREEBANK = """\
\ufeff# sent_id = 1
1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_
1\tin\t_\t_\t_\t_\t3\tcase\t_\t_
2\t10 000\t_\t_\t_\t_\t3\tnummod\t_\t_
2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_
3\t\u2028\t_\t_\t_\t_\t0\troot\t_\t_

# a sentence without words

1\ta\t_\t_\t_\t_\t_\t_\t_\t_
"""


QUOTED = "<seg id='1'> that\u2019s \u2018it\u2019 </seg>"
READ: list[tuple[str, str | bytes, list[str]]] = [
    ("latin1", b"Gr\xfc\xdfe\xa0an\r\n\n\xef", ["Grüße an", "", "ï"]),
    ("conllu", TREEBANK, ["in 10_000 _", "a"]),
    ("conllu_heads", TREEBANK, ["3 3 0", ""]),
    ("conllu_labels", TREEBANK, ["case nummod root", ""]),
    ("sgm", IWSLT_XML, ["Danke, Chris.", "Tom & Jerry"]),  # without titles
    ("sgm", QUOTED, ["that\u2019s \u2018it\u2019"]),
    ("iwslt_xml", QUOTED, ["that's \u2018it'"]),
    (
        *("sgm", NEWSTEST),
        [
            *("Überschrift", "A &amp; B </seg> \"’’' R&D AT&T; x < y > z", "über zwei Zeilen"),
            *("", "noch einer"),
        ],
    ),
    (
        *("iwslt_tags", TRAIN_TAGS),
        [
            *("A Name: Life in the oceans", "A &amp; B go <b>down</b>.", "The first sentence."),
            *("", "", "The < second > one."),
        ],
    ),
]


@pytest.mark.parametrize(("name", "content", "sentences"), READ)
def test_what_is_read(name, content, sentences):
    assert texts(name, content) == sentences


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "sgm",
            "<seg>a</seg>\n<seg id='2'>b\n<seg>c</seg>",
            "f:2: \"<seg id='2'>\" has no matching tag",
        ),
        ("sgm", "<p>\na</seg>", "f:2: '</seg>' has no matching tag"),
        ("sgm", "<p>\n\n<seg>a", "f:3: '<seg>' has no matching tag"),
        (
            "sgm",
            "<seg <seg>a",
            "f:1: '<seg>' has no matching tag",
        ),  # or each would be sought a > for
        ("sgm", f"<seg {'x' * 99}>a", f"f:1: '<seg {'x' * 55}' has no matching tag"),
        ("conllu", "\n1 a\n", "f:2: expected 10 columns separated by tabs"),
        (
            "conllu",
            f"1-2\t{'x' * 99}" + "\t_" * 8,
            f"but the range of the token '{'x' * 60}' ends at word 2",
        ),
    ],
)
def test_what_cannot_be_read_names_its_line(name, content, message):
    with pytest.raises(DataError) as caught:
        texts(name, content)
    assert str(caught.value).startswith("f:") and message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "japanese"),
    [
        (
            "aspec",
            "0.1 ||| A-1 ||| 1 ||| これは\u3000本 ||| This is a  book.\r\n"
            "A-2 ||| 2 ||| 本 ||| \n本 ||| b",
            [("これは 本", "This is a book."), ("本", ""), ("本", "b")],
        ),
        (  # without dates at the end of Japanese
            "aspec_undated",
            "1 ||| これは本。 ［１］ ||| [1] a［１］\n2 ||| ［２．３］ ||| b\n3 ||| 本［注］ ||| c",
            [("これは本。", "[1] a［１］"), ("［２．３］", "b"), ("本［注］", "c")],
        ),
    ],
)
def test_aspec_has_japanese_and_english_last(name, text, japanese):
    assert pairs(name, text, "ja", "en") == japanese
    assert pairs(name, text, "en", "ja") == [(english, ja) for ja, english in japanese]


def test_aspec_refuses():
    with pytest.raises(DataError, match=r"^f:2: no \|\|\| between Japanese and English$"):
        pairs("aspec", "a ||| b\nc\n", "ja", "en")
    with pytest.raises(DataError, match="^f: the languages of aspec are ja and en, not ja and de$"):
        pairs("aspec", "a ||| b\n", "ja", "de")
