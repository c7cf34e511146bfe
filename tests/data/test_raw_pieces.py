"""Subwords of raw sentences: learnt, joined, counted in words, and binarised with parses."""

import pytest
import sentencepiece
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.cli import bpe, preprocess
from syncattn_fairseq.data.pieces import (
    apply_pieces,
    learn_raw_pieces,
    list_pieces,
    open_pieces,
    read_tags,
    reads_raw_text,
)
from syncattn_fairseq.data.preparation import stored_preparations, stored_schemes
from syncattn_fairseq.data.splitters import split_words
from syncattn_fairseq.data.words import (
    count_subwords,
    find_word_starts,
    is_scheme,
    join_subwords,
    join_text,
    read_pieces,
    split_units,
)

RAW = "raw:uax29"
TEXT = ["The dog’s bowl (the old one) is empty.", "", "A dog, an old one, sleeps…", "l’eau␟ verte "]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("raw") / "train.en"
    path.write_text("".join(f"{line}\n" for line in TEXT * 40), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(text):
    learn = ["learn", "--raw", "en", "--input", str(text), "--vocab-size=360"]
    assert bpe.main([*learn, f"--model={text.parent / 'bpe'}"]) == 0
    return text.parent / "bpe.model"


@pytest.fixture(scope="module")
def processor(model):
    return open_pieces(model)


lines = st.text(st.sampled_from("Thedogold .,’'▁猫\u00a0\u3000\t😀\u0301") | st.characters(
    exclude_categories=["Cs"], exclude_characters="\n\r\0"
), max_size=30)  # fmt: skip


@given(lines)
@example("<unk> <0x41> </s> ▁▁a ")
def test_pieces_join_to_the_sentence(processor, line):
    pieces = apply_pieces(processor, line)
    text, spans = read_pieces(pieces)
    # Control characters are white space in every line that is read, see base/text.py.
    assert text.split() == processor.normalize(line).replace("▁", " ").split()
    if line.isprintable():
        assert text == " ".join(line.replace("▁", "_").split())
    assert text == join_text(pieces, RAW) == processor.decode(pieces)
    assert not {*pieces} & {"<unk>", ""}
    assert [a for a, _ in spans[1:]] == [b for _, b in spans[:-1]]
    offsets = processor.encode(text, out_type="offset_mapping")
    assert (offsets["pieces"], offsets["offsets"]) == (pieces, spans)


@given(lines)
def test_words_are_those_of_the_splitter_by_most_characters(processor, line):
    pieces = apply_pieces(processor, line)
    words = join_subwords(pieces, RAW)
    text = join_text(pieces, RAW)
    assert "".join("".join(words).split()) == "".join(text.split())
    assert len(words) == sum(find_word_starts(pieces, RAW)) == len(count_subwords(pieces, RAW))
    units = split_units(pieces, RAW)
    assert units.starts == find_word_starts(pieces, RAW)
    assert len(units.of_words) == len(split_words(text, "uax29"))


def test_no_piece_has_characters_of_two_words(processor):
    for line in TEXT:
        pieces = apply_pieces(processor, line)
        spans = [f"{text}" for text in join_subwords(pieces, RAW)]
        assert spans == [line[a:b] for a, b in split_words(line, "uax29")]
    assert "▁empty" in list_pieces(processor)
    assert not any(piece.endswith(("y.", "g,")) for piece in list_pieces(processor))
    # The delimiter of the training is a character like others.
    assert "␟" not in "".join(list_pieces(processor))


def test_without_a_splitter_pieces_may_have_characters_of_two_words(tmp_path, capsys, monkeypatch):
    path = tmp_path / "train.zh"
    path.write_text("我看见一只大狗。\n大狗看见我␟。\n" * 20, encoding="utf-8")
    without, _ = learn_raw_pieces([(path, None)], 276)
    learn = ["learn", "--raw", "zh", "--input", str(path), "--vocab-size=276"]
    monkeypatch.setattr("syncattn_fairseq.data.splitters.find_spec", lambda name: None)
    assert bpe.main([*learn, f"--model={tmp_path / 'bpe'}"]) == 0
    assert (tmp_path / "bpe.model").read_bytes() == without
    assert capsys.readouterr().err.startswith(
        "note: zh: each letter of this language counts as a word: rji"
    )
    pieces = list_pieces(open_pieces(tmp_path / "bpe.model"))
    with pytest.raises(DataError, match="Vocabulary size too high"):
        learn_raw_pieces([(path, "uax29")], 276)
    assert "大狗" in pieces and "看见" in pieces and "␟" not in pieces


def test_bytes_that_are_no_characters_and_unknown_splitters():
    pieces = ["▁a", "<0xC3>", "<0xC3>", "<0xA9>", "<0x0A>", "▁"]
    spans = [(0, 1), (1, 2), (2, 2), (2, 3), (3, 4), (4, 4)]
    assert read_pieces(pieces) == ("a\ufffdé\ufffd", spans)
    assert join_subwords(pieces, RAW)[0].startswith("a")
    assert read_pieces(["▁", "▁"]) == ("", [(0, 0), (0, 0)])
    assert find_word_starts(["▁", "▁"], RAW) == [True, False]
    assert find_word_starts([], RAW) == []
    with pytest.raises(DataError, match="'x' is not a splitter"):
        find_word_starts(["▁a"], "raw:x")
    assert is_scheme("raw:elision")
    assert not any(map(is_scheme, ("raw:", "raw:x", "spaces", None, ["none"])))


def test_a_model_of_raw_text_is_known(model, text, processor, tmp_path):
    assert reads_raw_text(processor)
    assert (model.read_bytes(), "") == learn_raw_pieces([(text, "uax29")], 360)
    assert learn_raw_pieces([(text, "uax29")], 340, 100)[1].startswith("learnt from 100 of 160 l")
    words = ["learn", "--input", str(text), "--vocab-size=60", f"--model={tmp_path / 'words'}"]
    assert bpe.main(words) == 0
    assert not reads_raw_text(open_pieces(tmp_path / "words.model"))
    for options in (
        {"byte_fallback": True},
        {"normalization_rule_name": "identity"},
        {"normalization_rule_name": "nfkc", "byte_fallback": True},
    ):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(tmp_path / "m"), vocab_size=360, model_type="bpe",
            minloglevel=3, hard_vocab_limit=False, **options,
        )  # fmt: skip
        assert not reads_raw_text(open_pieces(tmp_path / "m.model"))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--raw", "en", "de", "--vocab-size=360"], "--raw: 2 languages for 1 texts"),
        (["--raw", "en", "--vocab-size=50"], "sentencepiece: Vocabulary size"),
    ],
)
def test_learning_says_what_is_wrong(text, tmp_path, capsys, options, fault):
    assert bpe.main(["learn", "--input", str(text), f"--model={tmp_path / 'm'}", *options]) == 1
    assert fault in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


#: Sentences, the places of their words, heads and labels.
SENTENCES = [
    ("The dog’s bowl.", "0-3 4-9 4-9 10-14 14-15", "2 4 2 0 4", "det nmod case root punct"),
    (" An  old dog ", "1-3 5-8 9-12", "3 3 0", "det amod root"),
    ("It sleeps.", "", "", ""),
]


@pytest.fixture
def corpus(model, tmp_path):
    for side in ("en", "de"):
        for split in ("train", "valid"):
            kinds = ("", "spans.", "heads.", "labels.")
            columns = {kind: [row[n] for row in SENTENCES] for n, kind in enumerate(kinds)}
            (tmp_path / f"{split}.align").write_text("0-0 2-3\n\n\n")
            for kind, rows in columns.items():
                path = tmp_path / f"{split}.{kind}{side}"
                path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
            pieces = tmp_path / f"pieces.{split}.{side}"
            apply = ["apply", f"--model={model}", "--input", str(tmp_path / f"{split}.{side}")]
            assert bpe.main([*apply, "--output", str(pieces)]) == 0
    return tmp_path


def run(corpus, model, *options):
    arguments = ["-s=en", "-t=de", f"--destdir={corpus / 'bin'}", "--joined-dictionary"]
    arguments += [
        f"--trainpref={corpus / 'pieces.train'}",
        f"--validpref={corpus / 'pieces.valid'}",
    ]
    arguments += [f"--trainheads={corpus / 'train'}", f"--validheads={corpus / 'valid'}"]
    return preprocess.main([*arguments, "--subwords", str(model), *options])


def read(corpus, name):
    data = MMapIndexedDataset(str(corpus / "bin" / name))
    return [data[index].tolist() for index in range(len(data))]


def test_parses_of_spans_are_binarised_for_pieces(corpus, model, processor, capsys):
    assert run(corpus, model) == 0
    made = corpus / "bin"
    assert stored_schemes(made) == {"en": RAW, "de": RAW}
    assert {x.tokenizer for x in stored_preparations(made).values()} == {"raw"}
    dictionary = Dictionary.load(str(made / "dict.en.txt"))
    assert dictionary.symbols[4:] == list_pieces(processor)
    labels = Dictionary.load(str(made / "dict.labels.en.txt"))
    for number, (line, spans, *_) in enumerate(SENTENCES):
        pieces = apply_pieces(processor, line)
        marks = read(corpus, "train.heads.en-de.en")[number]
        named = [labels[x] if x >= 0 else x for x in read(corpus, "train.labels.en-de.en")[number]]
        words = count_subwords(pieces, RAW)
        if not spans:
            assert [mark for mark in marks if mark != -1] == [-2] * len(words)
            continue
        first = [place for place, mark in enumerate(marks) if mark != -1]
        assert first == [
            place for place, start in enumerate(find_word_starts(pieces, RAW)) if start
        ]
        # dog’s: two words with one place, of which the first is nearer to the root.
        expected = ([2, 3, 0, 3], ["det", "nmod", "root", "punct"])
        if number:
            expected = ([3, 3, 0], ["det", "amod", "root"])
        assert ([marks[x] for x in first], [named[x] for x in first]) == expected
    # The third of the words that are linked has a place with the second.
    links = read(corpus, "train.align.en-de")[0]
    pairs = {*zip(links[::2], links[1::2], strict=True)}
    assert (0, 0) in pairs
    ends = [*count_subwords(apply_pieces(processor, SENTENCES[0][0]), RAW)]
    begins = [sum(ends[:n]) for n in range(4)]
    assert (begins[1], begins[2]) in pairs
    assert "3 sentences, 7 words" not in capsys.readouterr().err
    # Later parses need no model: what is stored says how subwords are marked.
    again = [f"--trainpref={corpus / 'pieces.train'}", f"--trainheads={corpus / 'train'}"]
    before = (made / "train.heads.en-de.en.bin").read_bytes()
    options = ["-s=en", "-t=de", f"--destdir={made}", "--add=heads.en", *again]
    assert preprocess.main(options) == 0
    assert (made / "train.heads.en-de.en.bin").read_bytes() == before


def test_heads_without_spans_are_of_the_splitters_words(corpus, model):
    for path in [*corpus.glob("*.spans.*"), *corpus.glob("*.align"), *corpus.glob("*.labels.*")]:
        path.unlink()
    for split in ("train", "valid"):
        for side in ("en", "de"):
            (corpus / f"{split}.heads.{side}").write_text("2 3 0 3\n3 3 0\n2 0 2\n")
    assert run(corpus, model) == 0
    marks = read(corpus, "valid.heads.en-de.de")
    assert [[x for x in row if x != -1] for row in marks] == [[2, 3, 0, 3], [3, 3, 0], [2, 0, 2]]


def test_text_without_parses_gets_the_dictionary_of_its_model(corpus, model, processor):
    for path in (*corpus.glob("train.*"), *corpus.glob("valid.*")):
        path.unlink()
    arguments = ["-s=en", "-t=de", f"--destdir={corpus / 'bin'}", f"--subwords={model}"]
    assert preprocess.main([*arguments, f"--trainpref={corpus / 'pieces.train'}"]) == 0
    for side in ("en", "de"):
        dictionary = Dictionary.load(str(corpus / "bin" / f"dict.{side}.txt"))
        assert dictionary.symbols[4:] == list_pieces(processor)
    # Only the record, of data that is there.
    (corpus / "bin" / "subwords.json").unlink()
    assert preprocess.main(arguments) == 0
    assert stored_schemes(corpus / "bin") == {"en": RAW, "de": RAW}


@pytest.mark.parametrize("installed", [True, False])
def test_the_record_has_the_splitter_that_is_there(corpus, model, capsys, monkeypatch, installed):
    for path in (*corpus.glob("train.*"), *corpus.glob("valid.*")):
        path.unlink()
    (corpus / "pieces.train.th").write_bytes((corpus / "pieces.train.en").read_bytes())
    spec = object() if installed else None
    monkeypatch.setattr("syncattn_fairseq.data.splitters.find_spec", lambda name: spec)
    arguments = ["-s=en", "-t=th", f"--destdir={corpus / 'bin'}", f"--subwords={model}"]
    assert preprocess.main([*arguments, f"--trainpref={corpus / 'pieces.train'}"]) == 0
    assert stored_schemes(corpus / "bin")["th"] == ("raw:pythainlp" if installed else RAW)
    notes = [x for x in capsys.readouterr().err.splitlines() if x.startswith("note: th: each let")]
    assert len(notes) == (not installed)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("train.spans.en", "0-3\n\n\n", "train.heads.en:1: 5 heads, but 1 words in "),
        (
            "train.spans.en",
            "0-3 2-9 4-9 10-14 14-15\n\n\n",
            "train.heads.en:1: the span 2-9 cannot follow 0-3",
        ),
        (
            "train.spans.en",
            "0-3 4-\n\n\n",
            "train.spans.en:1: expected the characters of each word",
        ),
        ("train.spans.en", "\n\n\n", "train.heads.en:1: 5 heads, but 0 words in "),
        (
            "train.en",
            "A dog’s bowl.\n An  old dog\nIt sleeps.\n",
            "the subwords belong to 'The dog’s",
        ),
        ("train.heads.en", "2 1 2 0 4\n3 3 0\n\n", "train.heads.en:1: the heads form a cycle"),
        ("train.heads.en", "2 4 2 0\n3 3 0\n\n", "train.heads.en:1: 4 heads, but 5 words in "),
        (
            "train.labels.en",
            "det x case root\n\n\n",
            "train.labels.en:1: 4 labels, but 5 words",
        ),
        ("train.align", "0-0 5-0\n\n\n", "the link 5-0 is not between the 5 words of the"),
    ],
)
def test_what_does_not_fit_is_said(corpus, model, capsys, name, content, fault):
    (corpus / name).write_text(content, encoding="utf-8")
    assert run(corpus, model) == 1
    assert fault in capsys.readouterr().err.splitlines()[-1]
    assert not (corpus / "bin" / "dict.en.txt").exists()


def test_bad_parses_are_dropped_if_asked_for(corpus, model, capsys):
    (corpus / "train.spans.en").write_text("0-3\n1-3 5-8 9-12\n\n")
    (corpus / "train.align").unlink()
    (corpus / "valid.align").unlink()
    assert run(corpus, model, "--on-bad-parse=drop") == 0
    assert "1 parses dropped (1 wrong number of heads)" in capsys.readouterr().out
    marks = read(corpus, "train.heads.en-de.en")
    assert [x for x in marks[0] if x != -1] == [-2] * 4
    assert [x for x in marks[1] if x != -1] == [3, 3, 0]


def test_words_and_raw_sentences_do_not_mix(corpus, model, text, tmp_path, capsys):
    by = "syncattn-tokenise --lang "
    assert run(corpus, model, "--words-by", f"{by}en", f"{by}de") == 1
    assert "--words-by: the subword model splits raw sentences" in capsys.readouterr().err
    other = ["learn", "--raw", "en", "--input", str(text), "--vocab-size=340"]
    assert bpe.main([*other, f"--model={tmp_path / 'other'}"]) == 0
    assert run(corpus, model, str(tmp_path / "other.model")) == 1
    assert "--joined-dictionary: give one subword model for both" in capsys.readouterr().err


def test_units_of_other_sentences_are_refused(processor):
    pieces = apply_pieces(processor, "The dog")
    assert split_units(pieces, RAW, [(1, 4), (6, 9)], " The  dog").of_words == [0, 1]
    with pytest.raises(
        BadParse, match="the subwords belong to 'The dog', not to the sentence 'The cat'"
    ):
        split_units(pieces, RAW, [(0, 3), (4, 7)], "The cat")


def test_names_of_languages_stay_whole_if_a_dictionary_has_them(tmp_path, processor):
    dictionary = tmp_path / "dict.en.txt"
    dictionary.write_text(">>de<< 1\n>>x y<< 2\n▁a 3\n>>fr<< 1 #fairseq:overwrite\n")
    tags = read_tags(dictionary)
    assert tags == {">>de<<", ">>fr<<"}
    whole = apply_pieces(processor, "The dog")
    assert apply_pieces(processor, " >>de<<  The dog", tags) == [">>de<<", *whole]
    assert apply_pieces(processor, ">>fr<<", tags) == [">>fr<<"]
    for text in ("The >>de<< dog", ">>de<<The dog", ">>it<< dog", ">>x y<< dog"):
        assert apply_pieces(processor, text, tags) == apply_pieces(processor, text)
