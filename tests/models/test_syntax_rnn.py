from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq import options
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from omegaconf import OmegaConf

from syncattn_fairseq import testing
from syncattn_fairseq.data.fields import NOTHING, TREE_DISTANCES, SourceFields
from syncattn_fairseq.modules import Source
from tests.models import build

ARCHITECTURES = [name for name in ARCH_MODEL_REGISTRY if name.startswith("rnn_")]
OPTIONS: list[dict[str, Any]] = [
    {"arch": "rnn_local", "renormalise_local": True},
    {"arch": "rnn_syntax_directed", "tree_position": "expected"},
    {"arch": "rnn_syntax_directed_double", "tree_position": "expected"},
]


@pytest.fixture(params=[*({"arch": arch} for arch in ARCHITECTURES), *OPTIONS], ids=str)
def model(request: pytest.FixtureRequest) -> Any:
    return build.model(half_window=3, tree_window=2, **request.param).double()


def test_what_holds_for_every_model_holds(model):
    testing.check_batches(model)
    testing.check_steps(model)
    testing.check_half_precision(model)
    testing.check_gradients(model)


@pytest.mark.parametrize("left_pad", [False, True])
def test_a_batch_has_the_attention_and_the_positions_of_its_sentences(model, left_pad):
    source, target = build.sentences([5, 2, 7]), build.sentences([3, 6, 4], seed=1)
    batch = build.net_input(source, target, left_pad)
    scores, extra = model(**batch)
    same(model(**batch, lengths_on_cpu=[len(sentence) for sentence in source])[0], scores)
    for b, length in enumerate((3, 6, 4)):
        alone = model(**build.net_input(source[b : b + 1], target[b : b + 1]))[1]
        first = max(map(len, source)) - len(source[b]) if left_pad else 0
        columns = slice(first, first + len(source[b]))
        same(extra["attn"][0][b, : length + 1, columns], alone["attn"][0][0])
        assert ("positions" in extra) == ("positions" in alone)
        if "positions" in extra:
            same(extra["positions"][b, : length + 1], alone["positions"][0])


def same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-6)


def test_it_runs_in_mixed_precision(model):
    batch = build.net_input(build.sentences([5, 2]), build.sentences([3, 6], seed=1))
    model = model.float()
    exact = model(**batch)[0]
    with torch.autocast("cpu", torch.bfloat16):
        scores = model(**batch)[0]
    assert scores.dtype == torch.bfloat16
    torch.testing.assert_close(scores.float(), exact, atol=0.1, rtol=0.1)
    scores.float().square().mean().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_it_computes_the_equations_of_the_paper(model):
    """One sentence, one step after the other, with PyTorch's own cells."""
    batch = build.net_input(build.sentences([5]), build.sentences([4], seed=1))
    scores, extra = model(**batch)
    encoder, decoder = model.encoder, model.decoder
    embedded = encoder.embed_tokens(batch["src_tokens"])
    h, last = encoder.gru(embedded)
    source = Source(torch.zeros(1, 6, dtype=torch.bool), batch["src_tree_distances"])
    s = torch.tanh(decoder.start(last[1]))
    for t, word in enumerate(batch["prev_output_tokens"][0]):
        y = decoder.embed_tokens(word).unsqueeze(0)
        middle = decoder.read(y, s)
        e = torch.tanh(decoder.query(middle).unsqueeze(1) + decoder.key(h)) @ decoder.energy
        weights, position = decoder.attention(e.unsqueeze(1), middle.unsqueeze(1), source)
        context = (weights @ h)[:, 0]
        s = decoder.move(context, middle)
        output = decoder.from_word(y) + decoder.from_state(s) + decoder.from_context(context)
        if decoder.second_attention is not None:
            second, position = decoder.second_attention(e.unsqueeze(1), middle.unsqueeze(1), source)
            output = output + decoder.from_second_context((second @ h)[:, 0])
        same(scores[0, t], decoder.output_projection(torch.tanh(output))[0])
        same(extra["attn"][0][0, t], weights[0, 0])
        if position is not None:
            same(extra["positions"][0, t], position[0, 0])


def test_sizes_of_the_paper():
    args = build.options_of("rnn_syntax_directed")
    assert (args.encoder_embed_dim, args.decoder_embed_dim) == (620, 620)
    assert (args.encoder_hidden_size, args.decoder_hidden_size) == (1000, 1000)
    assert (args.tree_window, args.half_window) == (4, 10)


@pytest.mark.parametrize(
    ("attention", "option"),
    [("local", "half_window"), ("flexible", "half_window"), ("syntax_directed", "tree_window")],
)
def test_a_window_is_as_wide_as_the_option_says(attention, option):
    single = build.model(f"rnn_{attention}", **{option: 3}).decoder.attention
    double = build.model(f"rnn_{attention}_double", **{option: 3}).decoder.second_attention
    assert (getattr(single, option), getattr(double, option)) == (3, 3)


@pytest.mark.parametrize("attention", ["local", "flexible", "syntax_directed"])
def test_the_expected_position_learns(attention):
    model = build.model(f"rnn_{attention}")
    scores, _ = model(**build.net_input(build.sentences([9, 6]), build.sentences([4, 5])))
    scores.log_softmax(-1)[..., 3].sum().backward()
    for parameter in model.decoder.attention.position.parameters():
        assert parameter.grad.isfinite().all() and parameter.grad.abs().sum() > 0


def test_options_of_the_command_line():
    line = ["--arch=rnn_local", "--renormalise-local", "--tree-position=expected"]
    args = options.parse_args_and_arch(options.get_training_parser(), ["data", *line])
    assert (args.renormalise_local, args.tree_position) == (True, "expected")
    args = options.parse_args_and_arch(options.get_training_parser(), ["data", "--arch=rnn_local"])
    assert (args.renormalise_local, args.tree_position) == (False, "predicted")


def test_shared_embeddings():
    model = build.model("rnn_global", share_all_embeddings=True, decoder_embed_dim=12)
    weight = model.encoder.embed_tokens.weight
    assert weight is model.decoder.embed_tokens.weight
    assert weight is model.decoder.output_projection.weight
    model = build.model("rnn_global", share_decoder_input_output_embed=True)
    assert model.decoder.embed_tokens.weight is model.decoder.output_projection.weight
    assert model.encoder.embed_tokens.weight is not model.decoder.embed_tokens.weight


def test_only_syntax_directed_attention_reads_trees():
    for arch in ARCHITECTURES:
        reads = "syntax" in arch
        trees = SourceFields(fields=frozenset([TREE_DISTANCES]))
        assert build.model(arch).source_fields == (trees if reads else NOTHING)
    batch = build.net_input(build.sentences([3]), build.sentences([4]))
    del batch["src_tree_distances"]
    build.model("rnn_local")(**batch)
    with pytest.raises(ValueError, match="net_input.src_tree_distances"):
        build.model("rnn_syntax_directed")(**batch)


@pytest.mark.parametrize(
    ("impossible", "message"),
    [
        ({"double_context": True, "source_attention": "global"}, "choose another"),
        ({"share_all_embeddings": True}, "--encoder-embed-dim 12 differs from --decoder-embed-di"),
        ({"half_window": 0}, "--half-window 0: must be 1 or more"),
        ({"tree_window": 0}, "--tree-window 0: must be 1 or more"),
    ],
)
def test_impossible_options(impossible, message):
    with pytest.raises(ValueError, match=message):
        build.model("syntax_rnn", **impossible)


def test_shared_embeddings_need_a_joint_dictionary():
    args = Namespace(share_all_embeddings=True)
    with pytest.raises(ValueError, match="joint dictionary"):
        ARCH_MODEL_REGISTRY["rnn_global"].build_model(args, build.task(target_words=3))


def test_hydra_gives_a_config_in_place_of_a_namespace():
    args = OmegaConf.create({"_name": "rnn_local_double", **build.RNN_SIZES})
    OmegaConf.set_struct(args, False)
    ARCH_CONFIG_REGISTRY["rnn_local_double"](args)
    model = ARCH_MODEL_REGISTRY["rnn_local_double"].build_model(args, build.task())
    assert model.decoder.second_attention is not None
