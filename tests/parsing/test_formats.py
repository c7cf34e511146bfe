import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.parsing.formats import FORMATS, Analysis
from syncattn_fairseq.parsing.formats.parsed_sentence import Surface

CONLLU = """\
# sent_id = 1
# text = Er ist im Haus.
1\tEr\ter\tPRON\t_\t_\t5\tnsubj\t_\t_
2\tist\tsein\tAUX\t_\t_\t5\tcop\t_\t_
3-4\tim\t_\t_\t_\t_\t_\t_\t_\t_
3\tin\tin\tADP\t_\t_\t5\tcase\t_\t_
4\tdem\tder\tDET\t_\t_\t5\tdet:poss\t_\t_
5\tHaus\tHaus\tNOUN\t_\t_\t0\troot\t_\tSpaceAfter=No
5.1\tsteht\t_\tVERB\t_\t_\t_\t_\t0:root\t_
6\t.\t.\tPUNCT\t_\t_\t5\tpunct\t_\t_

1\tJa\tja\tINTJ\t_\t_\t0\troot\t_\t_
"""


def test_parts_of_speech_of_conllu():
    found = FORMATS["conllu"](CONLLU.splitlines(), "name")
    assert [analysis.tags for analysis in found] == [
        ["PRON", "AUX", "ADP", "DET", "NOUN", "PUNCT"],
        ["INTJ"],
    ]


EDA = """\
ID=1
001 002 これ 代名詞 dep
002 003 は\u3000が 助詞 dep
003 -1 本 名詞 dep

ID=2

ID=3
1 0 はい 感動詞 0
"""


def sentence_of_json(words: list[str], links: list[tuple[int, int, str]]) -> dict[str, object]:
    """As CoreNLP has it: in links, dependent, governor and label."""
    return {
        "index": 0,
        "basicDependencies": [
            {"dep": label, "governor": governor, "dependent": dependent}
            for dependent, governor, label in links
        ],
        "tokens": [
            {"index": index, "word": word, "originalText": word, "before": "", "after": " "}
            for index, word in enumerate(words, 1)
        ],
    }


def read(format_name: str, text: str) -> list[Analysis]:
    return list(FORMATS[format_name](text.split("\n"), "parsed.txt"))


def test_conllu_has_words_ranges_and_no_empty_nodes():
    assert read("conllu", CONLLU) == [
        Analysis(
            ["Er", "ist", "in", "dem", "Haus", "."],
            [5, 5, 5, 5, 0, 5],
            ["nsubj", "cop", "case", "det:poss", "root", "punct"],
            [Surface("im", 2, 4)],
        ),
        Analysis(["Ja"], [0], ["root"]),
    ]


def test_a_sentence_with_a_range_can_be_written_in_two_ways():
    first, second = read("conllu", CONLLU)
    forms = [[unit.form for unit in reading] for reading in first.list_readings()]
    assert forms == [["Er", "ist", "im", "Haus", "."], first.words]
    assert second.list_readings() == [[Surface("Ja", 0, 1)]]


def test_conllx_has_heads_in_column_seven():
    text = "1\told\t_\tJ\tJJ\t_\t2\tNMOD\t_\t_\n2\tmen\t_\tN\tNNS\t_\t0\tROOT\t_\t_\n"
    assert read("conllx", text) == [Analysis(["old", "men"], [2, 0], ["NMOD", "ROOT"])]


def test_eda_words_may_hold_the_ideographic_space():
    assert read("eda", EDA) == [
        Analysis(["これ", "は\u3000が", "本"], [2, 3, 0], ["dep", "dep", "dep"]),
        Analysis([], [], []),
        Analysis(["はい"], [0], ["0"]),
    ]


def test_eda_conll_is_separated_by_single_spaces():
    text = "1 これ _ 代名詞 _ _ 2\n2 \u3000 _ 空白 _ _ 3\n3 本 _ 名詞 _ _ -1\n"
    without_labels = [Analysis(["これ", "\u3000", "本"], [2, 3, 0], ["_", "_", "_"])]
    assert read("eda-conll", text) == without_labels
    with_labels = text.replace("2\n", "2 nsubj _ _\n")
    assert read("eda-conll", with_labels)[0].labels == ["nsubj", "_", "_"]


def test_corenlp_conll_has_seven_columns():
    text = "1\tIt\tit\tPRP\tO\t2\tnsubj\n2\trains\train\tVBZ\tO\t0\tROOT\n\n"
    assert read("corenlp-conll", text) == [Analysis(["It", "rains"], [2, 0], ["nsubj", "ROOT"])]
    assert read("corenlp-conll", text.replace("\t2\t", "\t_\t")) == [Analysis(["It", "rains"])]


@pytest.mark.parametrize("indent", [None, 2])
def test_corenlp_json_gives_the_words_of_the_text(indent):
    words = ['"', "{a} \\", "(", "b\u2028"]
    first = sentence_of_json(words, [(2, 0, "ROOT"), (1, 2, "punct"), (4, 2, "dep"), (3, 4, "p")])
    first["tokens"][2]["word"] = "-LRB-"  # type: ignore[index]
    second = sentence_of_json(["Yes"], [(1, 0, "ROOT")])
    unparsed = sentence_of_json(["?"], [])
    del unparsed["basicDependencies"]
    document = {"sentences": [first, second], "corefs": {"1": [{"tokens": 3}]}}
    # A file may have several documents, as when a server is asked line by line.
    text = json.dumps(document, indent=indent, ensure_ascii=False) + "\n"
    text += json.dumps({"sentences": [unparsed]}, indent=indent)
    assert read("corenlp-json", text) == [
        Analysis(words, [2, 0, 4, 2], ["punct", "ROOT", "p", "dep"]),
        Analysis(["Yes"], [0], ["ROOT"]),
        Analysis(["?"]),
    ]


def test_json_is_read_sentence_by_sentence():
    document = {"sentences": [sentence_of_json([word], [(1, 0, "ROOT")]) for word in "abc"]}
    lines = iter(json.dumps(document, indent=2).split("\n"))
    assert next(FORMATS["corenlp-json"](lines, "parsed.txt")).words == ["a"]
    assert any('"word": "b"' in line for line in lines)  # not read yet


def test_a_word_without_head_leaves_the_sentence_without_tree():
    found = read("conllu", CONLLU.replace("_\t_\t0\troot\t_\tSpaceAfter=No", "_\t_\t_\t_\t_\t_"))
    assert found[0].heads is None and found[0].labels == []
    assert found[0].surface == [Surface("im", 2, 4)]
    assert found[1].heads == [0]


@pytest.mark.parametrize(
    ("links", "heads"),
    [
        ([(1, 0, "x"), (1, 0, "y")], None),  # two heads
        ([(3, 0, "x")], None),
        ([(0, 0, "x")], None),
        ([(1, 7, "x")], [7]),  # no tree: counted as such, as in CoNLL-U
        ([(1, -1, "x")], [-1]),
    ],
)
def test_links_of_corenlp_that_are_no_tree_leave_out_their_sentence_alone(links, heads):
    good = sentence_of_json(["b"], [(1, 0, "x")])
    text = json.dumps({"sentences": [sentence_of_json(["a"], links), good]})
    bad, after = read("corenlp-json", text)
    assert (bad.words, bad.heads) == (["a"], heads)
    assert after == Analysis(["b"], [0], ["x"])


def test_half_a_character_can_be_written():
    text = json.dumps({"sentences": [sentence_of_json(["a\ud800"], [(1, 0, "\udfff")])]})
    assert read("corenlp-json", text) == [Analysis(["a\ufffd"], [0], ["\ufffd"])]


def test_labels_hold_no_white_space():
    text = "1\ta\t_\t_\t_\t_\t0\tmy root\t_\t_\n2\tb\t_\t_\t_\t_\t1\t\t_\t_"
    assert read("conllx", text)[0].labels == ["my_root", "_"]


words = st.text(
    st.sampled_from(["a", "é", "#", "\u00a0", "\u2028", "\u3000", '"', "{", "\\"]),
    min_size=1,
    max_size=4,
)
sentences = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=4)

# How to write a word of a sentence, given its number, its form, its head and its label.
WRITERS: dict[str, Callable[[int, str, int, str], str]] = {
    "conllu": lambda n, word, head, label: f"{n}\t{word}\t_\t_\t_\t_\t{head}\t{label}\t_\t_",
    "conllx": lambda n, word, head, label: f"{n}\t{word}\t_\t_\t_\t_\t{head}\t{label}\t_\t_",
    "eda": lambda n, word, head, label: f"{n} {head or -1} {word} 名詞 {label}",
    "eda-conll": lambda n, word, head, label: f"{n} {word} _ _ _ _ {head} {label}",
    "corenlp-conll": lambda n, word, head, label: f"{n}\t{word}\t_\t_\tO\t{head}\t{label}",
}


@pytest.mark.parametrize("format_name", WRITERS)
@given(sentences, st.sampled_from(["\n", "\r\n"]), st.integers(1, 3), st.booleans())
def test_words_keep_their_characters_whatever_ends_the_lines(
    tmp_path_factory, format_name, sentences, end, blank_lines, finished
):
    blocks = [
        end.join(
            WRITERS[format_name](number, word, number - 1, "l")
            for number, word in enumerate(sentence, 1)
        )
        for sentence in sentences
    ]
    text = (end * (blank_lines + 1)).join(blocks) + end * finished
    expected = [
        Analysis(sentence, list(range(len(sentence))), ["l"] * len(sentence))
        for sentence in sentences
    ]
    path = tmp_path_factory.getbasetemp() / f"parsed.{format_name}"
    path.write_bytes(text.encode())
    assert list(FORMATS[format_name](read_lines(path), str(path))) == expected
    # Readers mind ends of lines that are still there, too.
    assert list(FORMATS[format_name](text.split("\n"), "parsed.txt")) == expected


ROW = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_"


@pytest.mark.parametrize(
    ("format_name", "text", "line", "what"),
    [
        ("conllu", f"# 1\n{ROW}\n2\tb\t_", 3, "10 columns separated by tabs, got '2\\tb\\t_'"),
        ("conllu", f"{ROW}\n\n\n{ROW}\n3{ROW[1:]}", 5, "expected word 2 of the sentence, got '3'"),
        ("conllu", f"{ROW}\n{ROW}", 2, "a blank line after each sentence"),
        ("conllu", f"# 1\nx{ROW[1:]}", 2, "expected word 1 of the sentence, got 'x'"),
        ("conllu", ROW.replace("\t0\t", "\tno\t"), 1, "the head 'no' is not a number"),
        (
            "conllu",
            f"1-2\tab{ROW[3:]}\n{ROW}\n",
            2,
            "has 1 words, but the range of the token 'ab' ends at word 2",
        ),
        ("conllu", f"{ROW}\n1-2{ROW[1:]}", 2, "got '1-2'"),
        ("conllu", f"1-3{ROW[1:]}\n{ROW}\n2-3{ROW[1:]}", 3, "got '2-3'"),
        ("conllu", f"1-0{ROW[1:]}\n{ROW}", 1, "got '1-0'"),
        ("conllx", f"1-2{ROW[1:]}\n{ROW}", 1, "got '1-2'"),
        ("conllx", ROW.replace("\t", " "), 1, "check that the file is in CoNLL-X"),
        ("eda", "ID=1\n1 0 a", 2, "4 columns separated by single spaces"),
        ("eda", "ID=1\n1 word -1 N 0", 2, "the head 'word' is not a number"),
        ("eda-conll", EDA, 1, "check that the file is of eda -o conll"),
        ("corenlp-conll", "[Text=It]", 1, "7 columns"),
        ("corenlp-json", CONLLU, 13, "before the JSON document is complete"),
        ("corenlp-json", "", 1, "before the JSON document is complete"),
        ("corenlp-json", '{"sentences": [\n{"tokens": []}', 2, "the file ends before"),
        (
            "corenlp-json",
            '{"sentences": [\n{"tokens": [}]}',
            2,
            "not a sentence as CoreNLP writes it",
        ),
        ("corenlp-json", '{"sentences": [\n{"tokens": [{}]}]}', 2, "KeyError: 'word'"),
        ("corenlp-json", '{"sentences": [\n{"tokens": 3}]}', 2, "tokens is not a list of objects"),
        ("corenlp-json", '{"sentences": [\n{"tokens": [{"word": 5}]}]}', 2, "'5' is not text"),
        (
            "corenlp-json",
            json.dumps({"sentences": [sentence_of_json(["a"], [(1, True, "x")])]}),
            1,
            "'True' is not a word's number",
        ),
    ],
)
def test_bad_lines_are_named(format_name, text, line, what):
    with pytest.raises(DataError) as caught:
        read(format_name, text)
    message = str(caught.value)
    assert message.startswith(f"parsed.txt:{line}: ") and what in message
    assert "\n" not in message and "; " in message


def test_sentences_before_a_bad_line_are_given(tmp_path):
    analyses = FORMATS["conllu"]([ROW, "", "bad"], "parsed.txt")
    assert next(analyses).words == ["a"]
    with pytest.raises(DataError, match="parsed.txt:3: "):
        next(analyses)
