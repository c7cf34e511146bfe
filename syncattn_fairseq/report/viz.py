"""The libraries of the extra viz, which draw pictures."""

from ..base.errors import DataError

try:
    import altair as alt
    import vl_convert
except ImportError:
    raise DataError("pictures need the extra viz: pip install 'syncattn-fairseq[viz]'") from None

__all__ = ["alt", "vl_convert"]
