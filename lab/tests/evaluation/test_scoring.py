from dataclasses import replace

import pytest

from lab.tests.printed.making import printed
from syncattn_fairseq.trees.brackets import parse_tree
from syncattn_lab.evaluation.attachment import AttachmentScore
from syncattn_lab.evaluation.scoring import (
    Gold,
    Output,
    ScoringOptions,
    SystemScore,
    score_systems,
)
from syncattn_lab.printed.sentences import PrintedSentence

BEAM = [
    printed("d@@ er Hund", source="the dog", source_heads=[2, 0]),
    printed("ja", source="yes", source_heads=[0]),
]
FORCED = [
    printed(
        "d@@ er Hund",
        source="the d@@ og",
        source_heads=[0, 1],
        target_heads=[0, 1],
        links={(0, 0), (0, 1), (2, 2)},
    ),
    printed("ja", source="yes", source_heads=[0], target_heads=[0], links={(0, 0)}),
]
GOLD = Gold(
    references=["der Hund", "ja"],
    source_heads=[[2, 0], [0]],
    target_heads=[[2, 0], None],
    alignments=([{(0, 0), (1, 1)}, set()], [set(), set()]),
)


def score_system(
    beam: list[PrintedSentence], forced: list[PrintedSentence] | None, gold: Gold
) -> SystemScore:
    return score_systems({"Ours": Output(beam, forced)}, gold)["Ours"]


def test_details_of_the_target_leave_out_what_a_decoder_cannot_see():
    gold = replace(GOLD, target_labels=[["det", "x"], None])
    score = score_system(BEAM, FORCED, gold).target_attachment
    assert score is not None
    for kind in ("distance", "label"):
        assert sum(part.counted for part in score.parts[kind].values()) == 1


def test_trees_of_sentences_whose_words_are_hidden_are_left_out():
    trees = [parse_tree("(S (A der) (B Hund))"), parse_tree("(S ja)")]
    hidden = measured(unknown("<unk> er Hund", [0, 1, 1])[0], [0.1, 0.2, 0.3])
    seen, other = measured(FORCED[0], [0.1, 0.2, 0.3]), measured(FORCED[1], [0.0])
    gold = replace(GOLD, target_trees=trees)
    assert score_system(BEAM, [seen, other], gold).left_out == 0
    score = score_system(BEAM, [hidden, other], gold)
    assert score.left_out == score.target_brackets[1].left_out == 1
    assert score.target_brackets[1].sentences == 1  # the other one


def measured(sentence: PrintedSentence, distances: list[float]) -> PrintedSentence:
    return replace(sentence, target=replace(sentence.target, distances={1: distances}))


def test_without_a_forced_output():
    score = score_system(BEAM, None, GOLD)
    assert score.source_attachment == AttachmentScore(correct=3, counted=3, total=3)
    assert (score.target_attachment, score.alignment) == (None, None)


def unknown(target: str, heads: list[int]) -> list[PrintedSentence]:
    """`FORCED` with an unknown subword in the first target."""
    parses = {"source_heads": [2, 0], "target_heads": heads}
    return [printed(target, source="the d@@ og", **parses, links={(0, 0)}), FORCED[1]]


def test_unknown_subword_that_hides_a_word_boundary():
    score = score_system(BEAM, unknown("<unk> er Hund", [0, 1, 1]), GOLD)  # d@@ er Hund, once
    assert score.left_out == 1
    assert score.target_attachment == AttachmentScore(correct=0, counted=0, total=0)
    assert score.alignment is not None
    assert score.alignment.aer == 1  # what is left is the second sentence's wrong link


def test_unknown_subword_that_hides_nothing():
    score = score_system(BEAM, unknown("der <unk>", [0, 0]), GOLD)  # as many words as gold heads
    assert score.left_out == 0
    assert score.target_attachment == AttachmentScore(correct=1, counted=1, total=2)


def test_intervals_by_length_are_of_the_system_minus_the_baseline():
    references = [f"the cat sat on the mat {n} times" for n in range(12)]
    worse = [text.replace("cat", "dog") if n % 2 else text for n, text in enumerate(references)]
    systems = {
        name: Output([PrintedSentence(text) for text in texts])
        for name, texts in (("good", references), ("bad", worse))
    }
    gold = Gold(references, source=references)
    scores = score_systems(systems, gold, ScoringOptions(baseline="bad", by_length=True))
    good, bad = (scores[name].bleu_by_length for name in systems)
    assert good is not None and bad is not None and good["1-10"].interval is not None
    low, high = good["1-10"].interval
    assert 0 < low < high and bad["1-10"].interval is None


@pytest.mark.parametrize(("reference", "warned"), [("kamus'zz ev.", 1), ("Ali'nin evi.", 0)])
def test_references_that_the_tokenizer_changes_are_told(reference, warned):
    pytest.importorskip("sacremoses")
    beam = [PrintedSentence("Ali ' nin evi .")] * 2
    said = []
    gold = Gold(references=[reference, "Bu İzmir'de bir ev."])
    score_systems({"Ours": Output(beam)}, gold, ScoringOptions(moses_language="tr"), said.append)
    said = [warning for warning in said if warning.startswith("the references themselves score ")]
    assert len(said) == warned


def test_the_tokenizer_is_that_of_all_measures():
    outputs = {"a": Output([PrintedSentence("a,b")])}
    # To the eye it is one word; of its characters, two of three pairs ascend.
    for tokenizer, ribes in (("none", 0), ("char", 100 * 2 / 3)):
        score = score_systems(outputs, Gold(["ab,"]), ScoringOptions(tokenize=tokenizer))["a"]
        assert f"tok:{tokenizer}" in score.bleu.signature
        assert score.texts["ribes"].signature.endswith(f"tok:{tokenizer}")
        assert score.texts["ribes"].score == pytest.approx(ribes)
