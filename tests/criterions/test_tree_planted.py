import re
from typing import Any

import pytest
import torch

from syncattn_fairseq import testing
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.dataset import SyntaxPairDataset
from syncattn_fairseq.functional import planted_losses
from syncattn_fairseq.functional.controls.tree_planted import count_words
from tests.criterions.test_criterion import batch, criterion, translation_loss
from tests.models import build

FORMS = {
    "biaffine": {"arch": "transformer_dbsa_tiny", "dependency_heads": 2},
    "dot": {
        "arch": "transformer_dbsa_tiny",
        "encoder_parser": "dot",
        "decoder_parser": "dot",
        "tgt_dependency_rows": "input",
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_the_loss_is_the_equation_times_its_weight(form):
    model, sample = build.model(noise=0.1, **FORMS[form]), batch()
    extra = model(**sample["net_input"])[1]
    base = translation_loss(model, sample).item()
    for weight, side, key, causal in (
        ("src_planted_weight", "source", "src_dependency", False),
        ("tgt_planted_weight", "target", "tgt_dependency", True),
    ):
        distances = sample[f"{side}_tree_distances"]
        losses = planted_losses(extra[key][0].mean(1), distances, causal).sum(1)
        words = {"source": [3, 2], "target": [2, 3]}[side]
        assert count_words(distances).tolist() == pytest.approx(words)
        by_tokens = sum(
            n * loss / count for n, loss, count in zip([4, 5], losses.tolist(), words, strict=True)
        )
        for normalization, expected in (("tokens", by_tokens), ("sum", losses.sum().item())):
            make = criterion(**{weight: 0.3}, dep_normalization=normalization)
            loss, _, log = make(model, sample)
            assert loss.item() == pytest.approx(base + 0.3 * expected, rel=1e-5)
            name = weight.replace("weight", "loss")
            assert log[name].item() == pytest.approx(losses.sum().item())
            assert log[f"{name}_words"].item() == pytest.approx(sum(words))


def test_one_side_is_enough():
    model, sample = build.model("transformer_lisa_tiny", encoder_parser="dot").train(), batch()
    loss, _, log = criterion(src_planted_weight=1.0)(model, sample)
    loss.backward()
    assert (log["src_planted_loss_applied"], log["tgt_planted_loss_applied"]) == (1, 0)
    with pytest.raises(DataError, match="decoder has no .* add --decoder-dependency-layer 1"):
        criterion(tgt_planted_weight=1.0)(model, sample)
    with torch.no_grad():
        log = criterion(tgt_planted_weight=1.0)(model, sample)[2]
        assert log["tgt_planted_loss"] == log["tgt_planted_loss_applied"] == 0


@pytest.mark.parametrize("distance", ["tree", "linear", "random"])
def test_a_batch_without_distances_is_refused_with_the_way_out(distance):
    model, sample = build.model("transformer_dbsa_tiny").train(), batch()
    del sample["source_tree_distances"]
    make = criterion(src_planted_weight=0.5, planted_distance=distance)
    message = f"--src-planted-weight 0.5: the batches have no {distance} distances of the source"
    with pytest.raises(DataError, match=re.escape(message) + ".*--task.*--planted-distance linear"):
        make(model, sample)
    with torch.no_grad():
        assert make(model.eval(), sample)[2]["src_planted_loss_applied"] == 0


@pytest.mark.parametrize("distance", ["tree", "linear", "random"])
def test_a_loss_asks_for_its_distances_if_it_has_a_weight(distance):
    chosen: dict[str, Any] = {"planted_distance": distance}
    assert criterion(**chosen).list_fields() == frozenset()
    both = criterion(src_planted_weight=1.0, tgt_planted_weight=1.0, **chosen)
    names = {field.name for field in both.list_fields()}
    assert names == {f"{side}_{distance}_distances" for side in ("source", "target")}


@pytest.mark.parametrize("distance", ["tree", "linear", "random"])
def test_a_sentence_has_the_same_loss_alone_and_in_a_batch(distance):
    model = testing.build_model("transformer_dbsa_tiny", encoder_parser="dot")
    make = criterion(src_planted_weight=1.0, tgt_planted_weight=1.0, planted_distance=distance)

    def losses(sentences: list[int], left_pad: bool) -> list[float]:
        dataset = testing.make_dataset(model, left_pad)
        dataset = SyntaxPairDataset(
            dataset.dataset, *dataset.heads.values(), loss_fields=make.list_fields()
        )
        sample = dataset.collater([dataset[index] for index in sentences])
        log = make(model, sample)[2]
        return [log[f"{side}_planted_loss"].item() for side in ("src", "tgt")]

    alone = [losses([index], False) for index in range(3)]
    for left_pad in (False, True):
        together = losses([0, 1, 2], left_pad)
        assert together == pytest.approx([sum(side) for side in zip(*alone, strict=True)], rel=1e-5)
