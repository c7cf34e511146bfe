"""Turn off the fast kernel of fairseq's encoder layers.

Fault: fairseq 0.12.2 with PyTorch 2: the interface of the kernel has changed, and fairseq's own
models cannot decode a padded batch. fairseq-fixed does not use the kernel.
Test: all that decode, with fairseq 0.12.2 installed (``scripts/test_matrix.sh``).
"""


def mend() -> None:
    """Make encoder layers never ask for the kernel."""
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    if "_load_from_state_dict" in vars(TransformerEncoderLayerBase):
        TransformerEncoderLayerBase.can_use_fastpath = property(
            lambda layer: False, lambda layer, value: None
        )
