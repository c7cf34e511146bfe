from argparse import Namespace
from functools import partial
from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerModel
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # noqa: F401  (registers the architectures)
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.checkpoints.option_checks import (
    check_stored_options,
    list_options,
    require_architecture,
)
from syncattn_fairseq.tasks.translation_with_syntax import TranslationWithSyntaxConfig
from tests.checkpoints import make_checkpoint, model_options

CODE = "__import__('os').getpid()"


def state(**options: Any) -> dict[str, Any]:
    return {"cfg": {"model": Namespace(**vars(model_options("transformer_syncattn")) | options)}}


def config(content: Any) -> Any:
    return OmegaConf.create(content, flags={"allow_objects": True})


@pytest.mark.parametrize(
    "state",
    [
        state(encoder_xformers_att_config=CODE),
        state(adaptive_softmax_cutoff=CODE),
        state(encoder={"xformers_att_config": CODE}),
        state(unknown=[{"xformers_att_config": CODE}]),
        {"cfg": config(state(decoder_xformers_att_config=CODE)["cfg"])},
        {"cfg": config({"model": {"arch": "fconv", "encoder_layers": CODE}})},
        {"cfg": {"optimizer": {"adam_betas": CODE}}},
        {"args": Namespace(adam_betas=CODE)},
        {"cfg": config({"model": {"character_filters": "${model.x}", "x": CODE}})},
    ],
)
def test_code_is_found_wherever_it_is(state):
    with pytest.raises(
        DataError, match=r"^the checkpoint's option \w+: .* as code; do not use this file$"
    ):
        check_stored_options(state)


def test_what_contains_itself_is_read_once():
    loop: dict[str, Any] = {}
    loop["loop"] = [loop, loop]
    wide: list[Any] = []
    for _ in range(60):
        wide = [wide, wide]
    check_stored_options({"args": loop, "cfg": {"x": wide}})
    loop["wer_args"] = CODE
    with pytest.raises(DataError):
        check_stored_options({"args": {"before": wide, "last": loop}})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dropout": 0, "encoder_layers_to_keep": "0,1", "pascal_layers": 1},
        {"encoder_xformers_att_config": "{'name': 'favor'}", "adaptive_softmax_cutoff": "1,2"},
        {"adaptive_softmax_cutoff": [1, 2], "decoder_output_dim": "16", "dropout": None},
        {"encoder_ffn_embed_dim": "${model.decoder_layers}", "lr": object(), "command": CODE},
    ],
)
def test_what_training_stores_is_right(options):
    check_stored_options(state(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_layers": 2.0}, "encoder_layers is '2.0', not a whole number"),
        ({"encoder_layers": True}, "encoder_layers is 'True', not a whole number"),
        ({"sync_layer": [1]}, r"sync_layer is '\[1\]', not a whole number"),
        ({"dropout": "0.1"}, "dropout is '0.1', not a number"),
        ({"share_all_embeddings": 1}, "share_all_embeddings is '1', not true or false"),
        ({"activation_fn": "exp"}, "activation_fn is 'exp', not one of relu, gelu, "),
        ({"encoder_parser": {}}, "encoder_parser is '{}', not one of "),
        ({"dropout": "x" * 9999}, f"dropout is '{'x' * 60}', not a number"),
    ],
)
def test_types_are_those_of_the_architecture(options, message):
    with pytest.raises(DataError, match=f"^the checkpoint's option {message}"):
        check_stored_options(state(**options))
    other = {**state(**options)["cfg"]["model"].__dict__, "arch": "of a plugin", "_name": None}
    check_stored_options({"cfg": {"model": other}})  # what it takes is unknown


@pytest.mark.parametrize("model", [[1], "x", 7])
def test_options_are_a_table(model):
    with pytest.raises(DataError, match="^the options in the checkpoint are damaged"):
        check_stored_options({"cfg": {"model": model}})
    with pytest.raises(DataError, match="^the options in the checkpoint are damaged"):
        list_options(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_layers": 3}, "encoder_layers is 3"),
        ({"decoder_ffn_embed_dim": 17}, "decoder_ffn_embed_dim is 17"),
        ({"encoder_attention_heads": 10**9}, "encoder_attention_heads is 1000000000"),
        ({"max_source_positions": 10**7}, "max_source_positions is 10000000"),
    ],
)
def test_options_ask_for_no_more_than_the_weights(options, message):
    weights = {"a": torch.zeros(16, 2), "b": torch.zeros(()), "c": torch.zeros(3)}
    of_command = {"batch_size": 99, "max_target_positions": 10**6}
    check_stored_options({**state(**of_command), "model": weights})
    del weights["c"]
    with pytest.raises(
        DataError, match=f"the checkpoint's option {message}, larger than its weights"
    ):
        check_stored_options({**state(decoder_layers=2, **options), "model": weights})


def test_unknown_architectures_are_refused():
    require_architecture(Namespace(arch="transformer_dbsa"))
    require_architecture(config({"_name": "lstm"}))
    for arch in ("of a plugin", ["lstm"], 7):
        with pytest.raises(DataError, match="^unknown architecture .* --user-dir"):
            require_architecture(Namespace(arch=arch))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("source_parser", "command:conllu:touch PWNED"),
        ("source_parser", "${checkpoint.save_dir}"),
        ("input_heads", "/etc/passwd"),
        ("input_labels", "x"),
        ("results_path", "elsewhere"),
    ],
)
def test_what_only_a_command_may_give_is_refused(option, value):
    for part in ({"cfg": {"task": {option: value}}}, {"args": Namespace(**{option: value})}):
        with pytest.raises(
            DataError, match=f"^the checkpoint sets the option {option} to .*, which only a"
        ):
            check_stored_options(part)
    check_stored_options({"cfg": {"task": {option: None}}})


def test_from_pretrained_runs_no_parser_of_a_checkpoint(small_corpus, tmp_path):
    path = make_checkpoint(small_corpus, tmp_path / "model.pt", "transformer_pascal")
    load = partial(TransformerModel.from_pretrained, str(tmp_path), "model.pt")
    assert load(str(small_corpus.data)).models
    stored = torch.load(path, weights_only=False)
    stored["cfg"]["task"]["source_parser"] = f"command:conllu:touch {tmp_path / 'PWNED'}"
    torch.save(stored, path)
    with pytest.raises(
        DataError,
        match="model.pt: the checkpoint sets the option source_parser to .*, which only a",
    ):
        load(str(small_corpus.data)).translate("a b .")
    assert not (tmp_path / "PWNED").exists()


def test_fairseqs_own_name_of_the_results_path_is_allowed():
    task = OmegaConf.structured(TranslationWithSyntaxConfig)
    check_stored_options({"cfg": {"task": task, "common_eval": {"results_path": None}}})
