"""Save pictures as SVG, PNG and PDF files."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing

from .viz import alt, vl_convert

FORMATS = ("svg", "png", "pdf")
#: Characters that XML and so SVG cannot hold; at one of them, the renderer ends the program.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: The last code point of the letters that nearly all fonts have.
_LAST_LATIN = 0x24F
#: A code point that will never be a letter.
_NOWHERE = "\U0010fffe"


def check_format(path: Path) -> None:
    """Raise `DataError` unless the suffix of a file is that of a picture format in `FORMATS`."""
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        raise DataError(f"{path}: pictures are .svg, .png or .pdf; choose one")


def list_boxes(picture: Mapping[str, Any] | str) -> list[str]:
    """Return the scripts in a picture, such as ``HIRAGANA``, that no font here can draw.

    Their letters become boxes.
    The picture of a letter without a font is that of a letter that does not exist.
    """
    if isinstance(picture, str):
        text = picture
    else:
        rows = _replace_controls([*picture.get("datasets", {}).values()])
        text = json.dumps(rows, ensure_ascii=False)
    names = ((unicodedata.name(x, "UNKNOWN"), x) for x in text if ord(x) > _LAST_LATIN)
    letters = {name.split()[0].partition("-")[0]: letter for name, letter in names}
    box = _draw_letter(_NOWHERE) if letters else b""
    return sorted(script for script, letter in letters.items() if _draw_letter(letter) == box)


def _draw_letter(letter: str) -> bytes:
    chart = alt.Chart(alt.Data(values=[{}])).mark_text(text=letter, font="sans-serif")
    return vl_convert.vegalite_to_png(chart.properties(width=1, height=1).to_dict())


def save(picture: Mapping[str, Any] | str, path: Path) -> None:
    """Write a picture to a file whose suffix is ``.svg``, ``.png`` or ``.pdf``.

    The picture is a Vega-Lite chart with its data, or SVG. PNG has twice the size, for sharp print.
    Control characters of a chart become U+FFFD.
    """
    check_format(path)
    content = render(picture, path.suffix.lower().removeprefix("."))
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def render(picture: Mapping[str, Any] | str, kind: str) -> bytes:
    """Return the content of a picture's file, in a format of `FORMATS`.

    The picture is a Vega-Lite chart with its data, or SVG.
    """
    if isinstance(picture, str) and kind == "svg":
        return picture.encode()
    source = "svg" if isinstance(picture, str) else "vegalite"
    draw: Any = getattr(vl_convert, f"{source}_to_{kind}")
    content = draw(_replace_controls(picture), **({"scale": 2} if kind == "png" else {}))
    return content.encode() if kind == "svg" else bytes(content)


def _replace_controls(value: Any) -> Any:
    if isinstance(value, str):
        return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        return {name: _replace_controls(one) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [_replace_controls(one) for one in value]
    return value
