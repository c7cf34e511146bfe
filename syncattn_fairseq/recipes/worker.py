"""``fairseq-hydra-train`` as one of the processes that torchrun starts.

fairseq can be started by torchrun on GPUs, but not on CPUs, where it counts on a GPU for each
process; told its rank, it counts on nothing.
"""

from __future__ import annotations

import os
import sys

import torch
from fairseq_cli.hydra_train import cli_main

from .. import plugin  # noqa: F401  (fairseq takes a package that is imported for registered)


def main() -> None:
    """Add to the command line what torchrun says in the environment."""
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
