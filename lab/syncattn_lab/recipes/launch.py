"""Launch a training on any number of processes, with the batch size of its config."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.registered_names import TASK

from .stages import Step, command, hydra_value
from .systems import System

#: Fewest tokens in the batch of a process; long sentences would not fit into smaller batches.
SMALLEST_BATCH = 256
#: Updates between two checkpoints: a preempted training loses only minutes.
SAVED_EVERY = 1000
#: Processes that read sentences for a GPU, unless the config says how many: fairseq's one is slower
#: than many GPUs.
LOADERS = 4
#: Arguments that keep hydra from writing a log of its own into the folder.
WITHOUT_FILE = ("~hydra.job_logging.handlers.file", "hydra.job_logging.root.handlers=[console]")


@dataclass(frozen=True)
class Machines:
    """The number of processes of a training, and whether they use CPUs in place of a GPU each."""

    processes: int = 1
    cpu: bool = False


def divide_batch(config: dict[str, Any], processes: int) -> dict[str, Any]:
    """Return the settings that divide the batch of a config among several processes.

    A config is written for one process: an update has ``max_tokens × update_freq`` tokens. Each of
    P processes takes ``update_freq' = ceil(max_tokens × update_freq / (P max_tokens))`` batches of
    ``max_tokens' = ceil(max_tokens × update_freq / (P update_freq'))`` tokens. A batch's limit
    of sentences, where a config has one, is divided as that of tokens.

    Raises:
        DataError: the batch is too small for so many processes.
    """
    most = config["dataset"]["max_tokens"]
    together = most * config["optimization"].get("update_freq", [1])[0]
    steps = math.ceil(together / (processes * most))
    tokens = math.ceil(together / (processes * steps))
    if tokens < SMALLEST_BATCH <= most:
        raise DataError(
            f"a batch of {together:,} tokens leaves {tokens} to each of {processes} processes; "
            f"take at most {together // SMALLEST_BATCH}"
        )
    settings: dict[str, Any] = {"optimization.update_freq": [steps]}
    if tokens < most:  # longer pairs are left out, of training and of validation
        settings |= {"dataset.max_tokens": tokens, "dataset.max_tokens_valid": most}
        settings |= {"task.max_source_positions": tokens, "task.max_target_positions": tokens}
        settings |= {"dataset.skip_invalid_size_inputs_valid_test": True}
    sentences = config["dataset"].get("batch_size")
    if sentences and processes > 1:
        every = math.ceil(sentences * together / most / (processes * steps))
        settings |= {"dataset.batch_size": every, "dataset.batch_size_valid": sentences}
    return settings


def make_training(
    system: System, config: dict[str, Any], machines: Machines, changes: Mapping[str, Any]
) -> Step:
    """Return the step to train a system with the system's settings.

    Args:
        system: the system, whose files hydra merges.
        config: all settings by section and option, with the changes.
        machines: the processes and the kind of device.
        changes: settings by ``SECTION.OPTION`` to give fairseq on the command line.
    """
    settings = dict(changes)
    if config["task"]["_name"] == TASK:  # which can save without validating
        every = config["task"].get("safety_save_updates", SAVED_EVERY)
        settings["task.safety_save_updates"] = every
    settings |= divide_batch(config, machines.processes)
    if machines.cpu:
        settings |= {"common.cpu": True, "common.fp16": False}
    elif "num_workers" not in config["dataset"]:
        settings["dataset.num_workers"] = LOADERS
    words = system.hydra_words()
    # ++ sets an option whether or not the config has it.
    words += [f"++{name}={hydra_value(value)}" for name, value in settings.items()]
    words += WITHOUT_FILE
    if machines.processes == 1:
        return command("fairseq-hydra-train", *words)
    count = f"--nproc-per-node={machines.processes}"
    return command("torchrun --standalone", count, "-m", "syncattn_lab.recipes.worker", *words)
