import re
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.export.fold import FoldedModel, fold, refuse
from syncattn_fairseq.export.pipeline import FORMATS
from tests.checkpoints import PRE_NORM
from tests.export.test_export import UNSHARED
from tests.models import build
from tests.models.build import SIZE
from tests.models.test_ends import MARIAN


def folded(arch: str, model: Any, **options: Any) -> Any:
    words, args = model.encoder.dictionary, build.options_of(arch, **SIZE | options)
    return fold(model, args, SimpleNamespace(source_dictionary=words, target_dictionary=words))


@pytest.mark.parametrize("options", [{}, {"dependency_heads": 3, "dependency_key_bias": True}])
def test_there_and_back_is_the_same_checkpoint(options):
    plain = build.model("transformer", **SIZE).state_dict()
    model = build.model("transformer_dbsa", seed=1, **SIZE, **options)
    model.load_state_dict({key: value.clone() for key, value in plain.items()}, strict=True)
    back = folded("transformer_dbsa", model, **options).state_dict()
    torch.testing.assert_close(back, plain, atol=1e-6, rtol=0)


@pytest.mark.parametrize("arch", ["syntax_transformer", "transformer_dbsa"])
def test_what_marians_models_have_is_kept(arch):
    model = build.model(arch, **{**SIZE, **MARIAN})
    plain = folded(arch, model, **MARIAN)
    inputs = build.net_input(build.sentences([5, 3]), build.sentences([4, 6], seed=1))
    with torch.no_grad():
        expected, found = model(**inputs)[0], plain(**build.plain_input(inputs))[0]
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)
    assert model.decoder.output_projection.bias.abs().min() > 0
    table = plain.decoder.embed_tokens.weight
    assert table is plain.decoder.output_projection.weight is plain.encoder.embed_tokens.weight


def test_half_precision_is_folded_in_full():
    half = build.model("transformer_dbsa", **SIZE, dependency_key_bias=True).half()
    weight = folded("transformer_dbsa", half).encoder.layers[0].self_attn.q_proj.weight
    assert weight.dtype == torch.float32


@pytest.mark.parametrize("positions", ["none", "rotary"])
def test_a_plain_model_gets_no_embeddings_that_the_model_lacks(positions):
    """Even if the options, as given, do not say so: the model draws this conclusion itself."""
    model = build.model("syntax_transformer", **SIZE, positions=positions)
    plain = folded("syntax_transformer", model, positions=positions)
    assert plain.encoder.embed_positions is plain.decoder.embed_positions is None


@pytest.mark.parametrize(
    ("arch", "options", "reason"),
    [
        ("transformer_lpsi", {}, "LPSI"),
        ("transformer_pascal", {}, "PASCAL"),
        ("transformer_lisa", {}, "LISA"),
        ("transformer_local_attn", {}, "local attention"),
        ("syntax_transformer", {"local_decoder_layers": "1"}, "local attention"),
        ("syntax_transformer", {"constant_gate_layers": "1"}, "gated (constant) heads"),
        ("syntax_transformer", {"shuffled_gate_layers": "1"}, "gated (shuffled) heads"),
        ("syntax_transformer", {"forget_gate_layers": "1"}, "forget-gated heads"),
        ("syntax_transformer", {"distance_bias_layers": "1"}, "distance heads"),
        ("syntax_transformer", {"cross_attention_tree_window": 4}, "SDAtt"),
        ("rnn_global", {}, "recurrent"),
    ],
)
def test_what_is_no_plain_transformer_is_refused_by_name(arch, options, reason):
    model = build.model(f"{arch}_tiny" if "rnn" not in arch else arch, **options)
    with pytest.raises(DataError, match=f"^c.pt: cannot be exported: .*{re.escape(reason)}"):
        refuse(model, "c.pt")


@pytest.mark.parametrize(
    ("format", "options", "reason"),
    [
        ("fairseq", {"source_label_dim": 4}, "S&H"),
        ("transformers", {"source_label_dim": 4}, "S&H"),
        ("transformers", PRE_NORM, "--normalize-before"),
        ("transformers", {"layernorm_embedding": True}, "--layernorm-embedding"),
        ("transformers", {"decoder_learned_pos": True}, "learned positions"),
        ("transformers", {"activation_fn": "tanh"}, "--activation-fn tanh"),
        ("ctranslate2", {"encoder_normalize_before": True}, "--normalize-before on both"),
        ("ctranslate2", {"decoder_attention_heads": 2}, "the same number of heads"),
        ("ctranslate2", {"no_token_positional_embeddings": True}, "no positions"),
        ("ctranslate2", {"positions": "none"}, "no positions .--positions none, or"),
        (
            "ctranslate2",
            {"positions": "alibi"},
            "CTranslate2's encoder does not support --positions alibi$",
        ),
        (
            "fairseq",
            {"positions": "alibi"},
            "fairseq's Transformer does not support --positions alibi$",
        ),
        (
            "fairseq",
            {"positions": "rotary"},
            "support --positions rotary; --format ctranslate2 supports them$",
        ),
        (
            "transformers",
            {"positions": "bias"},
            "FSMT of Hugging Face does not support --positions bias; ",
        ),
        ("fairseq", {"output_bias": True}, "support --output-bias; --format ctranslate2 does$"),
        ("transformers", {"zero_start": True}, "support --zero-start; --format ctranslate2 does$"),
        (
            "fairseq",
            {"positions": "marian"},
            "support --positions marian; --format ctranslate2 supports them$",
        ),
        (
            "transformers",
            {"positions": "marian"},
            "support --positions marian; --format ctranslate2",
        ),
        ("fairseq", {"activation_fn": "swish"}, "no --activation-fn swish; use --format ctra"),
        ("transformers", {"activation_fn": "swish"}, "--activation-fn swish"),
        ("ctranslate2", {"activation_fn": "tanh"}, "--activation-fn tanh"),
        ("ctranslate2", {"no_decoder_final_norm": True, **PRE_NORM}, "--no-decoder-final-norm"),
        ("ctranslate2", {"adaptive_softmax_cutoff": "9", **UNSHARED}, "support adaptive softmax"),
        ("ctranslate2", {"adaptive_input": True}, "support adaptive softmax or adaptive input"),
        ("ctranslate2", {"no_cross_attention": True}, "separate cross-attention"),
        ("ctranslate2", {"cross_self_attention": True}, "separate cross-attention"),
        ("ctranslate2", {"decoder_output_dim": 8, **UNSHARED}, "of the same width as the decoder"),
    ],
)
def test_what_a_format_lacks_is_refused(format, options, reason):
    chosen = {"share_all_embeddings": True, **options}
    model = build.model("syntax_transformer", **{**SIZE, **chosen})
    labels = getattr(model.encoder, "label_embedding", None)
    plain = folded("syntax_transformer", model, **chosen)
    values: dict[str, Any] = {field.name: None for field in fields(FoldedModel)}
    values |= {"name": "c.pt", "original": model, "model": plain, "labels": labels}
    values["preparations"] = {}
    with pytest.raises(DataError, match=f"^c.pt: cannot be exported: .*{reason}"):
        FORMATS[format]().refuse(FoldedModel(**values))
