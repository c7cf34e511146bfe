"""The page of syncattn-serve in a headless Chromium."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lab.tests.report.test_browser import BROWSER, DRIVER, Reader, driver  # noqa: F401
from tests.checkpoints import Corpus

pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("starlette", reason="needs the extra serve")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no browser")

HOSTILE = "<img src=x onerror=document.title='broken'><script>document.title='broken'</script>"


@pytest.fixture(scope="module", params=["parses", "links"])
def served(request: pytest.FixtureRequest, small_corpus: Corpus) -> Iterator[tuple[str, Any]]:
    """The address of a service, and its model: a checkpoint, or an export, which has no parses."""
    from syncattn_fairseq.serving import Limits, Service, bind
    from syncattn_fairseq.serving.server import _Server

    if request.param == "links":
        pytest.importorskip("ctranslate2")
        model = small_corpus.load(small_corpus.exported("ctranslate2"), subwords=None)
    else:
        model = small_corpus.load(small_corpus.trained())
    taken = bind("127.0.0.1", 0)
    server = _Server(Service(model, Limits()))
    thread = threading.Thread(target=server.run, args=[[taken]], daemon=True)
    url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    yield url, model
    server.should_exit = True
    thread.join(timeout=30)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page(small_corpus, served, driver, width):  # noqa: F811
    """In a window of a width, in pixels."""
    [source, *_], (url, model), page = small_corpus.learned(), served, Reader(driver)
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(url)
    page.wait(lambda: driver.title == "Translation, en to de")
    for sentence in (source, HOSTILE):
        [field] = page.find("#sentence")
        field.clear()
        field.send_keys(sentence)
        page.find("button")[0].click()
        page.wait(lambda: page.find("#picture img"))
        pieces = model.source_segmenter([sentence])[0]
        assert [item.text for item in page.find("#source li")] == pieces
        if sentence == source:
            [translation] = model.translate([source])
            assert page.text("#translation") == " ".join(translation.split())
            shown = [item.text for item in page.find("#target li")]
            assert shown == translation.sentence.pieces
        legend = page.text("#legend")
        assert legend.startswith("The picture: ") and "translate each other" in legend
        assert ("depends on" in legend) == ("parses" in model.shows)
        script = "const i = document.querySelector('#picture img'); return i.naturalWidth"
        assert driver.execute_script(script) > 100
    assert driver.title == "Translation, en to de"
    inside = "return document.documentElement.scrollWidth <= window.innerWidth"
    assert driver.execute_script(inside), "only the picture scrolls"
    field.clear()
    field.send_keys("the " * 240)
    page.find("button")[0].click()
    page.wait(lambda: "240 subwords, but the model reads at most 200" in page.text("#note"))
    assert not page.find("#picture img") and not page.text("#translation")
    assert not [e for e in driver.get_log("browser") if e["level"] == "SEVERE"]
