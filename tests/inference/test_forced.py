"""What heads show of given translations, read off batches."""

from typing import Any

import numpy as np
import pytest
import torch

from syncattn_fairseq.inference.forced import ForcedDecoding
from tests.models import build

WORDS, TARGET = build.dictionary(), build.sentences([2, 4], seed=1)
BATCH = build.net_input(build.sentences([3, 2]), TARGET)


def force(*models: Any, batch: Any = BATCH, target: Any = TARGET) -> ForcedDecoding:
    return ForcedDecoding(models, batch, target, WORDS)


def test_distances_are_those_of_the_states_that_read_a_subword():
    model = build.model("transformer_lpsi_tiny")
    found = force(model).read_distances("target")
    assert [[*by_layer] for by_layer in found] == [[1, 2], [1, 2]]
    _, extra = model(**BATCH)
    expected = extra["tgt_distances"][0][1].mean(0)[1:5]  # states 1 to 4 read the four subwords
    assert found[1][1] == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("swapped", [False, True])
def test_an_ensemble_averages_the_models_that_measure_distances_in_a_layer(swapped):
    both = build.model("transformer_lpsi_tiny", noise=0.3)
    upper = build.model("transformer_lpsi_tiny", distance_layers="2", noise=0.2)
    plain = build.model("syntax_transformer_tiny")
    ensemble = [plain, upper, both] if swapped else [both, upper, plain]
    result, _ = force(*ensemble).read_distances("source")
    first, second = (heads.mean(1) for heads in both(**BATCH)[1]["src_distances"])
    [other] = (heads.mean(1) for heads in upper(**BATCH)[1]["src_distances"])
    assert list(result) == [1, 2]
    assert result[1] == pytest.approx(first[0, :3].tolist(), abs=1e-5)
    assert result[2] == pytest.approx(((second + other) / 2)[0, :3].tolist(), abs=1e-5)


def test_links_lead_from_subwords_to_subwords():
    model = build.model("syntax_transformer_tiny")
    by_layer = force(model).read_links_of_layers()
    assert [*by_layer] == [1, 2]
    for layer, matrices in by_layer.items():
        _, extra = model(**BATCH, alignment_layer=layer - 1)
        for row, length in enumerate((2, 4)):
            tokens = BATCH["src_tokens"][row]
            inside = tokens.ne(build.PAD) & tokens.ne(build.EOS)
            expected = extra["attn"][0][row][:length, inside].detach().numpy()
            np.testing.assert_allclose(matrices[row], expected, atol=1e-6)
        again = force(model).read_links(layer)
        np.testing.assert_array_equal(again[1], matrices[1])


def test_an_empty_source_has_no_links():
    target = build.sentences([2, 2], seed=1)
    batch = build.net_input(build.sentences([3, 0]), target)
    found = force(build.model("syntax_transformer_tiny"), batch=batch, target=target)
    assert [matrix.shape for matrix in found.read_links()] == [(2, 3), (2, 0)]


def test_scores_are_mean_log_probabilities():
    models = [build.model("syntax_transformer_tiny", noise=noise) for noise in (0.1, 0.3)]
    scores = force(*models).read_scores()
    before = torch.nn.utils.rnn.pad_sequence(
        [torch.cat([line[-1:], line[:-1]]) for line in TARGET], True, build.PAD
    )
    probabilities = [
        model(**{**BATCH, "prev_output_tokens": before})[0].softmax(-1).detach() for model in models
    ]
    for row, line in enumerate(TARGET):
        logs = []
        for position, token in enumerate(line.tolist()):
            mean = sum(float(p[row, position, token]) for p in probabilities) / 2
            logs.append(np.log(mean))
        assert scores[row] == pytest.approx(np.mean(logs), abs=1e-5)


def test_a_side_without_dependency_heads_has_none():
    found = force(build.model("transformer_lisa_tiny"))
    assert found.read_dependencies("target") is None
    assert [matrix.shape for matrix in found.read_dependencies("source")] == [(3, 3), (2, 2)]
    assert found.read_distances("source") == [{}, {}]
