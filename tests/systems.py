"""Every system, small, with options so that all kinds of heads and losses are used."""

from __future__ import annotations

from typing import Any

from benchmarks.half import systems
from tests.models.test_syntax_rnn import SIZES

#: Architecture and options of each.
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (arch, SIZES if "rnn" in arch else o) for name, (arch, o) in systems().items()},
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
}  # fmt: skip
WEIGHTS = dict.fromkeys(("src_dep_weight", "tgt_dep_weight", "sync_weight"), 0.5)
WEIGHTS |= dict.fromkeys(("sync_mse_weight", "sync_rank_weight"), 0.1)
NO_DROPOUT = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
