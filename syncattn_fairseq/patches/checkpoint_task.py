"""Decode with the task and the plugin that a checkpoint was trained with.

Faults: all versions decode with ``--task translation`` unless told otherwise, which gives a model
no parses, and validate with none, which is a traceback. Without the plugin that a checkpoint was
trained with, they ignore its options, and call the weights damaged, or translate worse.
Test: ``test_checkpoint_task.py``.
"""

from typing import Any

from ..base.errors import DataError
from ..checkpoints.checkpoint_file import read_options
from ..checkpoints.option_checks import require_plugin
from ..registered_names import TASK
from .wrapping import wrap


def mend() -> None:
    """Take our task from the checkpoint if none is named, and refuse to do without its plugin."""
    from fairseq import checkpoint_utils, options, utils
    from fairseq.tasks import TASK_REGISTRY

    @wrap(options, "parse_args_and_arch")
    def parse_for_checkpoint(
        parse: Any, parser: Any, input_args: Any = None, *args: Any, **kw: Any
    ) -> Any:
        if {"task", "path"} <= {action.dest for action in parser._actions}:
            path = parser.parse_known_args(input_args)[0].path
            trained = read_options(utils.split_paths(path)[0], "task") if path else {}
            name = str(trained.get("_name"))
            if issubclass(TASK_REGISTRY.get(name, object), TASK_REGISTRY[TASK]):
                parser.set_defaults(task=name)
        return parse(parser, input_args, *args, **kw)

    @wrap(checkpoint_utils, "load_model_ensemble_and_task")
    def load_with_plugin(load: Any, filenames: Any, *args: Any, **kw: Any) -> Any:
        for path in filenames:
            require_plugin(path, read_options(path, "common").get("user_dir"))
        models, cfg, task = load(filenames, *args, **kw)
        for path, model in zip(filenames, models, strict=True):
            if getattr(model, "source_fields", None) and not hasattr(task, "fields"):
                reads = model.source_fields.reads
                if reads("heads") or reads("labels"):
                    raise DataError(
                        f"{path}: the model reads parses, which this task does not give it; use "
                        f"--task {TASK}"
                    )
        return models, cfg, task
