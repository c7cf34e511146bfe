import hashlib
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncattn_fairseq.trees.brackets import parse_tree
from syncattn_lab.synthetic import lexicon
from syncattn_lab.synthetic.derivation import Sentence, SentencePair
from syncattn_lab.synthetic.generated_corpus import MAX_WORDS, generate
from syncattn_lab.synthetic.grammar import Grammar


@pytest.fixture(scope="module")
def pairs() -> list[SentencePair]:
    return list(generate(2000, seed=1))


def dependents(sentence: Sentence, head: int) -> list[int]:
    return [i for i, governor in enumerate(sentence.heads) if governor == head + 1]


def subtree(sentence: Sentence, head: int) -> set[int]:
    return {head}.union(*(subtree(sentence, child) for child in dependents(sentence, head)))


# Shape


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_trees_are_projective_and_brackets_hold_the_words(seed):
    for pair in generate(5, seed):
        for sentence in (pair.source, pair.target):
            n = len(sentence.words)
            assert n <= MAX_WORDS
            assert len(sentence.heads) == len(sentence.labels) == len(sentence.upos) == n
            assert sentence.heads.count(0) == 1
            assert [label == "root" for label in sentence.labels] == [
                h == 0 for h in sentence.heads
            ]
            root = sentence.heads.index(0)
            # All words are reached from the root: together with one head each, there is no cycle.
            assert subtree(sentence, root) == set(range(n))
            for i in range(n):
                span = subtree(sentence, i)
                assert max(span) - min(span) + 1 == len(span)
            leaves = re.findall(r"\((\S+) ([^\s()]+)\)", sentence.tree)
            assert tuple(zip(sentence.upos, sentence.words, strict=True)) == tuple(leaves)
            assert sentence.tree.count("(") == sentence.tree.count(")")
            assert sentence.tree.startswith("(S ") and "()" not in sentence.tree


def test_every_bracket_holds_a_word_and_every_word_is_linked_but_german_commas(pairs):
    for pair in pairs:
        # A German verb phrase whose one verb stands elsewhere leaves no empty bracket behind.
        for sentence in (pair.source, pair.target):
            tree = parse_tree(sentence.tree)
            assert tree is not None and tuple(tree.leaves()) == sentence.words
        assert pair.sure <= pair.possible
        assert {j for _, j in pair.possible} <= set(range(len(pair.target.words)))
        assert {i for i, _ in pair.possible} == set(range(len(pair.source.words)))
        unlinked = set(range(len(pair.target.words))) - {j for _, j in pair.sure}
        assert {pair.target.words[j] for j in unlinked} <= {","}
        for i, _ in pair.possible - pair.sure:
            assert pair.source.words[i] in ("does", "do", "the")


def test_seed_decides_everything(pairs):
    assert list(generate(300, seed=1)) == pairs[:300]
    assert next(generate(1, seed=2)) != pairs[0]
    assert len({pair.source.words for pair in pairs}) == len(pairs)
    text = "\n".join(
        f"{pair.source}\t{pair.target}\t{sorted(pair.sure)}\t{sorted(pair.possible)}"
        for pair in pairs
    )
    # Changes when the corpus does: results on the old one are then no longer comparable, and its
    # German has to be read again (agreement, case and the places of verbs were right in this one).
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "7923e8a3f7c98876"


def test_wrong_translations_have_one_error_each(pairs):
    kinds = Counter(wrong.kind for pair in pairs for wrong in pair.wrong)
    assert kinds.keys() == {"agreement", "attachment", "order"} and min(kinds.values()) > 200
    distances = Counter(w.distance for pair in pairs for w in pair.wrong if w.kind == "agreement")
    assert distances[1] > distances[4] > distances[10] > 0
    for pair in pairs:
        words = pair.target.words
        for wrong in pair.wrong:
            assert wrong.words != words and len(wrong.words) == len(words)
            changed = [n for n, one in enumerate(words) if one != wrong.words[n]]
            if wrong.kind == "order":
                assert sorted(wrong.words) == sorted(words)
                assert wrong.distance == changed[-1] - changed[0]
                continue
            [place] = changed
            if wrong.kind == "agreement":
                assert pair.target.upos[place] in ("VERB", "AUX")
                verb = place
                if pair.target.upos[place] == "AUX":
                    verb = pair.target.heads[place] - 1
                while "nsubj" not in {pair.target.labels[d] for d in dependents(pair.target, verb)}:
                    verb = pair.target.heads[verb] - 1  # "und" and a second verb
                [subject] = [
                    child
                    for child in dependents(pair.target, verb)
                    if pair.target.labels[child] == "nsubj"
                ]
                assert wrong.distance == abs(place - subject)
            else:
                assert pair.target.upos[place] == "PRON"
                assert wrong.words[place] in ("der", "die", "das", "den") and wrong.distance == 2


def test_wrong_translations_read_by_a_person():
    """In these sentences, each error is one."""
    found = {
        " ".join(wrong.words): (wrong.kind, wrong.distance)
        for pair in generate(8, seed=1)
        for wrong in pair.wrong
    }
    assert found["heute bemerkt die Söhne aus Dresden meinen Brief ."] == ("agreement", 2)
    assert found["heute die Söhne aus Dresden bemerken meinen Brief ."] == ("order", 4)
    relative = "denken , dass ein kürzerer Ritter eine Tasse nimmt ."
    assert found[f"meine Lehrer , der Öfen angenommen haben , {relative}"] == ("attachment", 2)
    assert found[f"meine Lehrer , die haben Öfen angenommen , {relative}"] == ("order", 2)
    assert ("agreement", 7) in found.values()


def test_one_source_has_one_analysis_and_one_target(monkeypatch):
    # With a handful of words many sentences come again.
    for name in ("NOUNS", "VERBS", "MODIFIERS"):
        tables = getattr(lexicon, name)
        monkeypatch.setattr(lexicon, name, {key: table[:1] for key, table in tables.items()})
    for name, table in vars(lexicon).items():
        if name.isupper() and isinstance(table, tuple) and not name.endswith("PREPOSITIONS"):
            monkeypatch.setattr(lexicon, name, table[: 2 if name.endswith("DETERMINERS") else 1])
    grammar = Grammar(seed=3)
    first: dict[tuple[str, ...], SentencePair] = {}
    for _ in range(10000):
        pair = grammar.draw()
        assert first.setdefault(pair.source.words, pair) == pair
    assert len(first) < 9500


def test_no_two_entries_share_an_english_form():
    nouns = [n for table in lexicon.NOUNS.values() for n in table]
    forms = Counter(form for n in nouns for form in (n.english, n.english_plural))
    forms += Counter(
        form
        for table in lexicon.VERBS.values()
        for verb in table
        for form in {*verb.english, verb.conjugate_english("present", False)}
    )
    forms += Counter(english for a in lexicon.ADJECTIVES for english, _ in a.degrees)
    pairs = (*lexicon.ADVERBS, *lexicon.SENTENCE_ADVERBS, *lexicon.NUMERALS, *lexicon.NAMES)
    forms += Counter(english for english, _ in (*pairs, *lexicon.TOWNS))
    assert [form for form, count in forms.items() if count > 1] == []


# Examples analysed by hand


@pytest.mark.parametrize(
    ("english", "heads", "german", "german_heads", "links"),
    [
        (
            "the teacher from Milan fetches my clock which Susanne bought .",
            "2 5 4 2 0 7 5 10 10 7 5",
            "der Lehrer aus Mailand holt meine Uhr , die Susanne kaufte , ab .",
            "2 5 4 2 0 7 5 11 11 11 7 11 5 5",
            "0-0 1-1 2-2 3-3 4-4 4-12 5-5 6-6 7-8 8-9 9-10 10-13",
        ),
        (
            "in the warmest forest he does not order our wood doll .",
            "4 4 4 8 8 8 8 0 11 11 8 8",
            "im wärmsten Wald bestellt er unsere Holzpuppe nicht .",
            "3 3 4 0 4 7 4 4 4",
            "0-0 1?0 2-1 3-2 4-4 5?3 6-7 7-3 8-5 9-6 10-6 11-8",
        ),
    ],
)
def test_analysed_examples(pairs, english, heads, german, german_heads, links):
    pair = next(p for p in pairs if " ".join(p.source.words) == english)
    assert " ".join(pair.target.words) == german
    assert " ".join(map(str, pair.source.heads)) == heads
    assert " ".join(map(str, pair.target.heads)) == german_heads
    marks = (f"{i}{'-' if (i, j) in pair.sure else '?'}{j}" for i, j in sorted(pair.possible))
    assert " ".join(marks) == links


def test_brackets_of_a_separable_verb(pairs):
    english = "the teacher from Milan fetches my clock which Susanne bought ."
    pair = next(p for p in pairs if " ".join(p.source.words) == english)
    assert pair.source.tree == (
        "(S (NP (NP (DET the) (NOUN teacher)) (PP (ADP from) (NP (PROPN Milan))))"
        " (VP (VERB fetches) (NP (NP (DET my) (NOUN clock))"
        " (SBAR (PRON which) (S (NP (PROPN Susanne)) (VP (VERB bought)))))) (PUNCT .))"
    )
    assert pair.target.tree == (
        "(S (NP (NP (DET der) (NOUN Lehrer)) (PP (ADP aus) (NP (PROPN Mailand))))"
        " (VERB holt) (VP (NP (NP (DET meine) (NOUN Uhr)) (SBAR (PUNCT ,) (PRON die)"
        " (S (NP (PROPN Susanne)) (VP (VERB kaufte))) (PUNCT ,))) (ADP ab)) (PUNCT .))"
    )
