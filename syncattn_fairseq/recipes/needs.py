"""What a system needs besides the texts of a corpus: recipes make nothing else."""

from __future__ import annotations

from typing import Any

#: Translations mixed with parses of the source.
MULTI_TASK = "multitask"
#: Architectures with dependency heads in the encoder, and in the decoder as well.
DECODER_PARSES = ("transformer_dbsa", "transformer_syncattn")
ENCODER_PARSES = (*DECODER_PARSES, "transformer_lisa")
#: Options for attention heads that read the source's parse.
READING = ("relative_depth_layers", "supervised_gate_layers")
#: Weight of the losses of dependency heads unless a config sets it.
DEFAULT_WEIGHT = 0.5
#: PASCAL's controls that use no parse.
WITHOUT_PARSES = ("self", "constant")


def needs_of(config: dict[str, Any]) -> set[str]:
    """Return what a system needs: ``heads.LANG``, ``labels.LANG``, or `MULTI_TASK`.

    Args:
        config: the system's, from `load_system`.
    """
    task, model, criterion = config["task"], config["model"], config["criterion"]
    if task["data"].endswith(MULTI_TASK):
        return {MULTI_TASK}
    arch = model["_name"]
    encoder = arch.startswith(ENCODER_PARSES) or model.get("encoder_dependency_layer", 0) > 0
    decoder = arch.startswith(DECODER_PARSES) or model.get("decoder_dependency_layer", 0) > 0
    scaled = arch.startswith("transformer_pascal") or bool(model.get("pascal_layers"))
    directed = arch.startswith("rnn_syntax_directed")
    needs = set()
    if (
        directed
        or model.get("cross_attention_tree_window", 0) > 0
        or any(model.get(option) for option in READING)
        or (scaled and model.get("pascal_parents") not in WITHOUT_PARSES)
        or (encoder and criterion.get("src_dep_weight", DEFAULT_WEIGHT) > 0)
    ):
        needs.add(f"heads.{task['source_lang']}")
    if decoder and criterion.get("tgt_dep_weight", DEFAULT_WEIGHT) > 0:
        needs.add(f"heads.{task['target_lang']}")
    if arch.startswith("transformer_sh") or model.get("source_label_dim", 0) > 0:
        needs.add(f"labels.{task['source_lang']}")
    return needs
