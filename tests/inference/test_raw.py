"""Models that read sentences as people write them, from checkpoints and exports."""

import json

import pytest

import syncattn_fairseq
from syncattn_fairseq.base.errors import BadSentence, DataError
from syncattn_fairseq.cli import translate
from syncattn_fairseq.data.pieces import list_pieces
from syncattn_fairseq.data.words import locate_words
from syncattn_fairseq.inference.answers import Sentence
from syncattn_fairseq.inference.sources import place_parse
from syncattn_fairseq.parsing.parser import Parse, Parser
from tests.export.test_export import read_codes

#: What a line can hold.
ODD = ["Ẹ̀mí, it’s 😀!", "  A  café\u00a0is\u3000here .", "▁ </s> <0x41> @@ ﬁ…", "猫が好き。"]


class OneWordParser(Parser):
    """Takes a sentence for one word, but for its last character, which depends on it."""

    def analyse(self, sentences):
        for number, words in enumerate(sentences):
            yield number, Parse([0] + [1] * (len(words) - 1), ["root"] + ["x"] * (len(words) - 1))

    def split(self, sentences, splitter):
        assert splitter == "uax29"
        cut = [((0, len(s) - 1), (len(s) - 1, len(s))) for s in sentences]
        return [
            ([s[a:b] for a, b in spans], [*spans]) for s, spans in zip(sentences, cut, strict=True)
        ]


@pytest.fixture(scope="module")
def model(raw_corpus):
    return raw_corpus.load(raw_corpus.trained())


def lay_out(text):
    return " ".join(text.replace("▁", "_").split())


def test_subwords_join_to_the_sentence(raw_corpus, model):
    assert not model.tokenised
    for text in (*raw_corpus.lines("test.en"), *ODD):
        [analysis] = model.analyse([text], [text])
        assert str(analysis.source) == str(analysis.translation.sentence) == lay_out(text)
        assert (analysis.text, str(analysis.translation)) == (text, text)
        assert "<unk>" not in analysis.source.pieces
        words = analysis.source.words
        assert sum(analysis.source.lengths) == len(analysis.source.pieces)
        assert [str(analysis.source)[a:b] for a, b in analysis.source.spans] == words
        assert len(analysis.source_parse.tree) == len(words)
    assert model.analyse(["The dog’s here."], ["x"])[0].source.words == [
        "The",
        "dog’s",
        "here",
        ".",
    ]
    assert not model.source_segmenter.describe_unknown()


def test_a_parse_of_a_sentence_goes_with_what_a_model_makes_of_it():
    """Published models read other characters than were written."""
    source = Sentence(["▁1⁄2", "▁ca", "fé...", "▁man", "."], "raw:uax29")
    spans = [(0, 1), (2, 6), (6, 7), (8, 11), (11, 12)]
    tree = Parse([2, 0, 2, 2, 2], [], spans=spans)
    placed = place_parse(tree, source, "½ café… man.")
    words = [str(source)[begin:end] for begin, end in placed.spans]
    assert words == ["1⁄2", "café", "...", "man", "."] and placed.heads == tree.heads
    with pytest.raises(
        DataError, match="the subwords belong to '1⁄2 café... man.', not to the sentence '¼ "
    ):
        place_parse(tree, source, "¼ café… man.")


def test_pieces_are_told_from_sentences(model):
    pieces = model.source_segmenter(["The old man"])[0]
    with pytest.raises(BadSentence, match="the text is in subwords already .*give sentences"):
        model.translate([" ".join(pieces)])
    model.translate(["▁ The old man", "The", "▁"])


def test_it_reads_no_words_but_subwords_if_asked_to(raw_corpus, model):
    path, [text, *_] = raw_corpus.trained(), raw_corpus.lines("test.en")
    with pytest.raises(DataError, match="--tokenised.*: the model reads raw sentences"):
        raw_corpus.load(path, tokenised=True)
    [pieces] = model.source_segmenter([text])
    other = raw_corpus.load(path, in_subwords=True)
    [analysis] = other.analyse([" ".join(pieces)], ["▁D er"])
    assert (analysis.text, str(analysis.translation)) == (text, "Der")
    assert str(other.translate([" ".join(pieces)])[0]) == str(model.translate([text])[0])


def test_exports_translate_the_same_by_their_readme(raw_corpus, model, capsys, monkeypatch):
    monkeypatch.chdir(raw_corpus.folder)
    sources = [*raw_corpus.learned(), *ODD]
    expected = model.translate(sources)
    assert expected[0].startswith("Der Politiker")
    for format in ("fairseq", "ctranslate2"):
        folder = raw_corpus.exported(format)
        assert syncattn_fairseq.load(folder, device="cpu").translate(sources) == expected
    codes = read_codes(raw_corpus.exported("ctranslate2"))
    assert len(codes[1].splitlines()) == 5
    assert not {"sacremoses", "syncattn_fairseq"} & {*codes[1].replace(",", " ").split()}
    for code in codes:
        exec(code.replace('"A sentence."', repr(sources[0])), {})
        assert capsys.readouterr().out == f"{expected[0]}\n"


def test_transformers_has_the_pieces_of_the_training(raw_corpus, model, tmp_path):
    transformers = pytest.importorskip("transformers")
    raw_corpus.export(raw_corpus.checkpoint("transformer"), "transformers", tmp_path / "out")
    assert "sacremoses" not in read_codes(tmp_path / "out")[0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    dictionary = model.task.source_dictionary
    sources = [*raw_corpus.lines("test.en"), *raw_corpus.lines("test.de"), *ODD]
    for text, pieces in zip(sources, model.source_segmenter(sources), strict=True):
        ids = dictionary.encode_line(" ".join(pieces), add_if_not_exist=False).tolist()
        assert tokenizer(text).input_ids == ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == lay_out(text)
    # Marian's tokenizer takes these for languages, unless a space comes first, as in the card.
    marked = [">>de<< The old man.", ">>the old man<<", ">>de<<"]
    for text, pieces in zip(marked, model.source_segmenter(marked), strict=True):
        ids = dictionary.encode_line(" ".join(pieces), add_if_not_exist=False).tolist()
        assert tokenizer(f" {text}").input_ids == ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_records_say_where_words_are(raw_corpus, model, tmp_path, capsys):
    (tmp_path / "text").write_text("The  dog’s old, it’s true.\n", encoding="utf-8")
    path, data = raw_corpus.trained(), raw_corpus.data
    options = ["--path", str(path), "--data-bin", str(data), "--device", "cpu", "--jsonl"]
    options += ["--subwords", str(raw_corpus.subwords), "--input", str(tmp_path / "text")]
    assert translate.main(options) == 0
    side = json.loads(capsys.readouterr().out)["source"]
    assert side["words"] == ["The", "dog’s", "old", ",", "it’s", "true", "."]
    assert [side["text"][a:b] for a, b in side["spans"]] == side["words"]
    assert (
        model.parse(["The  dog’s old."])[0]
        .source.conllu()
        .startswith("# text = The dog’s old.\n1\tThe\t")
    )
    assert "\told\t" in model.parse(["The dog’s old."])[0].source.conllu()


def test_words_of_other_texts_have_no_places():
    assert locate_words(["a", "b c"], " a  b\tc ") == [(1, 2), (4, 7)]
    assert locate_words(["a_"], "a▁") == [(0, 2)]
    assert locate_words(["a", ""], "a") == [(0, 1), (0, 0)]
    assert locate_words(["a"], "b") is None


@pytest.fixture(scope="module")
def pascal(raw_corpus):
    return raw_corpus.load(raw_corpus.checkpoint("transformer_pascal"))


def read_positions(model, sentences, parses=None):
    """Return what the encoder reads of the parses of sentences, without their end."""
    sources = model._read_sources(sentences, parses, syncattn_fairseq.inference.Decoding())
    batch = model._batch(sources)
    assert batch["unparsed"] == []
    return batch["net_input"]["src_parent_positions"], [source.pieces for source in sources]


def test_given_parses_are_of_spans_or_of_the_splitters_words(pascal):
    text = "The old man."
    spans = [(0, 3), (4, 11), (11, 12)]
    found, [pieces] = read_positions(pascal, [text], [Parse([2, 0, 2], [], spans=spans)])
    assert found.shape == (1, len(pieces) + 1)
    middle = (1 + len(pieces) - 2) / 2
    assert found[0].tolist()[:-1] == [middle] * len(pieces)
    rows = [("The", 2, "det"), ("old man", 0, "root"), (".", 2, "punct")]
    columns = ([n, word, *"____", *tree, "_", "_"] for n, (word, *tree) in enumerate(rows, 1))
    conllu = "".join("\t".join(map(str, row)) + "\n" for row in columns) + "\n"
    # Spaces of the text do not matter.
    for given, line in ((conllu, text), (conllu, "The \u00a0old  man .")):
        again, _ = read_positions(pascal, [line], given)
        assert again.tolist()[0][:4] == found.tolist()[0][:4]
    by_rule, _ = read_positions(pascal, [text], [[2, 3, 0, 3]])
    assert by_rule.tolist() != found.tolist()
    for parse, fault in (
        ([2, 0, 2], "the parse has 3 words, but the sentence has 4"),
        (
            Parse([2, 0, 2], [], spans=[(0, 3), (4, 11), (11, 13)]),
            "the span 11-13 cannot follow 4-11",
        ),
        (
            Parse([2, 0, 2], [], spans=[(0, 3), (4, 11)]),
            "the parse has 3 words, but the sentence has 2",
        ),
        (
            conllu.replace("old man", "dog"),
            r"the parse has other words than the sentence \('The dog \.'\)",
        ),
    ):
        with pytest.raises(DataError, match=f"sentence 1: {fault}"):
            read_positions(pascal, [text], parse if isinstance(parse, str) else [parse])


def test_a_parser_finds_words_itself(pascal, monkeypatch):
    monkeypatch.setattr(pascal.task.input_parses, "parser", OneWordParser())
    found, [pieces] = read_positions(pascal, ["The  old man."])
    assert set(found[0].tolist()[:-1]) == {(len(pieces) - 2) / 2}
    monkeypatch.setattr(OneWordParser, "analyse", lambda self, x: iter([(0, Parse([2, 1], []))]))
    batch = pascal._batch(pascal._cut(pascal.source_segmenter, ["no tree"]))
    assert batch["unparsed"] == [0]


def test_an_export_reads_labels_of_units(raw_corpus, tmp_path):
    path = raw_corpus.checkpoint("transformer_sh", source_label_dim=4)
    raw_corpus.export(path, "ctranslate2", tmp_path / "out")
    model = syncattn_fairseq.load(tmp_path / "out", source_parser="random:1", device="cpu")
    tree = Parse([2, 0, 2], ["det", "root", "punct"], spans=[(0, 3), (4, 11), (11, 12)])
    [source] = model._read_sources(["The old man."], [tree], syncattn_fairseq.inference.Decoding())
    [[tokens], unparsed] = model._tokens([source])
    assert unparsed == []
    labels = [token.rpartition("￨")[2] for token in tokens]
    assert labels == ["det"] * source.lengths[0] + ["root"] * sum(source.lengths[1:3]) + ["punct"]


def test_the_dictionary_has_every_piece(raw_corpus, model):
    pieces = list_pieces(model.source_segmenter.processor)
    assert model.task.source_dictionary.symbols[4:] == pieces
    assert "<0xFF>" in pieces
    assert "<unk>" not in pieces
