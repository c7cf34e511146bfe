import math
from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
from torch import Tensor

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.criterions.label_smoothed_cross_entropy_with_syntax import (
    LabelSmoothedCrossEntropyWithSyntax,
    make_config,
)
from tests.functional import reference
from tests.models import build

SYNC = {"encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 4}
LOSSES = ("src_dep", "tgt_dep", "sync", "sync_mse", "sync_rank")
WEIGHTS = {f"{loss}_weight": 0.5 for loss in LOSSES}
TIED = {"distance_layers": "1,2", "distance_sync_layers": "2,3", "decoder_attention_heads": 4}


def criterion(**options: Any) -> LabelSmoothedCrossEntropyWithSyntax:
    cfg = make_config()()
    weights = {"src_dep_weight": 0.0, "tgt_dep_weight": 0.0, "sync_weight": 0.0}
    values = {"sentence_avg": False, "label_smoothing": 0.1, **weights, **options}
    for name, value in values.items():
        assert hasattr(cfg, name)
        setattr(cfg, name, value)
    return LabelSmoothedCrossEntropyWithSyntax.build_criterion(cfg, build.task())


def batch(parents: bool = True) -> dict[str, Any]:
    source, target = build.sentences([5, 2]), build.sentences([3, 4], seed=1)
    sample: dict[str, Any] = {
        "net_input": build.net_input(source, target),
        "target": torch.nn.utils.rnn.pad_sequence(target, True, build.PAD),
        "ntokens": 9,
        "nsentences": 2,
    }
    if parents:
        sample["src_parents"] = torch.tensor([[1, 1, 4, -1, 2, -1], [-1, -1, -1, 4, 4, -1]])
        sample["tgt_parents"] = torch.tensor([[0, 0, 1, -1, -1], [3, 1, -1, 2, -1]])
        # Words of one or two subwords, in chains; padding is on the left in the source.
        words = {
            "source": torch.tensor([[0, 1, 1, 2, 2, -1], [-1, -1, -1, 0, 1, -1]]),
            "target": torch.tensor([[0, 1, 1, -1, -1], [0, 1, 2, 2, -1]]),
        }
        for side, word in words.items():
            rows, columns = word.unsqueeze(2), word.unsqueeze(1)
            distances = (rows - columns).abs().short().masked_fill((rows < 0) | (columns < 0), -1)
            sample[f"{side}_tree_distances"] = distances
    return sample


def translation_loss(model: Any, sample: dict[str, Any], **options: Any) -> Tensor:
    fairseqs = LabelSmoothedCrossEntropyCriterion(build.task(), False, 0.1, **options)
    loss: Tensor = fairseqs(model, sample)[0]
    return loss


def expected_sync(extra: dict[str, Any], out: Tensor) -> float:
    back = extra.get("backward_attn", [None, None])
    mapped = [
        reference.project_attention(e[0], c, b)
        for e, c, b in zip(extra["src_dependency"][0], extra["attn"][0], back, strict=True)
    ]
    return reference.sync_attention_loss(
        extra["tgt_dependency"][0][:, 0], torch.tensor(mapped), out, True
    )


def test_fast_training_scores_no_padding():
    results = []
    for fast in (False, True):
        model, rows = build.model("transformer_syncattn_tiny", noise=0.1, **SYNC).train(), []
        model.decoder.output_projection.register_forward_hook(
            lambda layer, inputs, out, rows=rows: rows.append(out[..., 0].numel())
        )
        losses = criterion(tgt_dep_weight=1.0)
        losses.fast = fast
        torch.manual_seed(1)
        objective, size, log = losses(model, batch())
        objective.backward()
        assert rows == [9 if fast else 10]
        losses.eval()(model, batch())
        assert rows[1] == 10, "only in training"
        results.append((log | {"size": size}, [p.grad for p in model.parameters()]))
    torch.testing.assert_close(*results)


def test_each_loss_is_the_equation_times_its_weight():
    model, sample = build.model("transformer_syncattn_tiny", noise=0.1, **SYNC), batch()
    extra = model(**sample["net_input"])[1]
    base = translation_loss(model, sample)
    by_sentence = {
        side: [
            reference.dependency_loss(attention[0], parents.unsqueeze(0), causal)
            for attention, parents in zip(
                extra[f"{side}_dependency"][0].split(1), sample[f"{side}_parents"], strict=True
            )
        ]
        for side, causal in (("src", False), ("tgt", True))
    }
    assert [labels for _, labels in by_sentence["src"]] == [4, 2]
    assert [labels for _, labels in by_sentence["tgt"]] == [3, 2], "nor what is to the right"
    tokens = [4, 5]
    source, target = (
        sum(n * total / labels for n, (total, labels) in zip(tokens, losses, strict=True))
        for losses in by_sentence.values()
    )
    plain_sum = sum(total for total, _ in by_sentence["src"])
    for options, expected in (
        ({"src_dep_weight": 0.5}, 0.5 * source),
        ({"tgt_dep_weight": 2.0}, 2.0 * target),
        ({"src_dep_weight": 0.5, "dep_normalization": "sum"}, 0.5 * plain_sum),
        ({"sync_weight": 10.0}, 10.0 * expected_sync(extra, sample["target"].eq(build.PAD))),
    ):
        loss, sample_size, log = criterion(**options)(model, sample)
        assert (loss - base).item() == pytest.approx(expected, rel=1e-4)
        assert sample_size == 9
        assert log["loss"].item() == pytest.approx(base.item()), "translation only"
        assert log["total_loss"].item() == pytest.approx(loss.item())


OBJECTIVES = {
    "tokens": {"src_dep_weight": 0.5, "tgt_dep_weight": 0.5, "sync_weight": 0.5},
    "sum": {"src_dep_weight": 0.5, "tgt_dep_weight": 0.5, "dep_normalization": "sum"},
    "distances": {"sync_mse_weight": 0.5, "sync_rank_weight": 0.5},
    "planted": {"src_planted_weight": 0.5, "tgt_planted_weight": 0.5},
}


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=list(OBJECTIVES))
def test_a_model_in_float64_has_the_same_objective(objective):
    """fairseq's cross-attention stays in float32 even then."""
    sample, compute = batch(), criterion(**objective)
    single, double = (
        build.model("transformer_syncattn_tiny", noise=0.1, **SYNC, **TIED) for _ in range(2)
    )
    loss, _, _ = compute(double.double(), sample)
    assert loss.dtype == torch.float64
    assert loss.item() == pytest.approx(compute(single, sample)[0].item(), rel=1e-5)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in double.parameters() if p.grad is not None)


def micro_batches(sample: dict[str, Any]) -> list[dict[str, Any]]:
    """Split a batch of two sentences; padding stays, which changes nothing."""
    parts = []
    for row in (slice(0, 1), slice(1, 2)):
        part = {k: v[row] for k, v in sample.items() if torch.is_tensor(v)}
        part["net_input"] = {k: v[row] for k, v in sample["net_input"].items()}
        part |= {"ntokens": int(part["target"].ne(build.PAD).sum()), "nsentences": 1}
        parts.append(part)
    return parts


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=list(OBJECTIVES))
@pytest.mark.parametrize("labelled", [0, 1, 2])
def test_the_objective_of_a_batch_is_the_sum_of_its_parts(objective, labelled):
    """However fairseq splits a batch over steps and workers, it is the same objective."""
    model = build.model("transformer_syncattn_tiny", noise=0.1, **SYNC, **TIED)
    sample = batch()
    for field in ("src_parents", "tgt_parents", "source_tree_distances", "target_tree_distances"):
        sample[field][labelled:] = -1
    make = criterion(**objective)
    whole, size, _ = make(model, sample)
    parts = [make(model, part) for part in micro_batches(sample)]
    assert size == sum(part[1] for part in parts)
    assert whole.item() == pytest.approx(sum(part[0].item() for part in parts), rel=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=list(OBJECTIVES))
def test_losses_weigh_the_same_however_fairseq_counts(objective):
    model, sample = build.model("transformer_syncattn_tiny", noise=0.1, **SYNC, **TIED), batch()
    by_tokens, by_sentences = (
        criterion(sentence_avg=average, **objective)(model, sample) for average in (False, True)
    )
    assert (by_tokens[1], by_sentences[1]) == (9, 2)
    assert by_tokens[0].item() == by_sentences[0].item()
    norms = []
    for objective_value, _, _ in (by_tokens, by_sentences):
        model.zero_grad()
        (objective_value - translation_loss(model, sample)).backward(retain_graph=True)
        norms.append(sum(p.grad.norm() for p in model.parameters() if p.grad is not None).item())
    assert norms[0] == pytest.approx(norms[1])
    assert norms[0] > 0


def test_rows_by_input_are_tied_to_the_cross_attention_of_their_token():
    """D's row of y_t comes from the state that reads y_t, C's from the one that predicts it."""
    options = {"tgt_dependency_rows": "input", "noise": 0.1, **SYNC}
    model, sample = build.model("transformer_syncattn_tiny", **options), batch()
    extra = model(**sample["net_input"])[1]
    by_state = build.model("transformer_syncattn_tiny", noise=0.1, **SYNC)
    [states] = by_state(**sample["net_input"])[1]["tgt_dependency"]
    expected = 0.0
    for b, length in enumerate((4, 5)):
        last = length - 1  # the end of the sentence is read by no state
        mapped = reference.project_attention(
            extra["src_dependency"][0][b, 0], extra["attn"][0][b, :last], None
        )
        moved = states[b : b + 1, 0, 1:length, 1:length]
        nothing = torch.zeros(1, last, dtype=torch.bool)
        expected += reference.sync_attention_loss(moved, torch.tensor([mapped]), nothing, True)
    log = criterion(sync_weight=1.0)(model, sample)[2]
    assert log["sync_loss"].item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("without_eos", [False, True])
def test_the_sync_loss_takes_a_backward_attention_and_can_leave_out_the_end(backward, without_eos):
    options = {"noise": 0.1, **SYNC, **({"sync_backward": "softmax"} if backward else {})}
    model, sample = build.model("transformer_syncattn_tiny", **options), batch()
    extra = model(**sample["net_input"])[1]
    out = sample["target"].eq(build.PAD) | (sample["target"].eq(build.EOS) & without_eos)
    expected = expected_sync(extra, out)
    log = criterion(sync_weight=1.0, sync_without_eos=without_eos)(model, sample)[2]
    assert log["sync_loss"].item() == pytest.approx(expected, rel=1e-4)


def test_several_heads_are_averaged():
    model, sample = build.model("transformer_dbsa_tiny", noise=0.1, dependency_heads=2), batch()
    extra = model(**sample["net_input"])[1]
    each = [
        reference.dependency_loss(extra["src_dependency"][0][:, h], sample["src_parents"], False)[0]
        for h in range(2)
    ]
    log = criterion(src_dep_weight=1.0)(model, sample)[2]
    assert log["src_dep_loss"].item() == pytest.approx(sum(each) / 2, rel=1e-4)
    assert log["src_dep_parents"] == 6


def test_a_batch_without_a_usable_label_adds_nothing():
    model, sample = build.model("transformer_dbsa_tiny").train(), batch()
    sample["src_parents"].fill_(-1)
    sample["tgt_parents"] = torch.tensor([[1, 2, 3, -1, -1], [-1] * 5])
    loss, _, log = criterion(src_dep_weight=0.5, tgt_dep_weight=0.5)(model, sample)
    assert loss.item() == log["loss"].item()
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("term", ["src_dep", "sync_mse"])
@pytest.mark.parametrize("weight", [-0.5, float("nan")])
def test_a_negative_weight_would_train_away_from_the_parse(term, weight):
    with pytest.raises(DataError, match=f"--{term.replace('_', '-')}-weight {weight}: must be 0"):
        criterion(**{f"{term}_weight": weight})


def test_training_heads_without_parses_is_refused_with_the_way_out():
    model, sample = build.model("transformer_dbsa_tiny").train(), batch(parents=False)
    with pytest.raises(ValueError, match="source side.*syncattn-preprocess.*--src-dep-weight 0"):
        criterion(src_dep_weight=0.5)(model, sample)
    criterion()(model, sample)[0].backward()
    with torch.no_grad():
        log = criterion(src_dep_weight=0.5)(model.eval(), sample)[2]
    assert log["src_dep_loss"] == log["src_dep_loss_applied"] == 0, "validation may lack parses"


def test_fairseqs_transformer_trains_with_it():
    model, sample = build.model("transformer_tiny"), batch()
    # No task gives more to a model that has no use for it.
    sample["net_input"] = build.plain_input(sample["net_input"])
    loss, _, log = criterion(src_dep_weight=0.5, sync_weight=0.5)(model, sample)
    assert loss.item() == pytest.approx(translation_loss(model, sample).item())
    assert log["total_loss"] == log["loss"]


@pytest.mark.parametrize("extra", [None, torch.zeros(2, 3)])
def test_models_that_return_no_dictionary_train_with_it(extra):
    sample = batch()

    class Recurrent:
        def __call__(self, **_: Any) -> tuple[Tensor, Tensor | None]:
            return torch.zeros(*sample["target"].shape, 40), extra

        get_targets = staticmethod(lambda sample, _: sample["target"])

        @staticmethod
        def get_normalized_probs(output: Any, log_probs: bool, sample: Any = None) -> Tensor:
            return output[0].log_softmax(-1)

    objective, _, log = criterion().eval()(Recurrent(), sample)
    assert objective == log["loss"] == log["total_loss"] > 0
    assert not any(log[name] for name in log if "dep" in name)


def test_a_prefix_is_ignored_as_fairseq_does():
    model, sample = build.model("syntax_transformer_tiny"), batch()
    loss = criterion(ignore_prefix_size=1)(model, sample)[0].item()
    assert loss == pytest.approx(translation_loss(model, sample, ignore_prefix_size=1).item())
    assert loss < criterion()(model, sample)[0].item()


@pytest.mark.parametrize("shift", [False, True])
def test_distances_are_tied_layer_by_layer(shift):
    model = build.model("transformer_lpsi_tiny", noise=0.3, encoder_layers=3, decoder_layers=3)
    sample = batch()
    extra = model(**sample["net_input"])[1]
    assert len(extra["src_distances"]) == len(extra["tgt_distances"]) == 2
    padding = sample["target"].eq(build.PAD)
    squared = ranked = 0.0
    for layer in range(2):
        e, d = extra["src_distances"][layer].mean(1), extra["tgt_distances"][layer].mean(1)
        mapped = torch.einsum("bts,bs->bt", extra["distance_attn"][layer], e)
        if shift:
            d, mapped, outside = d[:, 1:], mapped[:, :-1], padding[:, 1:]
        else:
            outside = padding
        squared += reference.sync_mse_loss(d, mapped, outside)
        ranked += reference.sync_rank_loss(d, mapped, outside, margin=1.0)
    base = translation_loss(model, sample).item()
    for options, expected in (
        ({"sync_mse_weight": 0.3}, 0.3 * squared),
        ({"sync_rank_weight": 0.2}, 0.2 * ranked),
        ({"sync_mse_weight": 0.3, "sync_rank_weight": 0.2}, 0.3 * squared + 0.2 * ranked),
        ({}, 0.0),
    ):
        make = criterion(sync_shift=shift, **options)
        loss, _, log = make(model, sample)
        assert loss.item() == pytest.approx(base + expected, rel=1e-5)
        assert [key for key in log if key.startswith("sync") and log.get(f"{key}_applied")] == [
            key.replace("weight", "loss") for key in options
        ]


@pytest.mark.parametrize("shift", [False, True])
def test_padding_on_the_left_does_not_change_tied_distances(shift):
    torch.manual_seed(0)
    terms = criterion(sync_shift=shift, sync_mse_weight=1, sync_rank_weight=1).terms
    source, target = torch.randn(1, 2, 4), torch.randn(1, 2, 5)
    attention, words = torch.rand(1, 5, 4), torch.full((1, 5), 7)

    def losses(pads: int) -> list[float]:
        padded = {
            "src_distances": [source],
            "tgt_distances": [torch.cat([torch.randn(1, 2, pads), target], 2)],
            "distance_attn": [torch.cat([torch.rand(1, pads, 4), attention], 1)],
        }
        sample = {"target": torch.cat([torch.full((1, pads), build.PAD), words], 1)}
        return [term(padded, sample)[0].item() for term in terms if term.applies(padded, sample)]

    assert len(losses(0)) == 2
    assert losses(2) == pytest.approx(losses(0))


def test_logged_means_run_over_all_workers():
    model = build.model("transformer_syncattn_tiny", **SYNC)
    make = criterion(sync_weight=0.1, src_planted_weight=1.0)
    samples = [batch(), batch()]
    samples[1]["src_parents"][0] = samples[1]["source_tree_distances"][0] = -1
    logs = [make(model, sample)[2] for sample in samples]
    with metrics.aggregate() as aggregated:
        make.reduce_metrics(logs)
    values = aggregated.get_smoothed_values()
    nll = sum(log["src_dep_loss"].item() for log in logs)
    correct = sum(log["src_dep_correct"].item() for log in logs)
    assert [log["src_dep_parents"].item() for log in logs] == [6, 2]
    assert values["src_dep_loss"] == pytest.approx(nll / 8, abs=1e-3)
    assert values["src_uas"] == pytest.approx(100 * correct / 8, abs=1e-3)
    assert values["loss"] == pytest.approx(logs[0]["loss"].item() / 9 / math.log(2), abs=2e-3)
    assert values["total_loss"] > values["loss"]
    planted = sum(log["src_planted_loss"].item() for log in logs)
    assert values["src_planted_loss"] == pytest.approx(planted / (5 + 2), abs=1e-3), "per word"
    assert "tgt_planted_loss" not in values
    assert values["sync_loss"] == pytest.approx(
        sum(log["sync_loss"].item() for log in logs) / 18, abs=1e-4
    )


def test_a_weight_that_does_nothing_is_named_once(caplog):
    model = build.model("transformer_dbsa_tiny")
    make = criterion(sync_mse_weight=0.1, src_dep_weight=0.3).train()
    for _ in range(2):
        make(model, batch())
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith(
        "sync_mse_loss: the loss has a weight, but the model or the batch lacks"
    )
    caplog.clear()
    default = make_config()().src_dep_weight
    criterion(src_dep_weight=default).train()(build.model("syntax_transformer_tiny"), batch())
    criterion(sync_mse_weight=0.1).eval()(model, batch())
    assert not caplog.records


def test_head_accuracy_of_several_heads_is_that_of_their_mean():
    attention = torch.tensor([[0.5, 0.4, 0.1], [0.1, 0.4, 0.5]]).view(1, 2, 1, 3)
    extra = {"src_dependency": [attention.expand(1, 2, 3, 3)]}
    sample = {"target": torch.tensor([[5, 6, build.EOS]])}
    [term] = [term for term in criterion().terms if term.name == "src_dep_loss"]
    correct = []
    for parent in range(3):
        parents = torch.tensor([[parent, parent, -1]])
        log = term(extra, {**sample, "src_parents": parents})[1]
        correct.append(log["src_dep_correct"].item())
    assert correct == [0, 2, 0], "each head prefers another word"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "kinds",
    [
        {"sync_backward": "transpose"},
        {"sync_backward": "softmax"},
        {"encoder_parser": "lisa", "pascal_layers": "1,2", "source_label_dim": 5},
        TIED,
    ],
    ids=str,
)
def test_half_precision_gives_nearly_the_same_and_finite_gradients(dtype, kinds):
    make = criterion(**WEIGHTS | {"sync_rank_weight": 0.1})
    values = []
    for narrow in (torch.float32, dtype):
        model = build.model("transformer_syncattn_tiny", noise=0.03, dropout=0.0, **SYNC, **kinds)
        model = model.to(narrow).train()
        loss, _, log = make(model, batch())
        loss.backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is None or parameter.grad.isfinite().all(), name
        values.append({key: float(log[key]) for key in ("src_dep_loss", "sync_loss", "total_loss")})
    for key, value in values[0].items():
        assert values[1][key] == pytest.approx(value, rel=0.05), key
