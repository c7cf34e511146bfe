"""Syntax inside the Transformer, as a fairseq plugin.

This import is light: neither fairseq nor torch is loaded until a subpackage that needs it is
imported; :mod:`syncattn_fairseq.functional`, for example, needs only torch. If fairseq is already
loaded, as with ``--user-dir syncattn_fairseq``, the task, models and criterion are registered.
From Python, ``import syncattn_fairseq.plugin`` always registers them.

:func:`load` turns a checkpoint into a model that translates, parses and aligns.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .inference import load as load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the function `load` on its first use, so that importing the package stays light."""
    if name == "load":
        from .inference import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if sys.modules.get("fairseq") is not None:
    from . import plugin as plugin
