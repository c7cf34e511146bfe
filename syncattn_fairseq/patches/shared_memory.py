"""Import fairseq where processes cannot share memory.

Fault: fairseq as it is on PyPI imports ``fairseq.pdb`` first, whose debugger has a lock between
processes. There is none without a ``/dev/shm`` that can be written, as in some containers.
Test: ``test_shared_memory.py``. Our build of fairseq needs none.
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
