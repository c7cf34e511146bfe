from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.task_mix import ParsedSource, mix

SOURCE = "the ob@@ server sleeps\n\n( a@@ b )\nhe says\n"
TARGET = "der Be@@ obachter schläft\n\n( ab )\ner sagt\n"
TREES = """\
(ROOT (S (NP-SBJ (DT the) (NN observer)) (VP (VBZ sleeps) (NP (-NONE- *T*))) ))

( (PRN (-LRB- -LRB-) (NN ab) (-RRB- ))) )
(())
"""
HEADS, LABELS = "2 3 0\n\n2 0 2\n\n", "det nsubj root\n\npunct root punct\nx\n"


def write(folder: Path, **contents: str) -> None:
    files = {"source": SOURCE, "target": TARGET, "trees": TREES, "heads": HEADS, "labels": LABELS}
    for name, content in {**files, **contents}.items():
        (folder / name).write_text(content, encoding="utf-8")


def phrases(folder: Path, with_words: bool = False, on_bad_parse: str = "stop") -> ParsedSource:
    trees = (folder / "trees", None, None)
    return ParsedSource(folder / "source", "subword_nmt", *trees, with_words, on_bad_parse)


def dependencies(folder: Path, labels: bool, with_words: bool = False) -> ParsedSource:
    parses = (None, folder / "heads", folder / "labels" if labels else None)
    return ParsedSource(folder / "source", "subword_nmt", *parses, with_words)


def mixed(source: ParsedSource, folder: Path, seed: int = 1) -> tuple[str, list[tuple[str, str]]]:
    outputs = folder / "mixed" / "source", folder / "mixed" / "target"
    counts = mix(source, folder / "target", outputs, seed)
    sides = (path.read_text(encoding="utf-8").split("\n") for path in outputs)
    *examples, last = zip(*sides, strict=True)
    assert last == ("", "")
    return str(counts), examples


def parses(examples: list[tuple[str, str]]) -> dict[str, str]:
    return {source[5:]: target for source, target in examples if source.startswith("<PA> ")}


def test_every_sentence_is_translated_once_and_parses_are_as_many(tmp_path):
    write(tmp_path)
    counts, examples = mixed(phrases(tmp_path), tmp_path)
    assert counts == (
        "4 translations and as many parses, 2 of the parses repeated; 2 sentences without parse, "
        "0 parses dropped"
    )
    pairs = zip(SOURCE.split("\n")[:-1], TARGET.split("\n")[:-1], strict=True)
    first = ("<PA> the ob@@ server sleeps", "(S (NP (DT) (NN) ) (VP (VBZ) ) )")
    third = ("<PA> ( a@@ b )", "(PRN (-LRB-) (NN) (-RRB-) )")
    translations = [(f"<TR> {source}", target) for source, target in pairs]
    assert sorted(examples) == sorted([*translations, first, first, third, third])


def test_words_are_kept_as_subwords(tmp_path):
    write(tmp_path)
    assert parses(mixed(phrases(tmp_path, with_words=True), tmp_path)[1]) == {
        "the ob@@ server sleeps": "(S (NP (DT the ) (NN ob@@ server ) ) (VP (VBZ sleeps ) ) )",
        "( a@@ b )": "(PRN (-LRB- ( ) (NN a@@ b ) (-RRB- ) ) )",
    }


def test_dependencies_take_the_place_of_phrases(tmp_path):
    write(tmp_path)
    sentences = ["the ob@@ server sleeps", "( a@@ b )"]
    for labels, words, expected in (
        (True, False, ["(root (nsubj (det) XX ) XX )", "(root (punct) XX (punct) )"]),
        (False, False, ["( ( () XX ) XX )", "( () XX () )"]),
        (
            True,
            True,
            [
                "(root (nsubj (det the ) ob@@ server ) sleeps )",
                "(root (punct ( ) a@@ b (punct ) ) )",
            ],
        ),
    ):
        found = parses(mixed(dependencies(tmp_path, labels, words), tmp_path)[1])
        assert found == dict(zip(sentences, expected, strict=True))


def test_sentencepiece_and_normalised_words(tmp_path):
    # sentencepiece may normalise; fairseq loses the white space within words
    write(tmp_path, source='▁A \u00bd ▁"\n', target="a\n", trees="(S (N \uff21\u00bd) (Q ''))\n")
    source = ParsedSource(tmp_path / "source", "sentencepiece", tmp_path / "trees", with_words=True)
    assert parses(mixed(source, tmp_path)[1]) == {'▁A \u00bd ▁"': '(S (N ▁A \u00bd ) (Q ▁" ) )'}


@given(st.lists(st.booleans(), min_size=1, max_size=30).filter(any), st.integers(0, 3))
def test_drawing_again_is_even_and_depends_on_the_seed_alone(tmp_path_factory, parsed, seed):
    folder = tmp_path_factory.mktemp("mix")
    write(
        folder,
        source="".join(f"w{i}\n" for i in range(len(parsed))),
        target="".join(f"t{i}\n" for i in range(len(parsed))),
        trees="".join(f"(L{i} w{i})\n" if has else "\n" for i, has in enumerate(parsed)),
    )
    _, examples = mixed(phrases(folder), folder, seed)
    assert mixed(phrases(folder), folder, seed)[1] == examples
    drawn = Counter(example for example in examples if example[0].startswith("<PA>"))
    assert set(drawn) == {(f"<PA> w{i}", f"(L{i})") for i, has in enumerate(parsed) if has}
    assert max(drawn.values()) - min(drawn.values()) <= 1
    assert sorted(set(examples) - set(drawn)) == sorted(
        (f"<TR> w{i}", f"t{i}") for i in range(len(parsed))
    )
    assert len(examples) == 2 * len(parsed) == 2 * drawn.total()


def test_the_seed_changes_the_order_and_what_is_drawn(tmp_path):
    write(
        tmp_path,
        source="".join(f"w{i}\n" for i in range(40)),
        target="t\n" * 40,
        trees="".join(f"(L w{i})\n" if i % 4 else "\n" for i in range(40)),
    )
    first, second = (mixed(phrases(tmp_path), tmp_path, seed)[1] for seed in (1, 2))
    assert sorted(first) != sorted(second)
    assert [source for source, _ in first if "<TR>" in source] != [
        source for source, _ in second if "<TR>" in source
    ]
    tags = "".join(source[1] for source, _ in first)
    assert "TP" in tags and "PT" in tags and tags.count("T") == 40


FAULTS = {
    "(S (DT the) (NN spy) (V sleeps))": "word 2 is 'spy' in the tree, but 'observer' in the text",
    "(S (DT the) (NN observer))": "2 words in the tree, but 3 in the text",
    "(S the observer sleeps on)": "4 words in the tree, but 3 in the text",
    "(S (DT the": "brackets left open: 2",
}


@pytest.mark.parametrize("line", FAULTS)
def test_a_bad_tree_stops_or_is_dropped(tmp_path, line):
    write(tmp_path, trees=f"{line}\n\n(X (X ( )( X ab) (X )))\n(S he says)\n")
    with pytest.raises(DataError) as fault:
        mixed(phrases(tmp_path), tmp_path)
    assert str(fault.value).startswith(f"{tmp_path}/trees:1: {FAULTS[line]}")
    assert "--on-bad-parse drop" in str(fault.value) and "\n" not in str(fault.value)
    assert not (tmp_path / "mixed").exists()
    counts, examples = mixed(phrases(tmp_path, on_bad_parse="drop"), tmp_path)
    reason = "not in brackets" if "open" in FAULTS[line] else "words differ"
    assert counts.endswith(f"1 sentences without parse, 1 parses dropped (1 {reason})")
    assert set(parses(examples)) == {"( a@@ b )", "he says"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"heads": "2 0\n\n\n\n"}, "heads:1: 2 heads, but 3 words in the text"),
        ({"heads": "2 3 0\n\n2 1 0\n\n"}, "heads:3: the heads form a cycle"),
        ({"heads": "2 3 0\n0\n\n\n"}, "heads:2: 1 heads, but 0 words in the text"),
        ({"labels": "det root\n\n\n\n"}, "heads:1: 2 labels, but 3 words in the text"),
        ({"heads": "2 3 x\n\n\n\n"}, "heads:1: expected one integer per word"),
        ({"heads": "\n\n\n\n"}, "heads: no sentence has a parse"),
        ({"heads": "2 3 0\n"}, "heads:1: the file has 1 lines, but"),
        ({"labels": "\n\n"}, "labels:2: the file has 2 lines, but"),
        ({"target": "a\n"}, "target:1: the file has 1 lines, but"),
    ],
)
def test_faults_are_named(tmp_path, files, message):
    write(tmp_path, **files)
    with pytest.raises(DataError) as fault:
        mixed(dependencies(tmp_path, labels=True), tmp_path)
    assert f"{tmp_path}/{message}" in str(fault.value)
    assert not (tmp_path / "mixed").exists()


def test_heads_of_raw_sentences_are_those_of_units(tmp_path):
    """*In dem*, written *Im*, is one unit, and *re-run* is one word of gold."""
    files = {"source": "▁Im ▁re - run .\n▁No\n", "target": "x\ny\n"}
    files |= {"heads": "3 3 0 3\n\n", "labels": "case det root punct\n\n"}
    files |= {"spans": "0-2 0-2 4-10 10-11\n\n", "text": "Im  re-run.\nNo\n"}
    parses = None, tmp_path / "heads", tmp_path / "labels"
    places = tmp_path / "spans", tmp_path / "text"

    def linearise(with_words=False, **changed):
        write(tmp_path, **files | changed)
        source = ParsedSource(tmp_path / "source", "raw:", *parses, with_words, "stop", *places)
        return {target for text, target in mixed(source, tmp_path)[1] if "<PA>" in text}

    assert linearise() == {"(root (case) XX (punct) )"}
    assert linearise(with_words=True) == {"(root (case ▁Im ) ▁re - run (punct . ) )"}
    with pytest.raises(DataError, match="heads:1: 4 heads, but 1 words in the text"):
        linearise(spans="0-2\n\n")
    with pytest.raises(
        DataError, match="heads:1: the subwords belong to 'Im re-run.', not to the sentence 'On"
    ):
        linearise(text="On\nNo\n")


def test_words_of_raw_sentences_without_places_are_the_splitters(tmp_path):
    write(tmp_path, source="▁It ▁isn ' t .\n", target="x\n", heads="2 0 2\n", labels="a b c\n")
    parses = None, tmp_path / "heads", tmp_path / "labels"
    source = ParsedSource(tmp_path / "source", "raw:uax29", *parses, True)
    assert ("<PA> ▁It ▁isn ' t .", "(b (a ▁It ) ▁isn ' t (c . ) )") in mixed(source, tmp_path)[1]
