"""Cache the data shared by all pages, made once for the installed versions."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_text_file, replacing

#: Distributions on whose versions the cached data depends.
MAKERS = ("altair", "syncattn-lab", "vl-convert-python")


def remember(name: str, make: Callable[[], Any], source: str = "") -> Any:
    """Return a value that all pages share, from the user's cache, or make and keep it.

    Args:
        name: the name of the value, and of its file without suffix.
        make: makes the value, which JSON can hold.
        source: what else the value depends on, such as the code that makes it.
    """
    key = [*map(version, MAKERS), source]
    path = _find_folder() / f"{name}.json"
    with suppress(OSError, DataError, ValueError, TypeError, KeyError):
        kept = json.loads(read_text_file(path))
        if kept["key"] == key:
            return kept["value"]
    value = make()
    with suppress(OSError):  # the page needs no cache
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(json.dumps({"key": key, "value": value}), encoding="utf-8")
    return value


def _find_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "syncattn-lab"
