"""The plugin: importing this module registers the task, the models and the criterion with fairseq.

``--user-dir syncattn_fairseq`` leads here. A user's own ``--user-dir`` and Python programs start
with ``import syncattn_fairseq.plugin``, before or after ``import fairseq``.
"""

from . import building, checkpoints, whole_checkpoints
from .base import compatibility, finite_losses, one_line, safety_saves

one_line.fail_in_one_line()
compatibility.require_fairseq()
compatibility.run_no_options()
compatibility.avoid_encoder_kernel()
compatibility.avoid_cudnn_attention()
compatibility.mend_ngram_blocking()
checkpoints.allow_checkpoint_classes()
whole_checkpoints.keep_checkpoints_whole()
building.build_from_checkpoints_in_one_line()
safety_saves.save_between_validations()
finite_losses.stop_at_infinite_losses()

from . import models, tasks  # noqa: E402  (check first that fairseq works)
from .criterions import label_smoothed_cross_entropy_with_syntax  # noqa: E402

__all__ = ["label_smoothed_cross_entropy_with_syntax", "models", "tasks"]
