"""Check the options in a checkpoint before a model is built from them."""

import sys
from argparse import Action, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from torch import Tensor

from ..base.errors import DataError
from ..base.literals import evaluate
from .registered_options import make_parser

#: The options that fairseq evaluates as Python code if they are strings.
# fmt: off
EVALUATED = {
    "adafactor_eps", "adam_betas", "adamax_betas", "adaptive_input_cutoff",
    "adaptive_softmax_cutoff", "character_filters", "conv_aggregator_layers", "conv_feature_layers",
    "decoder_attention", "decoder_layers", "decoder_xformers_att_config", "downsample",
    "encoder_attention", "encoder_layers", "encoder_xformers_att_config", "gated_attention",
    "lamb_betas", "left_pad_source", "left_pad_target", "pipeline_balance",
    "pipeline_decoder_balance", "pipeline_decoder_devices", "pipeline_devices",
    "pipeline_encoder_balance", "pipeline_encoder_devices", "pretrained", "project_input",
    "self_attention", "wer_args", "xformers_att_config",
}
# fmt: on

#: Options of the task that only a command may give: they run parsers, read files, and name outputs.
OF_COMMANDS = {"source_parser", "input_heads", "input_labels", "results_path"}
#: What fairseq stores for the task: the value of the same option of all tasks.
_RESULTS_PATH = "${common_eval.results_path}"

_TYPES: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
}


def list_options(options: Any) -> dict[str, Any]:
    """Convert options, a namespace or a config, to a dictionary; `DataError` for anything else."""
    options = _plain(options)
    if not isinstance(options, dict):
        raise DataError(
            f"the options in the checkpoint are damaged: {type(options).__name__} in place of a "
            "table; use another checkpoint"
        )
    return options


def check_stored_options(state: Mapping[str, Any]) -> None:
    """Raise `DataError` if a checkpoint has an option that is unsafe or of a wrong type.

    Unsafe are code in options that fairseq evaluates, and options that only a command may give.
    """
    for name in ("cfg", "args"):
        for option, value in _walk(state.get(name), {}):
            if option in EVALUATED and isinstance(value, str):
                _check_literal(option, value)
            if option in OF_COMMANDS and value not in (None, _RESULTS_PATH):
                raise DataError(
                    f"the checkpoint sets the option {option} to {str(value)[:60]!r}, which only "
                    "a command may set; do not use this file"
                )
    if state.get("cfg"):
        model = list_options(state["cfg"]).get("model")
        if model is not None:
            _check_types(list_options(model), state.get("model"))


def require_architecture(options: Any) -> None:
    """Raise `DataError` if no imported code has registered the options' architecture."""
    name = getattr(options, "_name", None) or getattr(options, "arch", None)
    if name and not _is_known(name):
        raise DataError(
            f"unknown architecture {str(name)[:60]!r}; if a plugin of yours defines the "
            "architecture, name the plugin's folder: --user-dir"
        )


def require_plugin(path: Path | str, user_dir: Any) -> None:
    """Raise `DataError` if a checkpoint was trained with a plugin that is not imported.

    The plugin is not imported here: the checkpoint may come from anyone, and name any folder.
    Without the plugin, its options would be ignored, and the model would lack its heads.
    """
    if user_dir and Path(str(user_dir)).name not in sys.modules:  # as this package itself
        raise DataError(
            f"{path}: was trained with the plugin {str(user_dir)[:200]!r}, which is imported only "
            "if you name it: --user-dir FOLDER (in Python: user_dir=FOLDER)"
        )


def _plain(options: Any) -> Any:
    if OmegaConf.is_config(options):
        return OmegaConf.to_container(options, enum_to_str=True)
    return vars(options) if isinstance(options, Namespace) else options


def _walk(options: Any, seen: dict[int, Any]) -> Iterator[tuple[Any, Any]]:
    options = _plain(options)
    if not isinstance(options, dict | list | tuple) or id(options) in seen:
        return
    seen[id(options)] = options  # kept, or another object could get its number
    if isinstance(options, dict):
        yield from options.items()
    for value in options.values() if isinstance(options, dict) else options:
        yield from _walk(value, seen)


def _check_literal(option: str, value: str) -> None:
    try:
        evaluate(value)
    except DataError as error:
        raise DataError(
            f"the checkpoint's option {option}: {error}; do not use this file"
        ) from None


def _check_types(options: dict[str, Any], weights: Mapping[str, Tensor] | None) -> None:
    """Check the types of the options declared by the model, and ignore all other options."""
    from fairseq.models import ARCH_MODEL_REGISTRY, FairseqEncoderDecoderModel

    name = options.get("_name") or options.get("arch")
    if not _is_known(name):
        return
    declared = {action.dest: action for action in make_parser("model", name)._actions}
    for option in declared.keys() & options.keys():
        _check_type(declared[option], options[option])
    if weights is not None and issubclass(ARCH_MODEL_REGISTRY[name], FairseqEncoderDecoderModel):
        _check_sizes({*declared}, options, weights)


def _check_sizes(
    declared: set[str], options: dict[str, Any], weights: Mapping[str, Tensor]
) -> None:
    """Refuse sizes in the options beyond the sizes of the weights, since memory could run out."""
    widest = max((size for tensor in weights.values() for size in tensor.shape), default=0)
    limits = {"_layers": len(weights), "_dim": widest, "_size": widest, "_heads": widest}
    limits["_positions"] = 1_000_000
    for option in declared & options.keys():
        for ending, limit in limits.items():
            value = options[option]
            if option.endswith(ending) and isinstance(value, int) and value > limit:
                raise DataError(
                    f"the checkpoint's option {option} is {value}, larger than its weights "
                    "allow; use another checkpoint"
                )


def _check_type(action: Action, value: Any) -> None:
    if isinstance(value, str) and value.startswith("${"):
        return  # the value of another option
    if expected := find_expected(action, value):
        raise DataError(
            f"the checkpoint's option {action.dest} is {str(value)[:60]!r}, not {expected}; use "
            "another checkpoint"
        )


def find_expected(action: Action, value: Any) -> str:
    """Return what an option expects, such as "a number", or an empty text if the value fits."""
    if value is None:
        return ""
    types, expected = _TYPES.get(bool if action.nargs == 0 else action.type, ((), ""))
    if types and type(value) not in types:
        return expected
    if action.choices and str(value) not in map(str, action.choices):
        return f"one of {', '.join(map(str, action.choices))}"
    return ""


def _is_known(architecture: Any) -> bool:
    from fairseq.models import ARCH_MODEL_REGISTRY

    return isinstance(architecture, str) and architecture in ARCH_MODEL_REGISTRY
