"""Import the libraries that draw pictures and pages; `DataError` if memory is limited too much."""

from resource import RLIMIT_AS, getrlimit

import altair as alt
import jinja2
import markupsafe
import vl_convert

from syncattn_fairseq.base.errors import DataError

# V8, which draws, ends a program that cannot reserve 1 TiB of addresses.
if 0 <= getrlimit(RLIMIT_AS)[0] < 2**41:
    raise DataError(
        "pictures need more virtual memory than is allowed here; lift the limit: ulimit -v "
        "unlimited"
    )

__all__ = ["alt", "jinja2", "markupsafe", "vl_convert"]
