"""Decode with the task and the plugin of a checkpoint's training.

Faults: all versions decode with ``--task translation`` unless told otherwise, which gives a model
no parses, and validate with none, which is a traceback. Without the plugin that a checkpoint was
trained with, they ignore its options, and call the weights damaged, or translate worse. With
dictionaries that are not those of the training, but as large, they translate into garbage.
Test: ``test_checkpoint_task.py``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..checkpoints.checkpoint_file import read_options, read_task_state
from ..checkpoints.option_checks import require_plugin
from ..data.fingerprint import check_data, find_fingerprint
from ..registered_names import TASK
from .wrapping import wrap

_OF_DATA = ("data", "source_lang", "target_lang")


def mend() -> None:
    """Make fairseq decode with the task and the plugin of a checkpoint's training.

    The task is taken from the checkpoint if none is named and the checkpoint's is ours. A missing
    plugin or other dictionaries are a `DataError`.
    """
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
    def load_with_plugin(
        load: Any,
        filenames: Any,
        arg_overrides: Any = None,
        task: Any = None,
        *args: Any,
        **kw: Any,
    ) -> Any:
        for path in filenames:
            require_plugin(path, read_options(path, "common").get("user_dir"))
        _check_data(filenames, arg_overrides or {}, task)
        models, cfg, task = load(filenames, arg_overrides, task, *args, **kw)
        for path, model in zip(filenames, models, strict=True):
            if getattr(model, "source_fields", None) and not hasattr(task, "fields"):
                reads = model.source_fields.reads
                if reads("heads") or reads("labels"):
                    raise DataError(
                        f"{path}: the model reads parses, but this task has none; use --task {TASK}"
                    )
        return models, cfg, task


def _check_data(paths: Any, overrides: Mapping[str, Any], task: Any) -> None:
    """Check that models were trained with the dictionaries and subwords of the present data."""
    from fairseq.tasks import TASK_REGISTRY
    from fairseq.tasks.translation import TranslationTask
    from fairseq.utils import split_paths

    if task is None:  # fairseq will set up the first checkpoint's
        trained = read_options(paths[0], "task")
        kind = TASK_REGISTRY.get(str(trained.get("_name")), object)
        settings = {**trained, **overrides}
    else:
        kind, settings = type(task), {name: getattr(task.cfg, name, None) for name in _OF_DATA}
    if not issubclass(kind, TranslationTask):
        return
    data, source, target = (settings.get(name) for name in _OF_DATA)
    for path in paths if data and source and target else ():
        state = read_task_state(path)
        if state is not None:
            fingerprint = find_fingerprint(path, {"task_state": state})
            check_data(
                str(path), fingerprint, Path(split_paths(data)[0]), (str(source), str(target))
            )
