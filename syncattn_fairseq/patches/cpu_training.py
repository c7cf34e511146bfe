"""Refuse unsupported training modes on a CPU with a single clear line.

Faults: on a CPU, all versions end with a traceback in the first update with ``--fp16``, or at once
with ``--distributed-world-size 2``; with ``--distributed-init-method``, too, they exit with status
0 and have trained nothing; and torchrun makes them divide by zero.
Test: ``test_small_patches.py``.
"""

import os
from typing import Any

from ..base.errors import DataError
from .wrapping import wrap

#: Environment variables that torchrun sets.
_TORCHRUN = {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"}


def mend() -> None:
    """Make fairseq refuse options that need a GPU before a training on a CPU starts."""
    import torch
    from fairseq.distributed import utils
    from fairseq.trainer import Trainer

    @wrap(utils, "call_main")
    def call_checked(call: Any, cfg: Any, main: Any, **kwargs: Any) -> Any:
        given = cfg.distributed_training
        several, launched = given.distributed_world_size, False
        if given.distributed_init_method is None and os.environ.keys() >= _TORCHRUN:
            several, launched = os.environ["WORLD_SIZE"], True
        ready = given.distributed_init_method is not None and given.distributed_no_spawn
        has_gpu = torch.cuda.is_available() or cfg.common.tpu
        if (launched or several > 1) and not ready and not has_gpu:
            raise DataError(
                f"{several} processes were asked for, but fairseq starts one for each GPU and "
                "this machine has no GPU; on a CPU, start each process with "
                f"--distributed-world-size {several} --distributed-rank N "
                "--distributed-init-method tcp://localhost:PORT --distributed-no-spawn "
                "--distributed-backend gloo --ddp-backend legacy_ddp"
            )
        return call(cfg, main, **kwargs)

    @wrap(Trainer, "__init__")
    def make_checked(make: Any, self: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
        if cfg.common.fp16 and (cfg.common.cpu or not torch.cuda.is_available()):
            raise DataError("--fp16 trains only on a GPU; leave the option out, or use --bf16")
        make(self, cfg, *args, **kwargs)
