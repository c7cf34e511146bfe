"""Log ratios that stay on the device until they are printed to W&B and Azure ML, too.

Fault: all versions log averages and Python's numbers there, and leave out tensors, which they log
to TensorBoard.
Test: ``test_logged_tensors.py``.
"""

import functools
from collections.abc import Mapping
from typing import Any


def log_tensors() -> None:
    """Pass tensors with one element to W&B and Azure ML as numbers."""
    from fairseq.logging import progress_bar

    for kind, name in (
        (progress_bar.WandBProgressBarWrapper, "_log_to_wandb"),
        (progress_bar.AzureMLProgressBarWrapper, "_log_to_azureml"),
    ):
        setattr(kind, name, _with_numbers(getattr(kind, name)))


def _with_numbers(log: Any) -> Any:
    @functools.wraps(log)
    def log_numbers(self: Any, stats: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        import torch

        log(
            self,
            {
                name: value.item() if torch.is_tensor(value) and value.numel() == 1 else value
                for name, value in stats.items()
            },
            *args,
            **kwargs,
        )

    return log_numbers
