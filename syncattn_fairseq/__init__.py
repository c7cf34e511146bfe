"""Syntax inside the Transformer, as a fairseq plugin.

Importing this package (``--user-dir`` does) registers the task, the models and the criterion.
"""

__version__ = "0.1.0"

from . import compatibility

compatibility.require_fairseq()
compatibility.avoid_encoder_kernel()
compatibility.allow_checkpoint_classes()

from . import criterions, models, tasks  # noqa: E402  (fairseq must be known to work first)

__all__ = ["criterions", "models", "tasks"]
