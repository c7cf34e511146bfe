"""The plugin: importing this module registers the task, the models and the criterion with fairseq.

``--user-dir syncattn_fairseq`` leads here. A user's own ``--user-dir`` and Python programs start
with ``import syncattn_fairseq.plugin``, before or after ``import fairseq``.
"""

from .patches import fairseq_version, one_line, quiet

# These shape the messages of the others.
one_line.fail_in_one_line()
quiet.quieten_commands()
fairseq_version.require_fairseq()

# What follows imports fairseq: check first that it works.
from .patches import (  # noqa: E402
    amp_scale,
    bf16_device,
    checkpoint_classes,
    checkpoint_errors,
    checkpoint_task,
    compiler_imports,
    cpu_training,
    cudnn_attention,
    encoder_kernel,
    evaluated_options,
    every_sentence,
    finite_losses,
    logged_tensors,
    ngram_blocking,
    patience,
    plain_options,
    returned_memory,
    safety_saves,
    unknown_options,
    whole_checkpoints,
)

# The order counts: what writes checkpoints comes before what changes their contents, which wraps it
# (whole_checkpoints refuses otherwise).
evaluated_options.run_no_options()
compiler_imports.avoid_compiler_imports()
encoder_kernel.avoid_encoder_kernel()
cudnn_attention.avoid_cudnn_attention()
ngram_blocking.mend_ngram_blocking()
checkpoint_classes.allow_checkpoint_classes()
whole_checkpoints.keep_checkpoints_whole()
plain_options.store_options_plainly()
checkpoint_errors.name_checkpoints_in_errors()
checkpoint_task.follow_checkpoints()
patience.keep_patience()
safety_saves.save_between_validations()
finite_losses.stop_at_infinite_losses()
returned_memory.keep_memory()
every_sentence.keep_every_sentence()
cpu_training.refuse_gpu_options()
unknown_options.refuse_unknown_options()
amp_scale.unscale_once()
bf16_device.keep_bf16_off_tpus()
logged_tensors.log_tensors()

from . import models, tasks  # noqa: E402
from .criterions import label_smoothed_cross_entropy_with_syntax  # noqa: E402

__all__ = ["label_smoothed_cross_entropy_with_syntax", "models", "tasks"]
