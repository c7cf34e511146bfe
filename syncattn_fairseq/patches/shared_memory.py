"""Import fairseq where processes cannot share memory.

Fault: all versions import ``fairseq.pdb`` first, whose debugger has a lock between processes. There
is none without a ``/dev/shm`` that can be written, as in some containers.
Test: ``test_shared_memory.py``. Needed by our commands; fairseq's own fail before we are imported.
"""

import multiprocessing
import threading
from typing import Any

from ..base.locks import can_share_locks


def spare_shared_locks() -> None:
    """Let ``multiprocessing.Lock`` make locks between threads, if it can make none of its own."""
    if can_share_locks():
        return
    shared: Any = multiprocessing
    shared.Lock = threading.Lock
