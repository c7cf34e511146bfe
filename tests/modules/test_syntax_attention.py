import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.models.layers import FairseqSyntaxAttention
from syncattn_fairseq.modules import BatchView, DropInAttention, SyntaxAttention
from syncattn_fairseq.modules.heads import (
    DependencyHeads,
    ForgetGateHeads,
    GatedHeads,
    Heads,
    ParentScaledHeads,
    WindowHeads,
)
from syncattn_fairseq.modules.positions import RotaryPositions
from syncattn_fairseq.modules.syntax_attention import HeadGroups
from tests.functional import reference

D, H = 12, 3


def make(
    heads: int = 1,
    key_bias: bool = False,
    parser: str = "biaffine",
    scaled: int = 0,
    look_back: int | None = None,
    window: int | None = None,
) -> FairseqSyntaxAttention:
    torch.manual_seed(1)
    view, d = BatchView(), D // H
    groups: dict[str, Heads] = {}
    if heads:
        groups["dependency"] = DependencyHeads(heads, d, view, parser, key_bias)
    between = H - heads - scaled
    if between and look_back is not None:
        groups["gated"] = GatedHeads(between, d, view, look_back)
    elif between and window is not None:
        groups["window"] = WindowHeads(between, d, view, window)
    elif between:
        groups["ordinary"] = Heads(between, d, view)
    if scaled:
        groups["parent_scaled"] = ParentScaledHeads(scaled, d, view)
    attention = FairseqSyntaxAttention(D, H, self_attention=True, heads=groups)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    view.fill(torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.bool), {})
    return attention.double().eval()


def observe(
    attention: HeadGroups, name: str, x: Tensor, padding: Tensor | None = None, causal: bool = False
) -> Tensor:
    group, _ = next(attention.groups)
    group.view.observed = [name]
    attention.attend(x, padding, causal_mask(len(x)).to(x) if causal else None)
    group.view.observed = ()
    return attention.exposed[name]


def show_batch(attention: FairseqSyntaxAttention, tokens: Tensor, **fields: Tensor) -> None:
    group, _ = next(attention.groups)
    group.view.fill(tokens, torch.zeros_like(tokens, dtype=torch.bool), fields)


def show_parents(attention: FairseqSyntaxAttention, positions: Tensor) -> None:
    show_batch(attention, torch.zeros_like(positions), src_parent_positions=positions)


def slow(
    attention: FairseqSyntaxAttention, x: Tensor, causal: bool, parents: list[float] | None = None
) -> tuple[Tensor, Tensor]:
    """One sentence (T, D) without padding: output (T, D) and the first head's probabilities."""
    d, contexts, first = D // H, [], None
    plain = getattr(attention.q_proj, "plain", (attention.q_proj.weight, attention.q_proj.bias))
    kinds = [(group, number) for group, _ in attention.groups for number in range(group.count)]
    for h, (kind, number) in enumerate(kinds):
        rows = slice(h * d, (h + 1) * d)
        q, k, v = (
            x @ weight[rows].T + bias[rows]
            for weight, bias in (
                plain,
                (attention.k_proj.weight, attention.k_proj.bias),
                (attention.v_proj.weight, attention.v_proj.bias),
            )
        )
        if isinstance(kind, DependencyHeads) and kind.parser == "lisa":
            q, k = reference.leaky_relu(q), reference.leaky_relu(k)
        if isinstance(kind, ParentScaledHeads):
            assert parents is not None
            weights = [reference.parent_gaussian(parent, len(k), 1.0) for parent in parents]
            scores = reference.parent_scaled_scores(q, k, torch.tensor(weights))
        else:
            own = isinstance(kind, DependencyHeads) and kind.parser != "dot"
            u = kind.weight[number] if own else torch.eye(d).double()
            bias = kind.key_bias[number] if own and kind.key_bias is not None else None
            scores = reference.biaffine_scores(q, k, u, bias)
        probabilities = torch.zeros(len(x), len(x)).double()
        for t, row in enumerate(scores):
            columns = range(t + 1) if causal else range(len(x))
            if isinstance(kind, WindowHeads):
                columns = [i for i in columns if abs(i - t) <= kind.window]
            weights = torch.tensor(
                reference.softmax([row[i] for i in columns]), dtype=torch.float64
            )
            if isinstance(kind, GatedHeads):
                distances = reference.syntactic_distances(
                    k, kind.weight[number], kind.distance_bias[number].item()
                )
                opened = reference.distance_gates(distances, kind.temperature, causal)[t]
                weights = weights * torch.tensor([opened[i] for i in columns], dtype=torch.float64)
                weights = weights / weights.sum()
            probabilities[t, list(columns)] = weights
        contexts.append(probabilities @ v)
        first = probabilities if first is None else first
    out = attention.out_proj
    assert first is not None
    return torch.cat(contexts, -1) @ out.weight.T + out.bias, first


def causal_mask(length: int) -> Tensor:
    return torch.full((length, length), -torch.inf).double().triu(1)


def test_probabilities_are_float32_whatever_the_type_of_the_model():
    attention = make().to(torch.bfloat16)
    heads = observe(attention, "dependency", torch.randn(4, 2, D).bfloat16())
    assert heads.dtype == torch.float32


@torch.no_grad()
def test_gold_parents_take_the_place_of_the_prediction():
    attention = make(heads=2)
    x = torch.randn(4, 2, D).double()
    padding = torch.tensor([[False] * 4, [True] + [False] * 3])
    plain, _ = attention(x, x, x, padding, need_weights=False)
    parents = torch.tensor([[1, 1, -1, 0], [-1, 3, 1, -1]])
    show_batch(attention, torch.zeros_like(parents), forced_parents=parents)
    gold, _ = attention(x, x, x, padding, need_weights=False)

    d, predicted = D // H, observe(attention, "dependency", x, padding)
    show_batch(attention, torch.zeros_like(parents))
    for b in range(2):
        for t in range(4):
            parent = [[1, 1, -1, 0], [-1, 3, 1, -1]][b][t]
            if parent < 0:
                torch.testing.assert_close(gold[t, b], plain[t, b])
                continue
            change = torch.zeros(D).double()
            for h in range(2):
                values = x[:, b] @ attention.v_proj.weight[h * d : (h + 1) * d].T
                values = values + attention.v_proj.bias[h * d : (h + 1) * d]
                change[h * d : (h + 1) * d] = values[parent] - predicted[b, h, t] @ values
            torch.testing.assert_close(gold[t, b], plain[t, b] + attention.out_proj.weight @ change)


KINDS = [
    {"heads": 1, "key_bias": True},
    {"heads": 2, "key_bias": True},
    {"heads": 3},
    {"heads": 0, "scaled": 1},
    {"heads": 0, "scaled": 3},
    {"heads": 1, "scaled": 1},
    {"heads": 1, "scaled": 2, "key_bias": True},
    {"heads": 1, "parser": "lisa"},
    {"heads": 2, "parser": "lisa", "scaled": 1, "key_bias": True},
    {"heads": 1, "parser": "dot", "scaled": 1},
    {"heads": 0, "look_back": 5},
    {"heads": 1, "look_back": 2, "scaled": 1},
    {"heads": 0, "window": 1},
    {"heads": 1, "parser": "lisa", "window": 2, "scaled": 1},
]
PARENTS = [1.5, 1.5, 2.0, 0.5, 4.0]


@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("pads", [None, "left", "right"])
@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_every_kind_of_heads_equals_the_loop_over_each_sentence(kinds, pads, causal):
    """A sentence of 5 tokens, or two of 5 and 3, padded to 6."""
    attention = make(**kinds)
    nan = float("nan")
    sentences = [(torch.randn(5, D).double(), PARENTS), (torch.randn(3, D).double(), [2, nan, 0.5])]
    sentences, size = (sentences, 6) if pads else (sentences[:1], 5)
    x = torch.randn(size, len(sentences), D).double()
    parents = torch.full((len(sentences), size), nan)
    padding = torch.ones(parents.shape, dtype=torch.bool)
    inside = [slice(size - len(s), size) if pads == "left" else slice(len(s)) for s, _ in sentences]
    for b, (states, own) in enumerate(sentences):
        x[inside[b], b] = states
        parents[b, inside[b]] = torch.tensor(own) + (inside[b].start or 0)
        padding[b, inside[b]] = False
    show_parents(attention, parents.double())
    mask = causal_mask(size) if causal else None
    seen = padding if pads else None
    output, _ = attention(x, x, x, seen, need_weights=False, attn_mask=mask)
    for b, (states, own) in enumerate(sentences):
        expected, first = slow(attention, states, causal, own)
        torch.testing.assert_close(output[inside[b], b], expected)
        if "dependency" in attention.heads:
            heads = observe(attention, "dependency", x, seen, causal)
            assert heads.shape == (len(sentences), kinds["heads"], size, size)
            torch.testing.assert_close(heads[b, 0, inside[b], inside[b]], first)
            assert not heads[b, :, inside[b]].masked_select(padding[b]).any()
            assert heads.isfinite().all()


@torch.no_grad()
def test_distances_are_those_that_gate():
    attention = make(heads=1, look_back=2)
    x = torch.randn(5, 2, D).double()
    padding = torch.tensor([[False] * 5, [True, True, False, False, False]])
    distances = observe(attention, "distances", x, padding)
    assert distances.shape == (2, 2, 5)
    gates = attention.heads["gated"]
    keys = x @ attention.k_proj.weight[4:8].T + attention.k_proj.bias[4:8]
    for b, first in ((0, 0), (1, 2)):
        expected = reference.syntactic_distances(
            keys[first:, b], gates.weight[0], gates.distance_bias[0].item()
        )
        assert distances[b, 0, first:].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kinds", "fairseqs"),
    [
        ({"heads": 0}, True),
        ({"heads": 1}, True),
        ({"heads": 2, "key_bias": True}, True),
        ({"heads": 1, "parser": "dot"}, True),
        *((kinds, False) for kinds in KINDS[3:]),
    ],
    ids=str,
)
def test_fairseqs_fused_attention_does_the_work_where_it_can(kinds, fairseqs, monkeypatch):
    calls = []
    forward = MultiheadAttention.forward
    monkeypatch.setattr(
        MultiheadAttention,
        "forward",
        lambda *args, **more: calls.append(1) or forward(*args, **more),
    )
    attention = make(**kinds)
    x = torch.randn(5, 1, D).double()
    show_parents(attention, torch.tensor([PARENTS]).double())
    attention(x, x, x, need_weights=False)
    assert bool(calls) == fairseqs


def test_dropout_leaves_out_attention_of_every_kind():
    for kinds in KINDS:
        attention = make(**kinds).train()
        attention.dropout_module.p = 1 - 1e-9
        x = torch.randn(5, 2, D).double()
        show_parents(attention, torch.tensor([PARENTS] * 2).double())
        output, _ = attention(x, x, x, need_weights=False)
        torch.testing.assert_close(output, attention.out_proj.bias.expand_as(output))


@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_without_fairseq_it_attends_and_shows_the_same(causal):
    theirs = make(heads=1, look_back=2)
    view = BatchView()
    groups = {
        "dependency": DependencyHeads(1, D // H, view),
        "gated": GatedHeads(H - 1, D // H, view, 2),
    }
    ours = SyntaxAttention(D, groups).double().eval()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 6, D).double()
    padding = torch.arange(6) >= torch.tensor([[6], [4]])
    mask = causal_mask(6) if causal else None
    turned = x.transpose(0, 1)
    expected, _ = theirs(turned, turned, turned, padding, attn_mask=mask)
    torch.testing.assert_close(ours(x, padding, causal), expected.transpose(0, 1))
    exposed = [observe(layer, "dependency", turned, padding, causal) for layer in (ours, theirs)]
    torch.testing.assert_close(*exposed)


@torch.no_grad()
def test_without_fairseq_it_decodes_step_by_step():
    view = BatchView()
    groups = {"gated": GatedHeads(1, 4, view, 2), "forget": ForgetGateHeads(2, 4, view, D)}
    attention = SyntaxAttention(D, groups, RotaryPositions(H, D // H, view, True)).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    x = torch.randn(2, 5, D).double()
    whole, state = attention(x, causal=True), {}
    steps = [attention(x[:, t : t + 1], causal=True, state=state) for t in range(5)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)


@pytest.mark.parametrize(
    ("counts", "widths", "message"),
    [
        ((2, 2), (4, 4), "heads of width 2 × 4 \\+ 2 × 4 do"),
        ((1, 2), (8, 2), "heads of width 1 × 8 \\+ 2 × 2 do"),
    ],
)
def test_heads_fill_the_width(counts, widths, message):
    view = BatchView()
    groups = {
        str(n): GatedHeads(count, width, view, 2)
        for n, (count, width) in enumerate(zip(counts, widths, strict=True))
    }
    with pytest.raises(ValueError, match=message):
        SyntaxAttention(D, groups)
    with pytest.raises(ValueError, match="heads of width 0 do not add up to"):
        SyntaxAttention(D, {})


@torch.no_grad()
def test_an_additive_mask_of_four_dimensions_may_differ_between_heads():
    view = BatchView()
    groups = {"gated": GatedHeads(1, D // H, view, 2), "plain": Heads(H - 1, D // H, view)}
    attention = SyntaxAttention(D, groups).double()
    attention.out_proj = nn.Identity()  # type: ignore[assignment]
    x, mask = torch.randn(2, 5, D).double(), torch.randn(2, H, 5, 5).double()
    mask = mask + causal_mask(5)
    together = attention(x, causal=True, mask=mask).unflatten(-1, (H, -1))
    for h in range(H):
        alone = attention(x, causal=True, mask=mask[:, h : h + 1]).unflatten(-1, (H, -1))
        torch.testing.assert_close(together[..., h, :], alone[..., h, :])
    same = attention(x, causal=True, mask=causal_mask(5)[None, None])
    torch.testing.assert_close(same, attention(x, causal=True))


def watched() -> tuple[nn.Module, BatchView, DropInAttention]:
    layer = nn.TransformerEncoderLayer(D, H, 2 * D, 0.0, batch_first=True)
    view = BatchView()
    groups: dict[str, Heads] = {"dependency": DependencyHeads(H, D // H, view, "dot")}
    layer.self_attn = DropInAttention(layer.self_attn, groups)
    return layer, view, layer.self_attn


@torch.no_grad()
@pytest.mark.parametrize("training", [False, True])
def test_dropped_in_it_computes_what_pytorchs_attention_does(training):
    torch.manual_seed(0)
    layer, view, attention = watched()
    plain = nn.TransformerEncoderLayer(D, H, 2 * D, 0.0, batch_first=True)
    state = {name: value for name, value in layer.state_dict().items() if "self_attn" not in name}
    plain.load_state_dict(state, strict=False)
    own = DropInAttention(plain.self_attn, {"plain": Heads(H, D // H, view)})
    attention.load_state_dict(own.state_dict())
    x, padding = torch.randn(2, 5, D), torch.arange(5) >= torch.tensor([[5], [3]])
    hidden = torch.ones(5, 5).triu(2).bool()
    for net in (layer, plain):
        net.train(training)
    view.fill(torch.zeros(2, 5), padding, {})
    result, expected = (net(x, hidden, padding) for net in (layer, plain))
    torch.testing.assert_close(result[~padding], expected[~padding], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(attention.parse.sum(-1), torch.ones(2, 5))


def test_a_batch_that_is_not_the_layers_is_refused():
    layer, view, _ = watched()
    x = torch.randn(2, 5, D)
    view.fill(torch.zeros(2, 5), torch.zeros(2, 5).bool(), {})
    layer(x)
    with pytest.raises(DataError, match="call BatchView.fill before each forward pass"):
        layer(x)
    view.fill(torch.zeros(2, 4), torch.zeros(2, 4).bool(), {})
    with pytest.raises(DataError, match="BatchView.watch once"):
        layer(x)
    view.watch(layer, lambda x: (x[..., 0], x[..., 0] > 9))
    assert layer(x).shape == layer(x).shape
    again = torch.utils.checkpoint.checkpoint(layer, x.requires_grad_(), use_reentrant=False)
    again.sum().backward()
