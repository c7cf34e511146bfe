"""Save a training between two validations, so that an interruption costs little.

Fault: all versions validate whenever they save within an epoch. That validation counts towards
``--patience``, and its checkpoint may become the best one: a save changes how a training ends.
Test: ``test_safety_saves.py``; ``test_fairseqs_own_does_both`` there fails once fairseq can do it.
"""

from typing import Any

from .wrapping import wrap


def mend() -> None:
    """Make fairseq save a checkpoint every ``--safety-save-updates`` updates, without validating.

    Only ``checkpoint_last.pt`` is written.
    """
    from fairseq import checkpoint_utils

    @wrap(checkpoint_utils, "load_checkpoint")
    def resume_and_save(resume: Any, cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        _extend_training()
        return resume(cfg, trainer, **kwargs)


def _extend_training() -> None:
    """Save after fairseq has decided what is to be done after an update."""
    # Not imported with the plugin: it sets up logging for the whole program.
    from fairseq import checkpoint_utils
    from fairseq_cli import train

    if hasattr(train.validate_and_save, "__wrapped__"):  # by an earlier training of this process
        return

    @wrap(train, "validate_and_save")
    def decide_and_save(
        decide: Any, cfg: Any, trainer: Any, task: Any, epoch_itr: Any, sets: Any, ends: bool
    ) -> Any:
        losses, stops = decide(cfg, trainer, task, epoch_itr, sets, ends)
        every, updates = getattr(task.cfg, "safety_save_updates", 0), trainer.get_num_updates()
        if every > 0 and updates % every == 0 and not ends and not stops:
            checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
        return losses, stops
