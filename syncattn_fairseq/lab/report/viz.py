"""The libraries of the extra viz, which draw pictures and make pages."""

from ...base.errors import DataError

try:
    import altair as alt
    import jinja2
    import markupsafe
    import vl_convert
except ImportError:
    raise DataError("pictures need the extra viz: pip install 'syncattn-fairseq[viz]'") from None

__all__ = ["alt", "jinja2", "markupsafe", "vl_convert"]
