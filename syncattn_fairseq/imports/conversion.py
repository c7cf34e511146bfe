"""Convert a published model to a syntax Transformer: its dictionaries, options and weights."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor

from ..base.errors import DataError
from ..models.syntax_transformer import SyntaxTransformerModel
from ..modules.positions import marian_table
from .published import CLASSES, Published

ARCH = "syntax_transformer"
#: The score of symbols that the other program does not have: never likely, and never infinite.
NEVER = -100.0
_SIDES = ("encoder", "decoder")
#: The options that `list_options` returns, with their types.
OPTION_TYPES: dict[str, type] = {
    **{f"{side}_{size}": int for side in _SIDES for size in ("embed_dim", "ffn_embed_dim")},
    **{f"{side}_{size}": int for side in _SIDES for size in ("layers", "attention_heads")},
    "activation_fn": str,
    **{f"{side}_normalize_before": bool for side in _SIDES},
    "no_scale_embedding": bool,
    "share_decoder_input_output_embed": bool,
    "share_all_embeddings": bool,
    "max_source_positions": int,
    "max_target_positions": int,
    "dropout": float,
    "attention_dropout": float,
    "activation_dropout": float,
    "positions": str,
    "output_bias": bool,
    "zero_start": bool,
}


def make_dictionary(words: Sequence[str], name: str) -> tuple[Dictionary, Tensor]:
    """Make a fairseq dictionary of another program's symbols.

    Args:
        words: the symbols, in the order of the other program.
        name: where the symbols are from, for error messages.

    Returns:
        the dictionary; and the index of each symbol in it.

    Raises:
        DataError: two symbols become one in fairseq's dictionary.
    """
    dictionary = Dictionary()
    for word in words:
        if word not in dictionary:
            dictionary.add_symbol(word)
    numbers = torch.tensor([dictionary.index(word) for word in words])
    if len(numbers.unique()) != len(words):
        raise DataError(
            f"{name}: two symbols of the vocabulary would be the same in a dictionary of "
            "fairseq; this model cannot be imported"
        )
    return dictionary, numbers


def convert(published: Published) -> tuple[SyntaxTransformerModel, dict[str, Any], list[Any]]:
    """Convert a published model to an equivalent syntax Transformer.

    Args:
        published: the published model.

    Returns:
        the model, in evaluation mode; the options that make it, by name; and for source and target,
        what :func:`make_dictionary` returns.

    Raises:
        DataError: the model's parameters are not those of a Transformer, or it has other positions.
    """
    _check_positions(published)
    sides = [
        make_dictionary(words, f"{published.folder}: {language}")
        for words, language in zip(published.words, published.languages, strict=True)
    ]
    state = _list_weights(published, sides)
    chosen = list_options(published, sides, state)
    args = Namespace(arch=ARCH, _name=ARCH, **chosen)
    ARCH_CONFIG_REGISTRY[ARCH](args)
    task = SimpleNamespace(source_dictionary=sides[0][0], target_dictionary=sides[1][0])
    model = SyntaxTransformerModel.build_model(args, task)
    wanted = {key for key in model.state_dict() if not key.endswith("._float_tensor")}
    if different := sorted(wanted ^ state.keys()):
        raise DataError(
            f"{published.folder}: the model's parameters are not those of a Transformer, such as "
            f"{different[0]}; this model cannot be imported"
        )
    model.load_state_dict(state, strict=False)
    return model.eval(), chosen, sides


def _check_positions(published: Published) -> None:
    """Raise `DataError` unless a model's positions are those that we compute.

    FSMT and Marian store theirs among the weights, where a training may have changed them. FSMT
    counts positions from the number of ``<pad>``, fairseq from 1.
    """
    if published.kind == "m2m_100":
        return
    config = published.config
    if published.kind == "fsmt" and config.pad_token_id != 1:
        raise DataError(
            f"{published.folder / 'config.json'}: pad_token_id is {config.pad_token_id}, from "
            "which FSMT counts positions; only models whose <pad> is 1, as in wmt19, can be "
            "imported"
        )
    for name, weight in published.model.state_dict().items():
        if name.endswith("embed_positions.weight"):
            if published.kind == "marian":
                expected = marian_table(*weight.shape)
            else:
                expected = SinusoidalPositionalEmbedding.get_embedding(*weight.shape, 1)
            if not torch.allclose(weight.float(), expected, atol=1e-3):
                raise DataError(
                    f"{published.folder}: {name} is not {CLASSES[published.kind]}'s sinusoid, as "
                    "if it had been trained; this model cannot be imported"
                )


def _list_weights(published: Published, sides: list[Any]) -> dict[str, Tensor]:
    """Return the weights by fairseq's names, rows of tables in the dictionaries' order."""
    given = {
        key.removeprefix("model."): value.detach().float().clone()
        for key, value in published.model.state_dict().items()
    }
    dropped = ("shared.weight", "final_logits_bias", "lm_head.weight")
    state = {
        key: value
        for key, value in given.items()
        if key not in dropped and ".embed_positions." not in key
    }
    output = "decoder.output_projection.weight"
    state[output] = given.get("lm_head.weight", given.get(output))
    for key, side in (
        ("encoder.embed_tokens.weight", 0),
        ("decoder.embed_tokens.weight", 1),
        (output, 1),
    ):
        dictionary, numbers = sides[side]
        table = state[key].new_zeros(len(dictionary), state[key].size(1))
        state[key] = table.index_copy(0, numbers, state[key])
    if published.kind == "marian":
        dictionary, numbers = sides[1]
        bias = torch.full((len(dictionary),), NEVER)
        bias = bias.index_copy(0, numbers, given["final_logits_bias"].flatten())
        bias[dictionary.pad()] = NEVER
        state["decoder.output_projection.bias"] = bias
    # Without these, fairseq takes them for weights of 2017, and leaves norms out.
    return state | {f"{side}.version": torch.Tensor([3]) for side in _SIDES}


def list_options(
    published: Published, sides: list[Any], state: dict[str, Tensor]
) -> dict[str, Any]:
    """Return the options of a syntax Transformer that computes the same as a published model.

    Args:
        published: the model.
        sides: for source and target, what :func:`make_dictionary` returns.
        state: the weights, by fairseq's names.
    """
    config = published.config
    marian = published.kind == "marian"
    source, target, output = (
        state[f"{name}.weight"]
        for name in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection")
    )
    tied = torch.equal(target, output)
    options: dict[str, Any] = {}
    for side in _SIDES:
        options[f"{side}_embed_dim"] = config.d_model
        options[f"{side}_ffn_embed_dim"] = getattr(config, f"{side}_ffn_dim")
        options[f"{side}_layers"] = getattr(config, f"{side}_layers")
        options[f"{side}_attention_heads"] = getattr(config, f"{side}_attention_heads")
        options[f"{side}_normalize_before"] = published.kind == "m2m_100"
    options["activation_fn"] = published.activation
    options["no_scale_embedding"] = not config.scale_embedding
    options["share_decoder_input_output_embed"] = tied
    options["share_all_embeddings"] = (
        tied and sides[0][0] == sides[1][0] and torch.equal(source, target)
    )
    options["max_source_positions"] = options["max_target_positions"] = (
        config.max_position_embeddings
    )
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        options[name] = float(getattr(config, name))
    options["positions"] = "marian" if marian else "absolute"
    options["output_bias"] = marian
    options["zero_start"] = published.words[1][config.decoder_start_token_id] != "</s>"
    return options
