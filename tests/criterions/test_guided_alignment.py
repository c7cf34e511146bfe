import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.criterions.terms import TERMS
from syncattn_fairseq.functional import guided_alignment_loss
from tests.criterions.test_criterion import SYNC, TIED, batch, criterion, translation_loss
from tests.models import build

#: Of each sentence of the batch, source (with padding on the left) and target columns.
LINKS = [[(0, 0), (2, 1), (3, 1)], [(3, 0), (4, 3)]]


def loop(attention: Tensor, links: list[list[tuple[int, int]]]) -> float:
    total = 0.0
    for rows, pairs in zip(attention.double().tolist(), links, strict=True):
        for s, t in pairs:
            total -= math.log(rows[t][s]) / sum(target == t for _, target in pairs)
    return total


def with_links() -> dict[str, Any]:
    sample = batch()
    width = sample["target"].size(1)
    flat = [(s, b * width + t) for b, pairs in enumerate(LINKS) for s, t in pairs]
    return {**sample, "alignments": torch.tensor(flat)}


def test_the_loss_equals_the_loop():
    torch.manual_seed(0)
    attention, links = torch.rand(2, 5, 6).softmax(-1), torch.zeros(2, 5, 6)
    for b, pairs in enumerate(LINKS):
        for s, t in pairs:
            links[b, t, s] = 1
    loss = guided_alignment_loss(attention, links).item()
    assert loss == pytest.approx(loop(attention, LINKS), rel=1e-6)
    underflowing = torch.tensor([[1.0, 0.0]], requires_grad=True)
    guided_alignment_loss(underflowing, torch.tensor([[0, 1]])).backward()
    assert underflowing.grad is not None and underflowing.grad.isfinite().all()


@pytest.mark.parametrize("heads", [0, 1, 2])
@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("syntax_transformer_tiny", {}),
        ("transformer_syncattn_tiny", SYNC),
        ("transformer_lpsi_tiny", {**SYNC, **TIED}),
        ("transformer_lpsi_tiny", {**SYNC, **TIED, "alignment_layer": 2}),
    ],
)
def test_it_trains_the_heads_that_others_read(arch, options, heads):
    options = {**options, "decoder_attention_heads": 4, "dropout": 0.0}
    model = build.model(arch, noise=0.1, aligned_heads=heads, **options).train()
    sample, layers = with_links(), model.decoder.distance_sync_layers
    width = sample["net_input"]["src_tokens"].size(1)
    for layer in model.decoder.layers:
        layer.encoder_attn.register_forward_hook(
            lambda module, inputs, output: setattr(module, "shown", output[1])
        )
    loss, _, log = criterion(guided_alignment_weight=0.5)(model, sample)
    read = {model.decoder.alignment_layer, *layers}  # a layer with two purposes counts once
    attentions = {n: model.decoder.layers[n - 1].encoder_attn.shown for n in read}
    attentions = {n: each[: heads or None, ..., :width] for n, each in attentions.items()}
    shown = [*attentions.values()]
    expected = sum(loop(attention.mean(0), LINKS) for attention in shown) / len(read)
    assert log["guided_alignment_loss"].item() == pytest.approx(expected, rel=1e-5)
    assert (loss - translation_loss(model, sample)).item() == pytest.approx(
        0.5 * expected, rel=1e-4
    )
    extra = model(**sample["net_input"])[1]
    torch.testing.assert_close(extra["attn"][0], attentions[model.decoder.alignment_layer].mean(0))
    for tied, number in zip(extra.get("distance_attn", []), layers, strict=True):
        torch.testing.assert_close(tied, attentions[number].mean(0))


def test_a_batch_without_links_has_no_loss_and_data_without_them_is_refused():
    log = criterion(guided_alignment_weight=0.5)(build.model("syntax_transformer_tiny"), batch())[2]
    assert log["guided_alignment_loss"] == log["guided_alignment_loss_applied"] == 0
    task = build.task()
    task.cfg = SimpleNamespace(load_alignments=False)
    options = SimpleNamespace(guided_alignment_weight=0.1)
    with pytest.raises(
        DataError,
        match="--guided-alignment-weight 0.1: the loss needs links .* add --load-alignments",
    ):
        TERMS["guided_alignment_loss"](options, task)
    with pytest.raises(DataError, match="--aligned-heads 3: each decoder layer has 2 heads"):
        build.model("syntax_transformer_tiny", aligned_heads=3)
