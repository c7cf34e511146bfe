"""Train on a GPU without waiting for it to say whether a batch has padding.

Faults: all versions ask before the first layer of the encoder, and of the decoder, whether any
token of the batch is padding. Until the GPU, which works behind the processor, has come there, the
processor launches nothing; and a CUDA graph cannot be recorded. On a GPU, a batch without padding
is rare, and a mask that hides nothing gives the same numbers but for their rounding.
Test: ``test_padding_waits.py``.
"""

from typing import Any

from torch import Tensor

from .wrapping import reword

#: Types of devices whose values the CPU can read without waiting.
AT_HAND = {"cpu"}


def mend() -> None:
    """Make fairseq assume padding in each training batch on a GPU, to avoid waiting for the GPU."""
    from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase

    reword(
        TransformerEncoderBase,
        "forward_scriptable",
        {
            "encoder_padding_mask.any()": "_may_be_padded(self, encoder_padding_mask)",
            # Where nothing is padding, the mask is zeros.
            " * has_pads.type_as(x)": "",
        },
        _may_be_padded=may_be_padded,
    )
    reword(
        TransformerDecoderBase,
        "extract_features_scriptable",
        {
            "prev_output_tokens.eq(self.padding_idx).any()": "_may_be_padded("
            "self, prev_output_tokens.eq(self.padding_idx))"
        },
        _may_be_padded=may_be_padded,
    )


def may_be_padded(stack: Any, mask: Tensor) -> Tensor | bool:
    """Return whether a batch has padding; on a GPU in training, return True without looking.

    Args:
        stack: the encoder or the decoder.
        mask: ``(B, T)``, True = padding.
    """
    if stack.training and mask.device.type not in AT_HAND:
        return True
    return mask.any()
