"""Run ``fairseq-hydra-train`` as a worker process of torchrun.

torchrun can start fairseq on GPUs, but not on CPUs, where fairseq expects a GPU for each process
unless it is told its rank.
"""

import os
import sys

import torch
from fairseq_cli.hydra_train import cli_main

from syncattn_fairseq import plugin  # noqa: F401  (fairseq treats an imported package as registered)


def main() -> None:
    """Train, with torchrun's environment variables as settings of distributed training."""
    settings = {
        "distributed_world_size": os.environ["WORLD_SIZE"],
        "distributed_rank": os.environ["RANK"],
        "device_id": os.environ["LOCAL_RANK"],
        "distributed_init_method": "'env://'",
        "distributed_no_spawn": "true",
    }
    if "++common.cpu=true" in sys.argv or not torch.cuda.is_available():
        settings |= {"distributed_backend": "gloo", "ddp_backend": "legacy_ddp"}
    sys.argv += [f"distributed_training.{name}={value}" for name, value in settings.items()]
    cli_main()


if __name__ == "__main__":
    main()
