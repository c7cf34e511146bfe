"""Let ``fairseq-train --bf16`` train on a GPU or a CPU.

Fault: all versions read ``--bf16`` on the command line as ``--tpu`` too, and end with a traceback
where PyTorch cannot use TPUs. fairseq-hydra-train reads ``common.bf16=true`` as it is.
Test: ``test_small_patches.py``.
"""

import importlib.util
from typing import Any

from .wrapping import wrap


def mend() -> None:
    """Let ``--bf16`` select a TPU only if ``torch_xla`` is installed."""
    from fairseq import options

    @wrap(options, "parse_args_and_arch")
    def parse_for_this_machine(parse: Any, *args: Any, **kwargs: Any) -> Any:
        parsed = parse(*args, **kwargs)
        values = parsed[0] if isinstance(parsed, tuple) else parsed  # a tuple with parse_known=True
        if getattr(values, "bf16", False) and importlib.util.find_spec("torch_xla") is None:
            values.tpu = False
        return parsed
