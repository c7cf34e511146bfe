"""Syntax inside the Transformer, as a fairseq plugin.

This import is light: neither fairseq nor torch is loaded until a room that needs it is opened, such
as :mod:`syncattn_fairseq.functional`, which needs torch alone. Where fairseq is already there, as
with ``--user-dir syncattn_fairseq``, its task, models and criterion are registered. From Python,
``import syncattn_fairseq.plugin`` registers them whatever was imported before.
"""

import sys

__version__ = "0.1.0"

if sys.modules.get("fairseq") is not None:
    from . import plugin as plugin
