"""Log tensor ratios, kept on the device until printed, to W&B as well.

Fault: all versions log averages and Python's numbers there, and leave out tensors, which they log
to TensorBoard.
Test: ``test_small_patches.py``.
"""

from typing import Any

from .wrapping import wrap


def mend() -> None:
    """Make fairseq log tensors with one element to Weights & Biases, as numbers."""
    import torch
    from fairseq.logging.progress_bar import WandBProgressBarWrapper

    @wrap(WandBProgressBarWrapper, "_log_to_wandb")
    def log_numbers(log: Any, self: Any, stats: Any, *args: Any, **kwargs: Any) -> None:
        numbers = {
            name: value.item() if torch.is_tensor(value) and value.numel() == 1 else value
            for name, value in stats.items()
        }
        log(self, numbers, *args, **kwargs)
