from typing import Any

import pytest
import torch
from fairseq.modules import MultiheadAttention
from fairseq.sequence_generator import SequenceGenerator

import syncattn_fairseq.plugin  # noqa: F401  (has the patch)
from syncattn_fairseq.patches import attention_steps
from syncattn_fairseq.tasks.translating import sharing_sources
from tests.models import build

PLAIN = MultiheadAttention.forward.__wrapped__
SYSTEMS = ("dbsa", "lpsi")
STEPS = ("_look_back", "_look_at_source")


def search(model: Any, shared: bool) -> list[tuple[Any, ...]]:
    source = build.sentences([5, 3, 4])
    net_input = build.net_input(source, source)
    names = {"src_tokens", "src_lengths", "src_parent_positions", "src_tree_distances"}
    if not hasattr(model, "source_fields"):
        names = {"src_tokens", "src_lengths"}
    batch = {"net_input": {name: net_input[name] for name in names}}
    generator = SequenceGenerator([model], build.dictionary(), beam_size=3, max_len_b=7)
    with torch.no_grad(), sharing_sources([model], 3 if shared else 1):
        found = generator.generate([model], batch)
    fields = ("tokens", "score", "attention", "positional_scores")
    return [tuple(each[field] for field in fields) for beam in found for each in beam]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "arch", ["transformer_tiny", "transformer_dbsa_tiny", "transformer_lpsi_tiny"]
)
def test_a_search_finds_the_same_numbers(monkeypatch, arch, shared):
    model = build.model(arch).eval()
    counts = dict.fromkeys(STEPS, 0)
    for name in STEPS:
        step = getattr(attention_steps, name)

        def count(*args: Any, name: str = name, step: Any = step) -> Any:
            counts[name] += 1
            return step(*args)

        monkeypatch.setattr(attention_steps, name, count)
    ours = search(model, shared)
    assert counts["_look_at_source"] and (counts["_look_back"] or "lpsi" in arch)
    monkeypatch.setattr(MultiheadAttention, "forward", PLAIN)
    for one, other in zip(ours, search(model, shared), strict=True):
        for mine, theirs in zip(one, other, strict=True):
            assert mine.equal(theirs), "bit by bit"


class Sparse(MultiheadAttention):
    def apply_sparse_mask(self, scores: torch.Tensor, *sizes: int) -> torch.Tensor:
        return scores.masked_fill(scores > 0, -9.0)


@pytest.mark.parametrize("kind", ["sparse", "bias", "zero", "training", "mask", "padding"])
def test_what_is_not_plain_is_fairseqs(monkeypatch, kind):
    for name in STEPS:
        monkeypatch.setattr(attention_steps, name, None)
    settings = {"bias": {"add_bias_kv": True}, "zero": {"add_zero_attn": True}}.get(kind, {})
    own = Sparse if kind == "sparse" else MultiheadAttention
    torch.manual_seed(1)
    attention = own(8, 2, self_attention=True, **settings).train(kind == "training")
    x = torch.randn(1, 2, 8)
    past = {"prev_key": torch.randn(2, 2, 3, 4), "prev_value": torch.randn(2, 2, 3, 4)}
    masks: dict[str, Any] = {}
    if kind == "mask":
        masks["attn_mask"] = torch.zeros(1, 4)
    if kind == "padding":
        masks["key_padding_mask"] = torch.tensor([[False], [True]])

    def run(forward: Any) -> torch.Tensor:
        state: dict[str, Any] = {}
        attention._set_input_buffer(state, dict(past))
        found: torch.Tensor = forward(
            attention, x, x, x, incremental_state=state, need_weights=False, **masks
        )[0]
        return found

    assert run(MultiheadAttention.forward).equal(run(PLAIN))
