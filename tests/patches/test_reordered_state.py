from typing import Any

import pytest
import torch
from fairseq.models import FairseqIncrementalDecoder
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator

import syncattn_fairseq.plugin  # noqa: F401  (has the patch)
from tests.models import build

FULL_WALK = EnsembleModel.reorder_incremental_state.__wrapped__


def search(models: list[Any]) -> list[tuple[list[int], float]]:
    source = build.sentences([5, 3, 4])
    batch = {"net_input": build.net_input(source, source)}
    reads = {"src_tokens", "src_lengths"}
    batch["net_input"] = {name: batch["net_input"][name] for name in reads}
    generator = SequenceGenerator(models, build.dictionary(), beam_size=3, max_len_b=9)
    with torch.no_grad():
        found = generator.generate(models, batch)
        again = generator.generate(models, batch)
    assert [each[0]["tokens"].tolist() for each in found] == [
        each[0]["tokens"].tolist() for each in again
    ]
    return [(each["tokens"].tolist(), float(each["score"])) for beam in found for each in beam]


@pytest.mark.parametrize(
    "archs",
    [["transformer_dbsa_tiny"], ["transformer_lpsi_tiny", "rnn_global"], ["transformer_tiny"]],
)
def test_a_search_finds_the_same_and_looks_once(monkeypatch, archs):
    models = [build.model(arch, seed).eval() for seed, arch in enumerate(archs)]
    walks: list[Any] = []
    modules = FairseqIncrementalDecoder.modules
    found = search(models)
    monkeypatch.setattr(
        FairseqIncrementalDecoder, "modules", lambda self: walks.append(self) or modules(self)
    )
    assert search(models) == found
    once = len(walks)
    monkeypatch.setattr(EnsembleModel, "reorder_incremental_state", FULL_WALK)
    assert search(models) == found, "as without the patch"
    assert len(walks) - once > 3 * once, "once for each search, not at each step"


def test_decoders_with_a_way_of_their_own_keep_it(monkeypatch):
    model = build.model("transformer_dbsa_tiny").eval()
    found = search([model])
    asked: list[Any] = []

    class Own(type(model.decoder)):
        def reorder_incremental_state_scripting(self, *state: Any) -> None:
            asked.append(state)
            super().reorder_incremental_state_scripting(*state)

    model.decoder.__class__ = Own
    assert search([model]) == found and asked
