"""Offer swish as an activation, as Marian's models have it.

Fault: all versions return the class of swish in place of a function, so that a Transformer fails in
its first step, and do not list it among the choices of ``--activation-fn``.
Test: ``test_small_patches.py``.
"""

from typing import Any

from .wrapping import wrap

SWISH = "swish"


def mend() -> None:
    """Make fairseq accept ``--activation-fn swish``, for which it then calls PyTorch's `silu`."""
    from fairseq import utils
    from fairseq.dataclass import ChoiceEnum

    # It makes a module of the class, so it must keep fairseq's own function.
    from fairseq.modules import conformer_layer  # noqa: F401

    @wrap(utils, "get_activation_fn")
    def get(original: Any, activation: str) -> Any:
        from torch.nn.functional import silu

        return silu if activation == SWISH else original(activation)

    @wrap(utils, "get_available_activation_fns")
    def list_names(original: Any) -> list[str]:
        names: list[str] = original()
        return names if SWISH in names else [*names, SWISH]

    from fairseq.models.transformer import TransformerConfig

    kind = ChoiceEnum(utils.get_available_activation_fns())
    TransformerConfig.__dataclass_fields__["activation_fn"].type = kind
    TransformerConfig.__annotations__["activation_fn"] = kind
