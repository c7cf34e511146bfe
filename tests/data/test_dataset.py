from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from fairseq import utils
from fairseq.data import LanguagePairDataset
from fairseq.trainer import Trainer

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.dataset import SyntaxPairDataset, load_marks
from syncattn_fairseq.data.fields import (
    LABELS,
    PARENT_POSITIONS,
    TREE_DISTANCES,
    SourceFields,
    ask_for_word_distances,
)
from syncattn_fairseq.data.subwords import CONTINUATION, NO_HEAD, find_parents
from tests.data.test_mmap_blocks import write_items
from tests.models import build

MARKS = [
    torch.tensor([2, 0, CONTINUATION, 2]),
    torch.tensor([0]),
    torch.tensor([NO_HEAD, CONTINUATION, NO_HEAD]),
    torch.tensor([2, CONTINUATION, 3, 0, CONTINUATION]),
]


def pairs(left_pad_source: bool = True, left_pad_target: bool = False) -> LanguagePairDataset:
    lengths = [len(m) for m in MARKS]
    dictionary = build.dictionary()
    return LanguagePairDataset(
        build.sentences(lengths),
        [n + 1 for n in lengths],
        dictionary,
        build.sentences(lengths, seed=1),
        [n + 1 for n in lengths],
        dictionary,
        left_pad_source=left_pad_source,
        left_pad_target=left_pad_target,
    )


def reading(*fields: Any) -> SourceFields:
    return SourceFields(fields=frozenset(fields))


def collate(dataset: SyntaxPairDataset, *numbers: int) -> dict[str, Any]:
    """Make a batch of some sentences, or of all."""
    batch: dict[str, Any] = dataset.collater([dataset[i] for i in numbers or range(len(dataset))])
    return batch


@pytest.mark.parametrize("left_pad_source", [False, True])
@pytest.mark.parametrize("left_pad_target", [False, True])
@pytest.mark.parametrize("rule", ["chain", "first"])
def test_parents_point_at_the_columns_of_their_own_sentence(left_pad_source, left_pad_target, rule):
    text, fields = pairs(left_pad_source, left_pad_target), SourceFields(rules=frozenset([rule]))
    batch = collate(SyntaxPairDataset(text, MARKS, MARKS, fields=fields), 2, 0, 3, 1)
    for field, tokens, left, its_rule in (
        ("src_parents", batch["net_input"]["src_tokens"], left_pad_source, rule),
        ("tgt_parents", batch["target"], left_pad_target, "chain"),
    ):
        assert batch[field].shape == tokens.shape
        for row, number in enumerate(batch["id"].tolist()):
            length = len(MARKS[number])
            first = tokens.size(1) - length - 1 if left else 0
            alone = find_parents(MARKS[number].unsqueeze(0), its_rule)[0]
            expected = torch.full((tokens.size(1),), -1)
            expected[first : first + length] = torch.where(alone >= 0, alone + first, -1)
            assert batch[field][row].tolist() == expected.tolist()


@pytest.mark.parametrize("left_pad", [False, True])
def test_the_encoder_is_given_the_middles_of_parents_in_its_own_columns(left_pad):
    batch = collate(SyntaxPairDataset(pairs(left_pad), MARKS, fields=reading(PARENT_POSITIONS)))
    parents = batch["net_input"]["src_parent_positions"]
    nan = float("nan")
    expected = {  # the end of the sentence is its own parent
        0: [1.5, 1.5, 1.5, 1.5, 4],
        1: [0, 1],
        2: [nan] * 4,
        3: [2, 2, 3.5, 3.5, 3.5, 5],
    }
    for row, number in enumerate(batch["id"].tolist()):
        own = torch.tensor(expected[number])
        first = parents.size(1) - len(own) if left_pad else 0
        found = parents[row, first : first + len(own)] - first
        torch.testing.assert_close(found, own.double(), equal_nan=True)
        assert parents[row].isnan().sum() == parents.size(1) - (~own.isnan()).sum()


def test_lengths_for_the_cpu_are_those_of_the_batch_and_stay_there():
    for asked in (True, False):
        batch = collate(SyntaxPairDataset(pairs(), MARKS, lengths_on_cpu=asked))
        moved = utils.move_to_cuda(batch, device=torch.device("meta"))["net_input"]
        assert moved["src_tokens"].is_meta
        assert moved.get("lengths_on_cpu") == ([6, 5, 4, 2] if asked else None)


def test_bfloat16_training_does_not_move_parents():
    batch = collate(SyntaxPairDataset(pairs(), MARKS, fields=reading(PARENT_POSITIONS)), 0)
    trainer = SimpleNamespace(cfg=SimpleNamespace(common=SimpleNamespace(fp16=False, bf16=True)))
    converted = Trainer._fp_convert_sample(trainer, batch)
    parents = batch["net_input"]["src_parent_positions"]
    torch.testing.assert_close(
        converted["net_input"]["src_parent_positions"], parents, equal_nan=True
    )


@pytest.mark.parametrize("control", ["shuffled", "random"])
def test_controls_are_the_same_alone_and_in_a_batch(control):
    fields = reading(replace(PARENT_POSITIONS, control=control))
    dataset = SyntaxPairDataset(pairs(False), MARKS, fields=fields)
    plain = SyntaxPairDataset(pairs(False), MARKS)
    together = collate(dataset)
    for row, number in enumerate(together["id"].tolist()):
        alone = collate(dataset, number)
        parents = alone["net_input"]["src_parent_positions"][0]
        torch.testing.assert_close(
            together["net_input"]["src_parent_positions"][row, : len(parents)],
            parents,
            equal_nan=True,
        )
        labels = collate(plain, number)["src_parents"]
        assert alone["src_parents"].equal(labels), "labels of the losses are never shuffled"


@pytest.mark.parametrize("control", ["shuffled", "random"])
def test_controls_differ_from_sentence_to_sentence(control):
    size, dictionary = 12, build.dictionary()
    one, other = build.sentences([size, size])
    text = LanguagePairDataset([one, other, one.clone()], [size + 1] * 3, dictionary)
    marks = [torch.arange(size)] * 3
    fields = reading(replace(PARENT_POSITIONS, control=control))
    dataset = SyntaxPairDataset(text, marks, fields=fields)
    first, second, third = (dataset[i][f"source_{control}_marks"].tolist() for i in range(3))
    assert first == third != second


@pytest.mark.parametrize("left_pad", [False, True])
def test_every_subword_has_its_words_label(left_pad):
    labels = [
        torch.tensor([5, 6, CONTINUATION, 7]),
        torch.tensor([8]),
        torch.tensor([NO_HEAD, CONTINUATION, NO_HEAD]),
        torch.tensor([5, CONTINUATION, 6, 7, CONTINUATION]),
    ]
    dataset = SyntaxPairDataset(pairs(left_pad), src_labels=labels, fields=reading(LABELS))
    batch = collate(dataset)
    expected = {0: [5, 6, 6, 7, 2], 1: [8, 2], 2: [3, 3, 3, 2], 3: [5, 5, 6, 7, 7, 2]}
    for row, number in enumerate(batch["id"].tolist()):
        padding = [build.PAD] * (6 - len(expected[number]))
        own = expected[number]
        found = batch["net_input"]["src_labels"][row].tolist()
        assert found == (padding + own if left_pad else own + padding)
    assert dataset.list_unparsed() == [2]


@pytest.mark.parametrize("left_pad", [False, True])
def test_tree_distances_are_those_of_the_sentences_own_columns(left_pad):
    dataset = SyntaxPairDataset(pairs(left_pad), MARKS, fields=reading(TREE_DISTANCES))
    batch = collate(dataset)
    distances = batch["net_input"]["src_tree_distances"]
    assert distances.shape == (4, 6, 6)
    for row, number in enumerate(batch["id"].tolist()):
        alone = collate(dataset, number)["net_input"]["src_tree_distances"][0]
        first = 6 - len(alone) if left_pad else 0
        columns = slice(first, first + len(alone))
        assert torch.equal(distances[row, columns, columns], alone)
    # Words 1 and 3 hang from word 2, of two subwords; so does the end of the sentence.
    alone = collate(dataset, 0)["net_input"]["src_tree_distances"][0]
    assert alone[0].tolist() == [0, 1, 1, 2, 2]
    assert alone[2].tolist() == [1, 0, 0, 1, 1]
    assert dataset.list_unparsed() == [2]


@pytest.mark.parametrize("left_pad", [False, True])
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("distance", ["tree", "linear", "random"])
def test_losses_get_the_distances_of_words(side, distance, left_pad):
    field = ask_for_word_distances(side, distance)
    text = pairs(left_pad == (side == "source"), left_pad == (side == "target"))
    dataset = SyntaxPairDataset(text, MARKS, MARKS, loss_fields=[field])
    batch = collate(dataset)
    assert field.name not in batch["net_input"]
    for row, number in enumerate(batch["id"].tolist()):
        length, found = len(MARKS[number]), batch[field.name][row]
        first = found.size(0) - length - 1 if left_pad else 0
        inside = slice(first, first + length)
        alone = collate(dataset, number)[field.name][0, :length, :length]
        assert found[inside, inside].equal(alone)
        found[inside, inside] = -1
        assert found.eq(-1).all(), "the end of the sentence is no word, nor is padding"
    alone = [collate(dataset, i)[field.name][0, 0].tolist() for i in range(4)]
    if distance == "tree":
        assert alone == [[0, 1, 1, 2, -1], [0, -1], [-1] * 4, [0, 0, 1, 2, 2, -1]]
    if distance == "linear":  # the third sentence has no parse
        assert alone == [[0, 1, 1, 2, -1], [0, -1], [0, 0, 1, -1], [0, 0, 1, 2, 2, -1]]


def test_random_trees_of_a_loss_are_those_of_the_sentence():
    size, dictionary = 12, build.dictionary()
    one, other = build.sentences([size, size])
    lengths = [size + 1] * 3
    sides = ([one, other, one.clone()], lengths, dictionary, [other, one, other], lengths)
    heads = [torch.arange(size)] * 3
    fields = [ask_for_word_distances(side, "random") for side in ("source", "target")]
    text = LanguagePairDataset(*sides, dictionary)
    dataset = SyntaxPairDataset(text, heads, heads, loss_fields=fields)
    source, target = ([collate(dataset, i)[field.name] for i in range(3)] for field in fields)
    assert source[0].equal(source[2]) and not source[0].equal(source[1])
    assert target[0].equal(source[1]) and target[1].equal(source[0])


def test_another_tree_is_that_of_a_sentence_with_as_many_words():
    dictionary, sizes = build.dictionary(), [3, 3, 2, 3, 3]
    texts = build.sentences(sizes)
    heads = [torch.tensor(x) for x in ([0, 1, 2], [2, 0, 2], [0, 1], [NO_HEAD] * 3, [0, 1, 1])]
    text = LanguagePairDataset(texts, [size + 1 for size in sizes], dictionary)
    dataset = SyntaxPairDataset(text, heads, fields=reading(TREE_DISTANCES).of_trees("another"))
    found = [dataset[index]["source_another_marks"] for index in range(5)]
    for index, others in {0: (1, 4), 1: (0, 4), 4: (0, 1)}.items():
        assert any(found[index].equal(heads[other]) for other in others)
        assert found[index].equal(dataset[index]["source_another_marks"]), "always the same"
    assert found[2].tolist() == [2, 0], "without another one, mirrored"
    assert found[3].equal(heads[3]), "no parse stays none"
    counted = dataset.heads["source"] = MagicMock()
    counted.__getitem__.side_effect = heads.__getitem__
    assert dataset[0] and counted.__getitem__.call_count == 2, "its own and one of the others"


@pytest.mark.parametrize("scheme", ["subword_nmt", None])
def test_words_without_heads_are_found_in_the_text(scheme):
    dictionary = build.dictionary(2)
    for piece in ("a@@", "b"):
        dictionary.add_symbol(piece)
    begin, end = dictionary.index("a@@"), dictionary.index("b")
    sentence = torch.tensor([begin, end, end, begin, begin, end, build.EOS])
    text = LanguagePairDataset([sentence], [7], dictionary, [sentence[2:]], [5], dictionary)
    fields = [
        ask_for_word_distances(side, distance)
        for side in ("source", "target")
        for distance in ("linear", "tree", "random")
    ]
    dataset = SyntaxPairDataset(text, loss_fields=fields, schemes=(scheme, scheme))
    batch = collate(dataset)
    assert batch["source_linear_distances"][0, 0].tolist() == [0, 0, 1, 2, 2, 2, -1]
    assert batch["target_linear_distances"][0, 0].tolist() == [0, 1, 1, 1, -1]
    assert not {"source_parents", "source_tree_distances", "target_random_distances"} & batch.keys()
    batch = collate(SyntaxPairDataset(text, loss_fields=fields, schemes=("none", scheme)))
    assert batch["source_linear_distances"][0, 0].tolist() == [0, 1, 2, 3, 4, 5, -1]


def test_only_what_the_encoder_reads_can_be_missing():
    scaling = reading(PARENT_POSITIONS)
    assert SyntaxPairDataset(pairs(), MARKS, fields=scaling).list_unparsed() == [2]
    assert SyntaxPairDataset(pairs(), MARKS).list_unparsed() == []


def test_truncated_text_keeps_what_is_left_of_its_parse():
    short = pairs()
    short.src = [torch.cat([s[:2], s[-1:]]) if len(s) > 3 else s for s in short.src]
    short.src_sizes = np.array([len(s) for s in short.src])
    batch = collate(SyntaxPairDataset(short, MARKS, MARKS), 0, 3)
    by_id = dict(zip(batch["id"].tolist(), batch["src_parents"].tolist(), strict=True))
    assert by_id[0] == [1, 1, -1], "word 1 -> word 2, which is the root, cut after one subword"
    assert by_id[3] == [1, -1, -1], "the head, word 2, was cut away"
    dataset = SyntaxPairDataset(short, MARKS, src_labels=MARKS, fields=reading(LABELS))
    assert [len(dataset[i]["source_labels"]) for i in (0, 3)] == [2, 2]
    labels = collate(dataset, 0, 3)["net_input"]["src_labels"]
    assert labels.shape == batch["src_parents"].shape


def test_a_side_without_heads_adds_no_field():
    dataset = SyntaxPairDataset(pairs(), MARKS, gold=True)
    batch = collate(dataset)
    assert "tgt_parents" not in batch
    assert batch["net_input"]["forced_parents"] is batch["src_parents"]
    assert dataset.collater([]) == {}


def write_pairs(path: Path, lengths: list[int], marks: list[Any] | None) -> None:
    """Write texts of some lengths, without their ends, and marks of the source."""
    for language in ("en", "de"):
        text = [torch.arange(n + 1) for n in lengths]
        write_items(Path(f"{path}.en-de.{language}"), text, np.int32)
    if marks is not None:
        write_items(Path(f"{path}.heads.en-de.en"), marks)


def test_heads_are_found_and_combined_as_fairseq_finds_and_combines_text(tmp_path):
    for part, sentences in (("train", [0, 1]), ("train1", [2]), ("train2", [3])):
        marks = [MARKS[i] for i in sentences]
        write_pairs(tmp_path / part, list(map(len, marks)), None if part == "train1" else marks)

    def load(*args: Any, **kwargs: Any) -> list[list[int]] | None:
        heads = load_marks("heads", str(tmp_path), "train", *args, **kwargs)
        return heads and [heads[i].tolist() for i in range(len(heads))]

    first = [MARKS[0].tolist(), MARKS[1].tolist()]
    assert load("en", "de", "en") == first
    assert load("de", "en", "en") == first, "a corpus serves both directions"
    assert load("en", "de", "de") is None
    list_unparsed = [[NO_HEAD] * 3]
    assert load("en", "de", "en", combine=True) == first + list_unparsed + [MARKS[3].tolist()]
    twice = load("en", "de", "en", combine=True, upsample_primary=2)
    assert twice == first * 2 + list_unparsed + [MARKS[3].tolist()]


def test_heads_of_which_none_is_a_parse_count_as_none(tmp_path):
    list_unparsed, parsed = torch.tensor([NO_HEAD, CONTINUATION]), torch.tensor([0, CONTINUATION])
    write_pairs(tmp_path / "train", [2, 2], [list_unparsed, list_unparsed])
    write_items(tmp_path / "train.heads.en-de.de", [list_unparsed, parsed])
    assert load_marks("heads", str(tmp_path), "train", "en", "de", "en") is None
    heads = load_marks("heads", str(tmp_path), "train", "en", "de", "de")
    assert heads is not None and heads[1].tolist() == [0, CONTINUATION]


def test_a_last_part_without_a_parse_hides_no_other(tmp_path):
    for part, marks in (("train", [2, 0]), ("train1", [NO_HEAD, NO_HEAD])):
        write_pairs(tmp_path / part, [2], [marks])
    heads = load_marks("heads", str(tmp_path), "train", "en", "de", "en", combine=True)
    assert heads is not None and heads[0].tolist() == [2, 0]


def test_heads_of_another_text_are_refused(tmp_path):
    write_pairs(tmp_path / "train", [3], [[2, 0]])
    with pytest.raises(DataError, match=r"train\.heads\.en-de\.en: not the heads of .*train\.en"):
        load_marks("heads", str(tmp_path), "train", "en", "de", "en")
