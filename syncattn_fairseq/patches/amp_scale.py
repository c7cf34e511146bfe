"""Divide the gradients of ``--amp`` once by the scale of the loss, not twice.

Fault: all versions give PyTorch's GradScaler two names of one optimizer, so that it does not know
that the gradients are unscaled already. Adam hides this until they come near its epsilon.
Test: ``test_small_patches.py``.
"""

from typing import Any


def mend() -> None:
    """Make ``--amp`` divide the gradients by the scale of the loss once, not twice.

    The scaler steps with the same optimizer whose gradients were unscaled.
    """
    from fairseq.optim import AMPOptimizer

    def step(self: Any) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()

    AMPOptimizer.step = step
