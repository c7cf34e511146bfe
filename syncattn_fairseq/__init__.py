"""Syntax inside the Transformer, as a fairseq plugin.

This import is light: neither fairseq nor torch is loaded until a room that needs it is opened, such
as :mod:`syncattn_fairseq.functional`, which needs torch alone. Where fairseq is already there, as
with ``--user-dir syncattn_fairseq``, its task, models and criterion are registered. From Python,
``import syncattn_fairseq.plugin`` registers them whatever was imported before.

:func:`load` is the way from a checkpoint to translations, parses and alignments.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .inference import load as load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Open the room of what is asked for by its name here."""
    if name == "load":
        from .inference import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if sys.modules.get("fairseq") is not None:
    from . import plugin as plugin
