"""Every system, small, with options so that all kinds of heads and losses are used."""

from typing import Any

from benchmarks import common
from benchmarks.half import systems

#: Kinds of heads and positions that no architecture has, several in a model, of which one layer
#: has plain heads; those of the benchmarks are among them.
KINDS: dict[str, dict[str, Any]] = {
    "rotary, forget gate": {"positions": "rotary", "forget_gate_layers": "1"},
    "alibi, constant gate": {"positions": "alibi", "constant_gate_layers": "1"},
    "bias, window": {"positions": "bias", "local_layers": "1", "local_decoder_layers": "1,2"},
    "no positions, shuffled gate": {"positions": "none", "shuffled_gate_layers": "1"},
    "tree bias": {"distance_bias_layers": "1,2", "distance_bias_distance": "tree"},
    "linear bias": {"distance_bias_layers": "1", "distance_bias_decoder_layers": "1,2"},
}
#: The system whose heads have the tree-planted losses, too.
PLANTED = "dbsa, tree-planted loss"
#: Architecture and options of each.
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        name: (arch, {} if "rnn" in arch else options)
        for name, (arch, options) in systems().items()
        if name not in common.KINDS
    },
    **{
        f"{arch}, {', '.join(options)}": (f"transformer_{arch}_tiny", options)
        for arch, options in (
            ("syncattn", {"sync_backward": "softmax", "dependency_key_bias": True}),
            ("dbsa", {"dependency_heads": 2, "tgt_dependency_rows": "input"}),
            ("lpsi", {"distance_sync_layers": "1,2"}),
            ("lpsi", {"gate_temperature": 2.0}),
            ("pascal", {"parent_ignoring": 0.5}),
        )
    },
    **{name: ("syntax_transformer_tiny", options) for name, options in KINDS.items()},
    PLANTED: ("transformer_dbsa_tiny", {}),
}  # fmt: skip
WEIGHTS = dict.fromkeys(("src_dep_weight", "tgt_dep_weight", "sync_weight"), 0.5)
WEIGHTS |= dict.fromkeys(("sync_mse_weight", "sync_rank_weight"), 0.1)


def no_dropout(arch: str) -> dict[str, float]:
    """Return the options that turn dropout off."""
    kinds = [""] if "rnn" in arch else ["", "attention_", "activation_"]
    return {f"{kind}dropout": 0.0 for kind in kinds}


def weights_of(name: str) -> dict[str, float]:
    planted = dict.fromkeys(("src_planted_weight", "tgt_planted_weight"), 0.5)
    return WEIGHTS | (planted if name == PLANTED else {})
