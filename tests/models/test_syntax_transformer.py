import copy
import functools
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.modules import MultiheadAttention
from omegaconf import OmegaConf

from syncattn_fairseq import testing
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.fields import (
    LABELS,
    PARENT_POSITIONS,
    TREE_DISTANCES,
    SourceFields,
)
from syncattn_fairseq.models.config import aligning_layer
from syncattn_fairseq.models.stack import NumberedLayerDrop, bypass_encoder_layer
from syncattn_fairseq.modules import PARTS
from syncattn_fairseq.modules.heads.controls.supervised_gate import GAP_HEIGHTS
from syncattn_fairseq.modules.positions import POSITIONS
from tests.models import build

SYNC = {"decoder_layers": 3, "encoder_layers": 3}
VARIANTS: dict[str, dict[str, Any]] = {
    "dbsa": {"arch": "transformer_dbsa_tiny"},
    "syncattn": {"arch": "transformer_syncattn_tiny", **SYNC},
    "backward": {"arch": "transformer_syncattn_tiny", "sync_backward": "softmax", **SYNC},
    "two heads, key bias, upper layers, pre-norm": {
        "arch": "transformer_dbsa_tiny",
        "dependency_heads": 2,
        "dependency_key_bias": True,
        "encoder_dependency_layer": 2,
        "decoder_dependency_layer": 2,
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
    },
    "rows by input": {"arch": "transformer_dbsa_tiny", "tgt_dependency_rows": "input"},
    "pascal": {"arch": "transformer_pascal_tiny"},
    "lisa": {"arch": "transformer_lisa_tiny"},
    "SyncAttn's loss on ordinary heads": {
        "arch": "transformer_syncattn_tiny",
        "encoder_parser": "dot",
        "decoder_parser": "dot",
        "dependency_heads": 2,
        **SYNC,
    },
    "lpsi": {"arch": "transformer_lpsi_tiny", **SYNC},
    "tree window": {"arch": "syntax_transformer_tiny", "cross_attention_tree_window": 3},
    "all at once": {
        "cross_attention_tree_window": 2,
        "arch": "transformer_syncattn_tiny",
        "encoder_parser": "lisa",
        "pascal_layers": "1,3",
        "source_label_dim": 5,
        "distance_layers": "1,2",
        "distance_sync_layers": "2,3",
        "local_layers": "3",
        "decoder_attention_heads": 4,
        "encoder_attention_heads": 4,
        **SYNC,
    },
}


@pytest.fixture(params=VARIANTS.values(), ids=list(VARIANTS))
def variant(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


@pytest.fixture
def one() -> dict[str, Any]:
    return build.net_input(build.sentences([5]), build.sentences([4]))


@pytest.fixture
def batch() -> dict[str, Any]:
    return build.net_input(build.sentences([5, 3]), build.sentences([4, 6]))


@pytest.fixture
def uneven() -> dict[str, Any]:
    return build.net_input(build.sentences([5, 2]), build.sentences([3, 6], seed=1))


def test_without_syntactic_heads_it_is_fairseqs_transformer(batch):
    ours = build.model("syntax_transformer_tiny")
    theirs = build.model("transformer_tiny", seed=1)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(**batch)[0], theirs(**build.plain_input(batch))[0])


def test_a_model_can_be_copied(batch):
    """Python 3.14 copies no iterators."""
    model = build.model("transformer_lpsi_tiny")
    values = [value for module in model.modules() for value in vars(module).values()]
    assert not any(isinstance(value, Iterator) for value in values)
    torch.testing.assert_close(copy.deepcopy(model)(**batch)[0], model(**batch)[0])


@pytest.mark.parametrize(
    ("arch", "expected"),
    [
        ("dbsa", 2 * 32 * 32),  # one d × d matrix in the encoder, one in the decoder
        ("syncattn", 2 * 32 * 32),
        ("lisa", 32 * 32),
        ("pascal", 0),
        ("local_attn", 0),
        ("lpsi", 2 * 2 * 2 * (6 * 32 + 1)),  # sides, layers, heads: W and b
        ("sh", 10 * (build.LABELS + 4)),
    ],
)
def test_no_system_adds_parameters_but_u(arch, expected):
    plain, ours = build.model("syntax_transformer_tiny"), build.model(f"transformer_{arch}_tiny")
    assert sum(p.numel() for p in ours.parameters()) == expected + sum(
        p.numel() for p in plain.parameters()
    )


@pytest.mark.parametrize("left_pad", [False, True])
def test_a_sentence_is_the_same_alone_and_in_a_batch(variant, left_pad):
    model = build.model(**variant).double()
    source, target = build.sentences([5, 2, 7]), build.sentences([3, 6, 4], seed=1)
    scores, extra = model(**build.net_input(source, target, left_pad))
    same = functools.partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
    for b in range(3):
        S, T = len(source[b]), len(target[b])
        alone, alone_extra = model(**build.net_input(source[b : b + 1], target[b : b + 1]))
        first = max(map(len, source)) - S if left_pad else 0
        columns = slice(first, first + S)
        same(scores[b, :T], alone[0])
        same(extra["attn"][0][b, :T, columns], alone_extra["attn"][0][0])
        last = T - 1 if variant.get("tgt_dependency_rows") == "input" else T
        for kind, inside in (
            ("src_dependency", (columns, columns)),
            ("tgt_dependency", (slice(last), slice(last))),
            ("src_distances", (columns,)),
            ("tgt_distances", (slice(T),)),
        ):
            own = [slice(part.stop - (part.start or 0)) for part in inside]
            for heads, single in zip(extra.get(kind, []), alone_extra.get(kind, []), strict=True):
                same(heads[(b, slice(None), *inside)], single[(0, slice(None), *own)])
        for layer, attention in enumerate(extra.get("distance_attn", [])):
            same(attention[b, :T, columns], alone_extra["distance_attn"][layer][0])
        if "backward_attn" in extra:
            same(extra["backward_attn"][b, columns, :T], alone_extra["backward_attn"][0])


@torch.no_grad()
def test_step_by_step_is_the_same_as_all_at_once(variant, batch):
    model = build.model(**variant).double()
    scores, _ = model(**batch)
    testing.check_steps(model)
    model.make_generation_fast_()
    testing.check_steps(model)
    torch.testing.assert_close(model(**batch)[0], scores, atol=1e-5, rtol=1e-5)


def test_distances_are_exposed_in_training_only_if_a_loss_reads_them(one):
    names = {"src_distances", "tgt_distances"}
    for layers, in_training in (("", set()), ("none", set()), ("1,2", names)):
        model = build.model("transformer_lpsi_tiny", distance_sync_layers=layers)
        assert ("distances" in model.exposed) == bool(in_training)
        assert names & model.eval()(**one)[1].keys() == names
        assert names & model.train()(**one)[1].keys() == in_training


def test_rows_by_input_are_moved_up_by_one(one):
    [predicted] = build.model("transformer_dbsa_tiny")(**one)[1]["tgt_dependency"]
    model = build.model("transformer_dbsa_tiny", tgt_dependency_rows="input")
    [by_input] = model(**one)[1]["tgt_dependency"]
    torch.testing.assert_close(by_input[..., :-1, :-1], predicted[..., 1:, 1:])
    assert by_input[..., -1, :].abs().max() == 0, "no state reads the end of the sentence"


def test_another_layers_alignment_is_whole_beside_a_backward_attention(one):
    model = build.model(**VARIANTS["backward"])
    _, extra = model(**one, alignment_layer=2)
    assert extra["attn"][0].shape == (1, 5, 6)
    assert "backward_attn" not in extra


@pytest.mark.parametrize(
    ("options", "layer"),
    [
        ({}, 2),
        ({"alignment_layer": 1}, 1),
        ({"alignment_layer": 3}, 3),
        ({"sync_layer": 1}, 1),
        ({"sync_layer": 3, "alignment_layer": 3}, 3),
    ],
    ids=str,
)
def test_the_sync_layer_or_the_chosen_one_aligns(options, layer, one):
    model = build.model("transformer_dbsa_tiny", **SYNC, **options)
    [aligning] = model(**one)[1]["attn"]
    for number in (1, 2, 3):
        [attention] = model(**one, alignment_layer=number - 1)[1]["attn"]
        assert aligning.equal(attention) == (number == layer)


def test_a_layer_with_a_backward_attention_can_tie_distances_too(uneven):
    model = build.model(
        **VARIANTS["backward"], distance_layers="1", distance_sync_layers="2", gate_temperature=1
    )
    assert model.decoder.alignment_layer == 2
    _, extra = model.train()(**uneven)
    torch.testing.assert_close(extra["distance_attn"][0], extra["attn"][0])


@pytest.mark.parametrize("name", ["syncattn", "backward", "lpsi", "pascal", "all at once"])
def test_checkpointed_activations_give_the_same_gradients(name):
    gradients = []
    random = {"dropout": 0.3, "attention_dropout": 0.2, "parent_ignoring": 0.4}
    for checkpointed in (False, True):
        model = build.model(**VARIANTS[name], checkpoint_activations=checkpointed, **random)
        torch.manual_seed(5)
        testing.check_gradients(model.double())
        gradients.append({n: p.grad for n, p in model.named_parameters()})
    # Some attention probabilities are float32 even in a float64 model.
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "tied"),
    [
        *(("syncattn", {}), ("dbsa", {}), ("lisa", {}), ("pascal", {})),
        ("lpsi", {"distance_layers": "1,2", "distance_sync_layers": "2,3"}),
    ],
)
def test_checkpointed_activations_work_with_distributed_training(name, tied, tmp_path):
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        model = build.model(**VARIANTS[name], **tied, checkpoint_activations=True)
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        for _ in range(2):
            testing.differentiate(parallel, testing.make_batch(model, [0, 1, 2]))
        del parallel  # freed after its group, it may wait for a thread that waits for Python
    finally:
        torch.distributed.destroy_process_group()


def test_layer_drop_keeps_numbers_and_never_drops_required_layers():
    layers = [torch.nn.Linear(2, 2) for _ in range(6)]
    dropping = NumberedLayerDrop(0.5, layers, bypass_encoder_layer, required=[2, 5])
    torch.manual_seed(0)
    dropped = [0] * 6
    for _ in range(200):
        present = list(dropping)
        assert len(present) == 6
        for i, layer in enumerate(present):
            assert layer is layers[i] or layer is bypass_encoder_layer
            dropped[i] += layer is not layers[i]
    assert dropped[1] == dropped[4] == 0
    assert all(60 < n < 140 for i, n in enumerate(dropped) if i not in (1, 4))


def test_layer_drop_keeps_supervised_layers_and_their_numbers(uneven):
    options = {"encoder_layerdrop": 0.9, "decoder_layerdrop": 0.9, "dropout": 0.0}
    dropping = build.model(**VARIANTS["syncattn"], **options).train()
    torch.manual_seed(0)
    for _ in range(5):
        _, extra = dropping(**uneven)
        assert extra["attn"][0] is not None
        assert len(extra["inner_states"]) == 4
    whole = dropping.eval()(**uneven)[0]
    plain = build.model(**VARIANTS["syncattn"], dropout=0.0)
    plain.load_state_dict(dropping.state_dict())
    torch.testing.assert_close(whole, plain(**uneven)[0])


@pytest.mark.parametrize("name", ["syncattn", "lpsi", "lisa", "tree window"])
def test_layer_drop_drops_no_layer_that_the_criterion_reads(name):
    options = {"encoder_layerdrop": 1.0, "decoder_layerdrop": 1.0, "dropout": 0.0}
    model = build.model(**{**SYNC, **VARIANTS[name]}, **options).train()
    required = {
        "syncattn": ([1], [1, 2]),
        "lpsi": ([1, 2], [1, 2, 3]),
        "lisa": ([1], [2]),
        "tree window": ([], [2, 3]),
    }[name]
    for stack, numbers in zip((model.encoder, model.decoder), required, strict=True):
        present = [layer for layer in stack.layers if isinstance(layer, torch.nn.Module)]
        assert [layer.number for layer in present] == numbers


PRUNED: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"local_layers": "3", "local_decoder_layers": "2,3"},
    "constant gate": {"constant_gate_layers": "1", "constant_gate_decoder_layers": "3"},
    "pascal": {"pascal_layers": "2,3", "pascal_heads": 1},
    "dasa": {"dasa_layers": "3"},
    "interleaved": {"positions": "interleaved"},
    "tree window": {"cross_attention_tree_window": 2},
    "lpsi": {"distance_layers": "2,3", "distance_sync_layers": "1,3"},
    "syncattn": {
        "encoder_dependency_layer": 3,
        "decoder_dependency_layer": 2,
        "sync_layer": 3,
        "sync_backward": "softmax",
    },
}


@pytest.mark.parametrize("kept", ["0,2", "2,1"])
@pytest.mark.parametrize("name", PRUNED)
@torch.no_grad()
def test_pruned_layers_take_nothing_of_the_others_along(name, kept, batch, caplog):
    """A pruned model is the trained one without some layers, whatever stands in each of them."""
    options = {"arch": "syntax_transformer_tiny", "encoder_layers": 3, "decoder_layers": 3}
    options |= PRUNED[name]
    whole = build.model(**options)
    weights = copy.deepcopy(whole.state_dict())
    for stack in (whole.encoder, whole.decoder):
        stack.layers = torch.nn.ModuleList(stack.layers[int(n)] for n in sorted(kept.split(",")))
        stack.numbers = [layer.number for layer in stack.layers]
        present = {
            kind: {*layers} & {*stack.numbers} for kind, layers in stack.exposing_layers.items()
        }
        stack.exposing_layers = {kind: sorted(layers) for kind, layers in present.items()}
    whole.decoder.num_layers = 2
    whole.decoder.alignment_layer = 2
    pruned = build.model(
        **options, encoder_layers_to_keep=kept, decoder_layers_to_keep=kept, seed=1
    )
    pruned.load_state_dict(weights, model_cfg=pruned.args)
    assert "new: " not in caplog.text
    (scores, extra), (expected, seen) = pruned(**batch), whole(**batch)
    torch.testing.assert_close(scores, expected)
    torch.testing.assert_close(extra["attn"], seen["attn"])
    for key in ("src_dependency", "tgt_dependency", "src_distances", "tgt_distances"):
        torch.testing.assert_close(extra.get(key), seen.get(key))
    saved = copy.deepcopy(pruned.args)  # with what fairseq has changed in it
    again = type(pruned).build_model(saved, build.task()).eval()
    again.load_state_dict(pruned.state_dict(), model_cfg=saved)
    torch.testing.assert_close(again(**batch)[0], expected)


@pytest.mark.parametrize("kept", ["0,3", "0,0", "one", "-1", "0,"])
def test_layers_to_keep_exist(kept):
    with pytest.raises(
        DataError, match=f"^--decoder-layers-to-keep {kept}: this option counts the decoder"
    ):
        build.model("syntax_transformer_tiny", decoder_layers=3, decoder_layers_to_keep=kept)


@torch.no_grad()
def test_one_head_can_stand_for_the_mean(batch):
    model = build.model("transformer_lpsi_tiny", **SYNC)
    for layer in (0, 2):
        [mean] = model(**batch, alignment_layer=layer)[1]["attn"]
        heads = []
        for head in (1, 2):
            model.decoder.choose_head(head)
            heads += model(**batch, alignment_layer=layer)[1]["attn"]
        assert not torch.allclose(heads[0], heads[1])
        torch.testing.assert_close(torch.stack(heads).mean(0), mean)
        model.decoder.choose_head(None)
        torch.testing.assert_close(model(**batch, alignment_layer=layer)[1]["attn"][0], mean)
    with pytest.raises(DataError, match="^head 3: a decoder layer has the heads 1 to 2"):
        model.decoder.choose_head(3)


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("transformer_dbsa", {}),
        ("transformer_dbsa", {"encoder_dependency_layer": 0}),
        ("transformer_syncattn", {}),
        ("transformer_lisa", {}),
        ("transformer_pascal", None),
        ("transformer_lpsi", None),
        ("syntax_transformer", None),
    ],
)
def test_heads_that_need_a_loss_are_not_trained_without(arch, options):
    """None: other heads, which learn from translation."""
    task, chosen = build.task(), build.options_of(f"{arch}_tiny", **(options or {}))
    losses = {"with syntax": SimpleNamespace(terms=[]), "plain": SimpleNamespace()}
    task.build_criterion = losses.__getitem__
    ARCH_MODEL_REGISTRY[f"{arch}_tiny"].build_model(chosen, task)
    assert task.build_criterion("with syntax").terms == []
    advice = "--criterion label_smoothed_cross_entropy_with_syntax and --task translation_with_syn"
    refused = pytest.raises(ValueError, match=f"dependency heads.*{advice}")
    with nullcontext() if options is None else refused:
        task.build_criterion("plain")


@pytest.mark.parametrize("name", ["dbsa", "lisa", "all at once"])
def test_gold_heads_change_what_the_model_says(name, uneven):
    model = build.model(**VARIANTS[name])
    plain, _ = model(**uneven)
    gold, _ = model(**uneven, forced_parents=torch.zeros_like(uneven["src_tokens"]))
    assert not torch.allclose(plain, gold)
    torch.testing.assert_close(model(**uneven)[0], plain, msg="not kept for the next batch")


def test_hydras_configuration_builds_the_same_model():
    arch = "transformer_dbsa_tiny"
    from_namespace = build.model(arch, dependency_heads=2)
    cfg = OmegaConf.create({"dependency_heads": 2})
    ARCH_CONFIG_REGISTRY[arch](cfg)
    again = type(from_namespace).build_model(cfg, build.task())
    assert again.state_dict().keys() == from_namespace.state_dict().keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_dependency_layer": 3}, "--encoder-dependency-layer 3: the encoder has layers"),
        ({"cross_attention_tree_layer": 3}, "--cross-attention-tree-layer 3: the decoder has la"),
        ({"cross_attention_tree_heads": 3}, "--cross-attention-tree-heads 3: each decoder"),
        (
            {"cross_attention_tree_window": 4, "sync_layer": 2, "sync_backward": "softmax"},
            "--sync-backward softmax: the cross-attention of decoder layer 2 has 2 heads, and",
        ),
        ({"decoder_dependency_layer": -1}, "--decoder-dependency-layer -1"),
        ({"dependency_heads": 3}, "--dependency-heads 3: encoder layer 1 has 2 heads"),
        ({"sync_layer": 7}, "--sync-layer 7"),
        ({"sync_layer": 2, "alignment_layer": 1}, "--alignment-layer: .* with a sync layer"),
        ({"alignment_layer": 3}, "--alignment-layer 3: the decoder has layers 1 to 2"),
        ({"sync_layer": 1, "decoder_dependency_layer": 0}, "--sync-layer ties"),
        ({"pascal_layers": "3"}, "--pascal-layers 3: the encoder has layers 1 to 2"),
        ({"pascal_layers": "one"}, "--pascal-layers one"),
        ({"pascal_layers": "²"}, "--pascal-layers ²: the encoder has layers 1 to 2; list layers"),
        (
            {"pascal_layers": "1", "pascal_heads": 2},
            "--pascal-heads 2: encoder layer 1 has 2 heads, and 1 is already taken by depen",
        ),
        ({"encoder_attention_heads": 3}, "--encoder-attention-heads 3: must divide --encoder-em"),
        ({"decoder_attention_heads": 0}, "--decoder-attention-heads 0: must divide"),
        ({"parent_ignoring": 1.5}, "--parent-ignoring 1.5: a probability is 0 to 1"),
        ({"parent_ignoring": -0.1}, "--parent-ignoring -0.1"),
        ({"distance_layers": "2,3"}, "--distance-layers 2,3: the encoder has layers 1 to 2"),
        (
            {"distance_layers": "1,2", "distance_sync_layers": "2"},
            "--distance-sync-layers 2: give one layer for each of --distance-layers 1,2",
        ),
        (
            {"distance_layers": "1", "local_layers": "1,2"},
            "--local-layers 1,2: .* 2 heads, and 1 is .* dependency heads, and 1 is already",
        ),
        *(
            (
                {f"{kind}_{side}layers": "3"},
                f"{kind}_{side}layers 3: the ".replace("_", "-") + stack,
            )
            for kind in ("constant_gate", "shuffled_gate", "forget_gate", "distance_bias", "local")
            for side, stack in (("", "encoder"), ("decoder_", "decoder"))
        ),
        (
            {"constant_gate_layers": "2", "forget_gate_layers": "2"},
            "--forget-gate-layers 2: .* 2 heads, and 2 are already taken by gated .constant. heads",
        ),
        *(
            (
                {"source_trees": "shuffled"} | reader,
                f"--source-trees shuffled: these parents form no tree, and {field} is "
                "measured in a tree; choose one of random, mirrored, another",
            )
            for reader, field in (
                ({"dasa_layers": "1"}, "src_tree_distances"),
                ({"cross_attention_tree_window": 4}, "src_tree_distances"),
                ({"supervised_gate_layers": "2"}, "src_gap_heights"),
            )
        ),
        ({"source_label_dim": 64}, "--source-label-dim 64: the source embedding has 64"),
        ({"cross_self_attention": True, "positions": "rotary"}, "^--cross-self-attention: decoder"),
        (
            {"cross_self_attention": True, "distance_layers": "1"},
            "^--cross-self-attention: decoder",
        ),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        build.model("transformer_dbsa_tiny", **options)


LIMITED = {
    option.name: option
    for part in (*PARTS.values(), *POSITIONS.values())
    for option in fields(part.Options)
    if not {"at_least", "above"}.isdisjoint(k for k, v in option.metadata.items() if v is not None)
}


def test_numbers_that_are_too_small_are_refused():
    assert len(LIMITED) == 7
    for name, option in LIMITED.items():
        at_least, above = option.metadata["at_least"], option.metadata["above"]
        smallest, flag = at_least if above is None else 1e-9, f"--{name.replace('_', '-')}"
        if at_least is not None:
            build.model("syntax_transformer_tiny", **{name: smallest})
        rule = f"above {above}" if at_least is None else f"{at_least} or more"
        impossible = [smallest - 1]
        if isinstance(option.default, float):
            impossible.append(float("nan"))
        for value in impossible:
            with pytest.raises(DataError, match=f"^{flag} {value}: must be {rule}$"):
                build.model("syntax_transformer_tiny", **{name: value})


def count(layer: Any, kind: str) -> int:
    groups = getattr(layer.self_attn, "heads", {})
    return groups[kind].count if kind in groups else 0


def list_exposing(model: Any, name: str) -> tuple[list[int], list[int]]:
    return tuple(stack.exposing_layers[name] for stack in (model.encoder, model.decoder))


def test_architectures_have_the_layers_of_the_papers():
    build_small = functools.partial(build.model, encoder_embed_dim=16, encoder_ffn_embed_dim=16)
    base = build_small("transformer_syncattn")
    assert list_exposing(base, "dependency") == ([1], [1])
    assert base.decoder.alignment_layer == 5
    assert [aligning_layer(layers) for layers in (1, 2, 3, 6)] == [1, 2, 2, 5]
    iwslt = build.model("transformer_dbsa_iwslt_de_en", encoder_layers=1, decoder_layers=2)
    attention = iwslt.encoder.layers[0].self_attn
    counts = {name: heads.count for name, heads in attention.heads.items()}
    assert counts == {"dependency": 1, "ordinary": 3}
    assert attention.heads["dependency"].parser == "biaffine"
    assert (attention.embed_dim, attention.num_heads) == (512, 4)
    assert iwslt.encoder.layers[0].fc1.out_features == 1024
    pascal = build_small("transformer_pascal")
    assert [count(layer, "parent_scaled") for layer in pascal.encoder.layers] == [7, 0, 0, 0, 0, 0]
    lpsi = build_small("transformer_lpsi")
    assert list_exposing(lpsi, "distances") == ([1, 2], [1, 2])
    assert lpsi.decoder.distance_sync_layers == [5, 6]
    assert lpsi.encoder.layers[0].self_attn.heads["gated"].weight.shape == (8, 6, 2)
    lpsi = build_small("transformer_lpsi", distance_layers="1,2,3")
    assert lpsi.decoder.distance_sync_layers == [4, 5, 6], "as many as gated ones, at the top"
    local = build_small("transformer_local_attn")
    assert [count(layer, "window") for layer in local.encoder.layers] == [8, 8, 0, 0, 0, 0]
    assert local.encoder.layers[1].self_attn.heads["window"].window == 2
    lisa = build_small("transformer_lisa")
    assert lisa.encoder.layers[0].self_attn.heads["dependency"].parser == "lisa"
    assert list_exposing(lisa, "dependency") == ([1], [])
    sh = build.model("transformer_sh", encoder_layers=1, decoder_layers=1)
    assert sh.encoder.label_embedding.embedding_dim == 10
    tree = build_small("syntax_transformer", cross_attention_tree_window=4)
    groups = [getattr(layer.encoder_attn, "position", None) for layer in tree.decoder.layers]
    heads = [group and group.count for group in groups]
    assert heads == [None, None, None, None, None, 4], "half of the top layer's"


#: Options of kinds of heads, all unlike the defaults, and what they set in the encoder's layer.
GATES = (
    {"distance_look_back": 2, "gate_temperature": 3.0},
    {"weight": (2, 3, 32), "temperature": 3},
)
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gated": ({"distance_layers": "1"} | GATES[0], GATES[1]),
    "shuffled_gate": ({"shuffled_gate_layers": "1"} | GATES[0], GATES[1]),
    "window": ({"local_layers": "1", "local_window": 3}, {"window": 3}),
    "forget_gate": ({"forget_gate_layers": "1"}, {"weight": (2, 64)}),
    "dasa": (
        {
            "dasa_layers": "1",
            "dasa_strength": 3,
            "dasa_form": "released",
            "dasa_distance": "linear",
        },
        {"strength": 3, "form": "released", "distance": "linear"},
    ),
    "distance_bias": (
        {"distance_bias_layers": "1", "distance_bias_distance": "tree"},
        {"weight": (16 + 1, 2), "distance": "tree"},
    ),
    "parent_scaled": (
        {"pascal_layers": "1", "pascal_std": 3.0, "pascal_parents": "self", "parent_ignoring": 0.2},
        {"std": 3, "parents": "self", "ignoring": 0.2},
    ),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_options_reach_the_heads_that_they_are_for(kind):
    options, expected = SETTINGS[kind]
    heads = build.model("syntax_transformer_tiny", **options).encoder.layers[0].self_attn.heads
    for name, value in expected.items():
        setting = getattr(heads[kind], name)
        assert getattr(setting, "shape", setting) == value


def test_options_of_other_parts_reach_them():
    top = build.model("syntax_transformer_tiny", cross_attention_tree_window=3).decoder.layers[1]
    assert top.encoder_attn.position.window == 3
    top = build.model("syntax_transformer_tiny", positions="bias").decoder.layers[1]
    assert top.self_attn.positions.weight.shape == (32, 2)


def test_slopes_are_those_of_the_layers_heads():
    dependency = {"encoder_dependency_layer": 1, "encoder_attention_heads": 4}
    slopes = {"distance_bias_layers": "1", "distance_bias_form": "slopes"}
    model = build.model("syntax_transformer_tiny", **dependency, **slopes, noise=0)
    heads = model.encoder.layers[0].self_attn.heads
    assert list(heads) == ["dependency", "distance_bias"]
    assert heads["distance_bias"].slopes.tolist() == [2**-4, 2**-6, 2**-8]
    steep = build.model("syntax_transformer_tiny", positions="alibi", alibi_scale=3.0)
    for stack in (steep.encoder, steep.decoder):
        assert stack.layers[1].self_attn.positions.slopes.tolist() == [3 * 2**-4, 3 * 2**-8]


@pytest.mark.parametrize(
    ("option", "kind", "default"),
    [
        ("distance", "gated", "same"),
        ("constant_gate", "constant_gate", "same"),
        ("shuffled_gate", "shuffled_gate", "same"),
        ("forget_gate", "forget_gate", "same"),
        ("local", "window", "none"),
        ("distance_bias", "distance_bias", "none"),
    ],
)
def test_each_side_has_such_heads_where_it_is_told(option, kind, default):
    def layers(encoder: str, decoder: str | None) -> list[list[int]]:
        options = {f"{option}_layers": encoder}
        if decoder is not None:
            options[f"{option}_decoder_layers"] = decoder
        model = build.model(
            "syntax_transformer_tiny", encoder_layers=3, decoder_layers=3, noise=0, **options
        )
        stacks = (model.encoder.layers, model.decoder.layers)
        return [[layer.number for layer in stack if count(layer, kind)] for stack in stacks]

    assert layers("1,3", "same") == [[1, 3], [1, 3]]
    assert layers("all", "2") == [[1, 2, 3], [2]]
    assert layers("none", "all") == [[], [1, 2, 3]]
    assert layers("2", "none") == [[2], []]
    assert layers("2", None) == [[2], [2] if default == "same" else []]


@pytest.mark.parametrize("arch", ["transformer_dbsa_tiny", "transformer_lpsi_tiny"])
@pytest.mark.parametrize(
    "cross_attention",
    [
        {},
        {"cross_attention_tree_window": 3},
        {
            "encoder_dependency_layer": 1,
            "decoder_dependency_layer": 1,
            "sync_layer": 2,
            "sync_backward": "softmax",
        },
    ],
    ids=["plain", "tree window", "backward"],
)
def test_attention_of_every_kind_has_its_dropout(arch, cross_attention):
    model = build.model(arch, attention_dropout=0.25, **cross_attention)
    attentions = [module for module in model.modules() if isinstance(module, MultiheadAttention)]
    assert [attention.dropout_module.p for attention in attentions] == [0.25] * 6


def test_parents_scale_the_last_heads_of_the_layers_that_have_such(batch):
    """With all parents ignored the model is fairseq's; with parents it is not."""
    beside = build.model("transformer_dbsa_tiny", pascal_layers="1").encoder.layers[0]
    assert count(beside, "parent_scaled") == 1, "a dependency head is the other"
    options = {"pascal_layers": "1,2", "pascal_heads": 2, "dropout": 0.0}
    model = build.model("syntax_transformer_tiny", parent_ignoring=1.0, **options).double()
    plain = build.model("syntax_transformer_tiny").double()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model.train()(**batch)[0], plain(**batch)[0])
    scaled = model.eval()(**batch)[0]
    assert not torch.allclose(scaled, plain(**batch)[0], atol=1e-3)
    unknown = torch.full_like(batch["src_parent_positions"], float("nan"))
    unparsed = batch | {"src_parent_positions": unknown}
    torch.testing.assert_close(model(**unparsed)[0], plain(**batch)[0])


def test_labels_take_the_last_dimensions_of_the_source_embedding(one):
    model = build.model("transformer_sh_tiny", share_all_embeddings=True)
    encoder = model.encoder
    embedded = encoder(one["src_tokens"], src_labels=one["src_labels"])["encoder_embedding"][0]
    words = encoder.embed_tokens(one["src_tokens"])[..., :54]
    labels = encoder.label_embedding(one["src_labels"])
    torch.testing.assert_close(embedded, encoder.embed_scale * torch.cat([words, labels], -1))
    fresh = build.model("transformer_sh_tiny", noise=0).encoder.label_embedding.weight
    assert fresh[build.PAD].abs().max() == 0
    assert 0.08 < fresh[4:].std() < 0.18, "64 ** -0.5 as for words"


def test_what_a_model_reads_must_be_there(one):
    for arch, options, field in (
        ("transformer_pascal_tiny", {}, "src_parent_positions"),
        ("transformer_sh_tiny", {}, "src_labels"),
        ("syntax_transformer_tiny", {"cross_attention_tree_window": 4}, "src_tree_distances"),
    ):
        without = {name: value for name, value in one.items() if name != field}
        with pytest.raises(ValueError, match=rf"net_input\.{field}"):
            build.model(arch, **options)(**without)


@pytest.mark.parametrize(
    ("arch", "options", "fields"),
    [
        ("syntax_transformer", {}, []),
        ("transformer_pascal", {}, [PARENT_POSITIONS]),
        (
            "transformer_pascal",
            {"source_trees": "random"},
            [replace(PARENT_POSITIONS, control="random")],
        ),
        ("transformer_pascal", {"pascal_parents": "self"}, []),
        ("transformer_pascal", {"pascal_parents": "constant"}, []),
        ("transformer_sh", {}, [LABELS]),
        ("syntax_transformer", {"supervised_gate_layers": "1"}, [GAP_HEIGHTS]),
        ("syntax_transformer", {"cross_attention_tree_window": 4}, [TREE_DISTANCES]),
        (
            "syntax_transformer",
            {"distance_bias_layers": "1", "distance_bias_distance": "tree"},
            [TREE_DISTANCES],
        ),
        ("syntax_transformer", {"distance_bias_layers": "1"}, []),
        (
            "syntax_transformer",
            {"dasa_layers": "1", "source_trees": "mirrored"},
            [replace(TREE_DISTANCES, control="mirrored")],
        ),
        ("syntax_transformer", {"distance_bias_distance": "tree"}, []),
    ],
)
def test_a_model_says_what_it_reads(arch, options, fields):
    model = build.model(f"{arch}_tiny", **options)
    assert model.source_fields == SourceFields(fields=frozenset(fields))


@pytest.mark.parametrize(("arch", "rule"), [("dbsa", "chain"), ("lisa", "first")])
def test_a_model_says_which_subword_stands_for_a_parent(arch, rule):
    fields = build.model(f"transformer_{arch}_tiny").source_fields
    assert fields == SourceFields(rules=frozenset([rule]))


@torch.no_grad()
def test_trees_gate_the_attention_of_the_layers_that_want_it(batch):
    """With every gap known to be equal, gates only tell near from far; with none, all are open."""
    options = {"supervised_gate_layers": "1,2"}
    model = build.model("syntax_transformer_tiny", **options)
    plain = build.model("syntax_transformer_tiny")
    plain.load_state_dict(model.state_dict())
    heights = batch["src_gap_heights"]
    unknown = batch | {"src_gap_heights": torch.full_like(heights, float("nan"))}
    torch.testing.assert_close(model(**unknown)[0], plain(**batch)[0])
    level = {**batch, "src_gap_heights": torch.where(heights.isnan(), heights, 1.0)}
    assert not torch.allclose(model(**level)[0], model(**unknown)[0])
    assert not torch.allclose(model(**batch)[0], model(**level)[0])
    shallow = build.model("syntax_transformer_tiny", supervised_gate_layers="2")
    shallow.load_state_dict(model.state_dict())
    assert not torch.allclose(shallow(**batch)[0], model(**batch)[0])


def test_labels_need_a_dictionary():
    args = build.options_of("transformer_sh_tiny")
    with pytest.raises(ValueError, match="--source-label-dim 10: the data has no dictionary"):
        ARCH_MODEL_REGISTRY["transformer_sh_tiny"].build_model(args, build.task())
