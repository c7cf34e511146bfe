from xml.etree import ElementTree

import pytest

from syncattn_fairseq.inference.drawing import DrawnSide, draw_pair
from syncattn_lab.report import charts, picture_files


def test_letters_that_no_font_has_are_noticed():
    def boxes(*names: str) -> list[str]:
        return picture_files.list_boxes({"datasets": {"words": [{"word": name} for name in names]}})

    assert boxes("the", "Mütter", "İşığı") == [] == picture_files.list_boxes({})
    assert boxes("the", "\uffff", "\U0010ffff") == ["UNKNOWN"]
    assert picture_files.list_boxes("<svg>the \U0010ffff</svg>") == ["UNKNOWN"]
    assert (
        picture_files._draw_letter("a")
        != picture_files._draw_letter("b")
        != picture_files._draw_letter("\U0010ffff")
    )


@pytest.mark.parametrize("suffix", picture_files.FORMATS)
def test_control_characters_do_not_end_the_program(suffix, tmp_path):
    word = "a\0b\x1b]0;c\x07\x7f\uffff"
    data = {"words": [{"word": word, "gold": 0, "predicted": None, "label": "\x01"}]}
    path = tmp_path / f"arcs.{suffix}"
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}
    chart = charts.fill(charts.dress(charts.arcs()), data)
    for picture in (chart, draw_pair(DrawnSide([word], [0]), DrawnSide([]), {})):
        picture_files.save(picture, path)
        assert path.read_bytes().startswith(begins[suffix])
        if suffix != "svg":
            continue
        assert "a\ufffdb\ufffd]0;c\ufffd\x7f\ufffd" in path.read_text(encoding="utf-8")
        ElementTree.parse(path)
