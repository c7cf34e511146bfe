"""Heads of several kinds in the decoder's attention to the source."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from syncattn_fairseq import testing
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.fields import TREE_DISTANCES
from syncattn_fairseq.models.layers import FairseqCrossAttention
from syncattn_fairseq.modules import BatchView, Source, number_tokens, register_part
from syncattn_fairseq.modules.heads import BackwardHeads, Heads, Scope, TreeWindowHeads
from tests.importing import forgetting_plugins
from tests.models import build

D, H, T, S = 8, 4, 5, 6
PADDING = torch.tensor([[False] * S, [True, True] + [False] * (S - 2)])


def make(
    **kinds: type[Heads] | tuple[type[Heads], int, Any],
) -> tuple[FairseqCrossAttention, MultiheadAttention, BatchView]:
    """Make an attention of kinds of heads, and fairseq's with the same projections."""
    torch.manual_seed(0)
    view = BatchView()
    ours = FairseqCrossAttention(D, H, encoder_decoder_attention=True)
    groups = {}
    for name, kind in kinds.items():
        kind, count, *rest = kind if isinstance(kind, tuple) else (kind, H)
        groups[name] = kind(count, D // H, view, *rest)
    ours.compose(groups, None)
    trees = torch.randint(0, 5, (2, S, S))
    trees.diagonal(dim1=1, dim2=2).zero_()
    nothing = torch.zeros(2, T, dtype=torch.bool)
    view.fill(torch.zeros(2, T), nothing, {TREE_DISTANCES.name: trees})
    theirs = MultiheadAttention(D, H, encoder_decoder_attention=True).eval()
    theirs.load_state_dict(ours.state_dict(), strict=False)
    return ours.eval(), theirs, view


def draw() -> tuple[Tensor, Tensor]:
    return torch.randn(T, 2, D), torch.randn(S, 2, D)


def call(attention: Any, x: Tensor, source: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    options = {"key_padding_mask": PADDING, "static_kv": True, **options}
    found: tuple[Tensor, Tensor] = attention(x, source, source, **options)
    return found


class Biased(Heads):
    """Ordinary heads in the general way: a bias of 0."""

    def bias(self, query: Tensor, key: Tensor, scope: Scope) -> Tensor:
        return query.new_zeros(1, 1)


@pytest.mark.parametrize("kinds", [{"biased": Biased}, {"sync": BackwardHeads}])
@pytest.mark.parametrize("shown", ["", "need_weights", "need_head_weights"])
def test_the_general_way_is_fairseqs(kinds, shown):
    ours, theirs, view = make(**kinds)
    view.observed = ["backward"]
    asked = {"need_weights": False, **({shown: True} if shown else {})}
    x, source = draw()
    found, expected = call(ours, x, source, **asked), call(theirs, x, source, **asked)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("observed", [[], ["backward"]])
def test_steps_are_those_of_teacher_forcing_and_follow_the_beam(observed):
    ours, theirs, view = make(biased=(Biased, 1), rest=(Heads, 3))
    view.observed = observed
    x, source = draw()
    whole, weights = call(ours, x, source)
    state: dict[str, Any] = {}
    order = torch.tensor([1, 0])
    for step in range(T):
        if step == 2:
            ours.reorder_incremental_state(state, order)
            x, whole, weights = x[:, order], whole[:, order], weights[order]
        # From the second step on, keys and values are the stored ones.
        read = source if step == 0 else torch.full_like(source, torch.nan)
        mask = PADDING if step < 2 else PADDING[order]
        output, seen = call(
            ours, x[step : step + 1], read, incremental_state=state, key_padding_mask=mask
        )
        torch.testing.assert_close(output[0], whole[step])
        torch.testing.assert_close(seen[:, 0], weights[:, step])


def test_backward_attention_is_the_softmax_over_target_positions():
    ours, theirs, view = make(sync=BackwardHeads)
    padded = torch.tensor([[False] * T, [False] * (T - 1) + [True]])
    view.fill(torch.zeros(2, T), padded, {})
    x, source = draw()
    call(ours, x, source)
    assert not ours.exposed, "nobody looks"
    view.observed = ["backward"]
    call(ours, x, source)
    backward = ours.exposed["backward"]
    logits, _ = call(theirs, x, source, before_softmax=True)
    logits = logits.view(2, H, T, S)
    for b, length in enumerate((T, T - 1)):
        seen = ~PADDING[b]
        expected = logits[b, :, :length, seen].softmax(dim=1)
        torch.testing.assert_close(backward[b, :, :length, seen], expected)
        assert backward[b, :, length:, seen].abs().sum() == 0


def test_tree_heads_see_their_window_and_the_others_everything():
    ours, _, view = make(tree_window=(TreeWindowHeads, 3, D, 2), ordinary=(Heads, 1))
    view.observed = ["positions"]
    x, source = draw()
    _, weights = call(ours, x, source, need_head_weights=True)
    where = Source(PADDING)
    position = ours.position.predict(ours.position.hidden(x.transpose(0, 1)), where)
    torch.testing.assert_close(ours.exposed["positions"], position.unsqueeze(1))
    column = where.columns(position).round().long()
    trees = view.require(TREE_DISTANCES.name, "")
    rows = trees.gather(1, column.unsqueeze(-1).expand(2, T, S))
    outside = (rows > 2) | PADDING.unsqueeze(1)
    for head in range(H):
        zero = weights[head] == 0
        assert torch.equal(zero, outside if head < 3 else PADDING.unsqueeze(1).expand_as(zero))
    torch.testing.assert_close(weights.sum(-1), torch.ones(H, 2, T))


def test_without_a_parse_tree_heads_are_ordinary():
    ours, theirs, view = make(tree_window=(TreeWindowHeads, 2, D, 2), ordinary=(Heads, 2))
    fields = {TREE_DISTANCES.name: torch.zeros(2, S, S, dtype=torch.int64)}
    view.fill(torch.zeros(2, T), torch.zeros(2, T, dtype=torch.bool), fields)
    x, source = draw()
    torch.testing.assert_close(call(ours, x, source), call(theirs, x, source))


def test_parameters_of_old_kinds_keep_their_names():
    model = build.model("syntax_transformer_tiny", cross_attention_tree_window=2)
    names = {name for name in model.state_dict() if ".encoder_attn." in name}
    added = {name for name in names if "_proj." not in name}
    assert added == {
        f"decoder.layers.1.encoder_attn.position.{part}.weight" for part in ("hidden", "output")
    }
    assert names >= {name for name, _ in model.named_parameters() if ".encoder_attn." in name}


def test_heads_that_hide_their_probabilities_are_named():
    class Secret(Heads):
        title = "secret"

        def attend(self, query: Tensor, key: Tensor, value: Tensor, scope: Scope) -> Tensor:
            return query

    ours, _, _ = make(secret=Secret)
    x, source = draw()
    call(ours, x, source, need_weights=False)
    with pytest.raises(
        DataError, match="^secret heads: a loss or a caller needs .* scope.average or"
    ):
        call(ours, x, source)


def test_tokens_are_numbered_wherever_the_padding_is():
    padding = torch.tensor([[True, True, False, False], [False, False, True, True]])
    numbers = number_tokens(padding)
    assert numbers[~padding].tolist() == [0, 1, 0, 1] and (numbers >= 0).all()


# ---- kinds of a plugin


@dataclass
class CoverOptions:
    cover_layers: str = field(default="", metadata={"help": "layers"})
    cover_encoder_layers: str = field(default="", metadata={"help": "layers"})
    cover_heads: int = field(default=1, metadata={"help": "heads"})


def register_cover(**changes: Any) -> type[Heads]:
    """Register heads that look away from what earlier rows have looked at."""

    class CoverHeads(Heads):
        Options = CoverOptions
        title = "cover"
        option = "cover_heads"
        encoder_layers = "cover_encoder_layers"
        cross_layers = "cover_layers"
        exposes = "cover"

        def __init__(self, count: int, head_dim: int, view: BatchView) -> None:
            super().__init__(count, head_dim, view)
            self.strength = nn.Parameter(torch.zeros(count))

        @classmethod
        def count_heads(cls, cfg: Any, side: str, free: int) -> int:
            return cfg.cover_heads

        def attend(self, query: Tensor, key: Tensor, value: Tensor, scope: Scope) -> Tensor:
            scores = query @ key.transpose(2, 3) / query.size(3)
            padding = self.view.padding_mask[:, None, -query.size(2) :, None]
            seen = scores.sigmoid().masked_fill(padding, 0.0)
            if scope.state is None:
                before = seen.cumsum(2) - seen
            else:
                before = scope.state.get("before", torch.zeros_like(seen))
                scope.state["before"] = before + seen
            scores = scores - self.strength[:, None, None] * before
            attention = scope.softmax(scores)
            if scope.observed:
                scope.exposed = attention
            return scope.average(attention, value)

    for name, value in changes.items():
        setattr(CoverHeads, name, value)
    register_part("cover")(CoverHeads)
    return CoverHeads


@pytest.fixture
def plugins() -> Any:
    with forgetting_plugins():
        yield


def test_a_kind_with_state_passes_all_checks(plugins):
    register_cover()
    testing.check_model(cover_layers="all")
    testing.check_model(
        "transformer_syncattn_tiny", cover_layers="2", cross_attention_tree_window=2
    )


def test_a_state_of_another_hypothesis_is_noticed(plugins, monkeypatch):
    register_cover()
    monkeypatch.setattr(FairseqCrossAttention, "reorder_incremental_state", lambda *_: None)
    with pytest.raises(AssertionError, match="incremental decoding has other scores"):
        testing.check_steps(testing.build_model(cover_layers="1"))


def test_a_step_that_sees_the_padding_of_the_source_is_noticed(plugins):
    def attend(self: Any, query: Tensor, key: Tensor, value: Tensor, scope: Scope) -> Tensor:
        if scope.state is not None:
            scope.mask = None
        return Heads.attend(self, query, key, value, scope)

    register_cover(attend=attend, exposes=None)
    with pytest.raises(AssertionError, match="step 1 of incremental decoding has other scores"):
        testing.check_steps(testing.build_model(cover_layers="1"))


def test_heads_by_column_are_noticed(plugins):
    def bias(self: Any, query: Tensor, key: Tensor, scope: Scope) -> Tensor:
        return torch.arange(key.size(2)).double().square().expand(query.size(2), -1) / 10

    register_cover(bias=bias, attend=Heads.attend, exposes=None)
    with pytest.raises(
        AssertionError, match="different scores alone and in a batch padded on the left"
    ):
        testing.check_batches(testing.build_model(cover_layers="1"))


def test_a_kind_divides_the_layer_with_others_and_is_exposed(plugins):
    register_cover()
    model = build.model(
        "syntax_transformer_tiny",
        cover_layers="2",
        cover_encoder_layers="1",
        cross_attention_tree_window=2,
        decoder_attention_heads=4,
        decoder_layerdrop=0.5,
    )
    layer = model.decoder.layers[1].encoder_attn
    assert [group.title for group, _ in layer.groups] == ["syntax-directed", "cover", "ordinary"]
    assert [heads for _, heads in layer.groups] == [slice(0, 2), slice(2, 3), slice(3, 4)]
    batch = testing.make_batch(model, [0, 1, 2])["net_input"]
    _, extra = model(**batch)
    assert [tuple(one.shape) for one in extra["cross_cover"]] == [(3, 1, 8, 10)]
    assert [tuple(one.shape) for one in extra["src_cover"]] == [(3, 1, 10, 10)]
    assert "tgt_cover" not in extra and extra["positions"].shape == (3, 8)
    assert set(model.decoder.layers.required) >= {2}, "LayerDrop leaves it"
    described = type(model).describe(
        build.options_of("syntax_transformer_tiny", cover_layers="2", cover_encoder_layers="1")
    )
    assert described.exposed == {"src_cover": [1], "cross_cover": [2]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cover_layers": "3"}, "--cover-layers 3: the decoder has layers 1 to 2"),
        (
            {"cover_layers": "2", "cover_heads": 3},
            "--cover-heads 3: the cross-attention of decoder layer 2 has 2 heads",
        ),
        ({"cover_layers": "2", "no_cross_attention": True}, "--no-cross-attention: cover heads"),
    ],
)
def test_impossible_options(plugins, options, message):
    register_cover()
    with pytest.raises(DataError, match=message):
        build.model("syntax_transformer_tiny", **options)


def test_what_cross_attention_reads_reaches_it(plugins):
    register_cover(reads=TREE_DISTANCES)
    model = build.model("syntax_transformer_tiny", cover_layers="1")
    assert model.encoder.decoder_fields == [TREE_DISTANCES.name]
    assert model.source_fields.fields == {TREE_DISTANCES}
    batch = testing.make_batch(model, [2])["net_input"]
    model(**batch)
    [group, _] = [group for group, _ in model.decoder.layers[0].encoder_attn.groups]
    assert torch.equal(group.read(), batch[TREE_DISTANCES.name])
    only = build.model("syntax_transformer_tiny", cover_encoder_layers="1")
    assert only.encoder.decoder_fields == [] and only.source_fields.fields == {TREE_DISTANCES}
