"""Let ``torch.load`` read fairseq's checkpoints.

Fault: PyTorch 2.6 and later load only tensors and classes that are named in advance. Checkpoints of
all versions also hold fairseq's configuration, and when two processes resume, the second receives
it as an OmegaConf object. The check itself stays on.
Test: ``test_small_patches.py``.
"""


def mend() -> None:
    """Register the classes in fairseq's checkpoints as safe for ``torch.load``."""
    import torch

    from ..checkpoints.classes import list_classes

    torch.serialization.add_safe_globals(list_classes())
