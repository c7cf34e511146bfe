"""examples/serve: the service under load, and its page in a headless Chromium."""

import json
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from resource import RUSAGE_SELF, getrusage
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import syncattn_fairseq
from lab.tests.report.test_browser import BROWSER, DRIVER, Reader, driver  # noqa: F401
from syncattn_fairseq.export import export
from tests.checkpoints import Corpus, make_checkpoint
from tests.importing import ROOT, import_file

uvicorn = pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("starlette", reason="needs the extra serve")
APP = ROOT / "examples" / "serve" / "app.py"
PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
HOSTILE = "<img src=x onerror=document.title='broken'><script>document.title='broken'</script>"


@pytest.fixture(scope="module")
def service(
    small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Any]]:
    """The service's address, and its module."""
    folder = tmp_path_factory.mktemp("service")
    path = make_checkpoint(small_corpus, folder / "c.pt", "transformer_syncattn", 40, **PRE_NORM)
    for language in ("en", "de"):
        shutil.copy(small_corpus.subwords, folder / f"subwords.{language}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL", str(path))
        patch.setenv("DATA_BIN", str(small_corpus.data))
        module = import_file(APP)
    server = uvicorn.Server(uvicorn.Config(module.app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    [address] = (s.getsockname() for each in server.servers for s in each.sockets)
    yield f"http://127.0.0.1:{address[1]}", module
    server.should_exit = True
    thread.join(timeout=30)


def post(url: str, body: Any) -> tuple[int, bytes]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data), timeout=120) as response:
            return response.status, response.read()
    except HTTPError as error:
        return error.code, error.read()


def test_hundreds_of_requests_at_once(small_corpus, service, tmp_path, monkeypatch):
    """No error, no wrong answer, and memory stays as it is."""
    pytest.importorskip("ctranslate2")
    url, module = service
    path = module.model.name
    export(path, small_corpus.data, "ctranslate2", tmp_path / "out")
    model = syncattn_fairseq.load(tmp_path / "out", device="cpu", threads=1)
    monkeypatch.setattr(module, "model", model)
    sources = small_corpus.learned()
    expected = {s: str(t) for s, t in zip(sources, model.translate(sources), strict=True)}
    asked = [sources[i % len(sources)] for i in range(200)]

    def ask(source: str) -> tuple[int, str]:
        status, body = post(f"{url}/translate", {"sentences": [source]})
        return status, json.loads(body)[0]["text"]

    peaks = []
    for _ in range(3):  # the first one fills the pools of threads and of memory
        with ThreadPoolExecutor(100) as pool:
            assert [*pool.map(ask, asked)] == [(200, expected[source]) for source in asked]
        peaks.append(getrusage(RUSAGE_SELF).ru_maxrss)
    assert peaks[-1] - peaks[-2] < 50_000  # KB


def test_every_answer(small_corpus, service):
    url, module = service
    [source] = small_corpus.learned()[:1]
    answers = {
        name: json.loads(post(f"{url}/{name}", {"sentences": [source]})[1])
        for name in ("translate", "parse", "align")
    }
    [[parse, _]], [links] = answers["parse"], answers["align"]
    assert parse["words"] == links["source"] == source.split()
    assert " ".join(links["target"]) == answers["translate"][0]["text"]
    assert post(f"{url}/draw", {"sentences": [source]})[1].startswith(b"<svg")
    assert json.loads(urlopen(f"{url}/health").read()) == module.model.info(module.decoding)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "Expecting property name"),
        (b"[" * 40000, ""),
        (b" " * 50_001, "more than 50000 bytes"),
        ({"sentences": "the dog"}, "give a list of 1 to 100"),
        ({"sentences": []}, "give a list of 1 to 100"),
        ({"sentences": ["a"] * 101}, "give a list of 1 to 100"),
        ({"sentences": [1]}, "expected a list of sentences"),
        ({"sentences": ["the ▁dog"]}, "in subwords already"),
    ],
)
def test_bad_requests(service, body, reason):
    for name in ("translate", "draw"):
        status, said = post(f"{service[0]}/{name}", body)
        assert status == 400 and reason in json.loads(said)["error"]


def test_a_sentence_that_is_too_long_is_told(service):
    _, body = post(f"{service[0]}/translate", {"sentences": ["", "the " * 300]})
    _, answer = json.loads(body)
    assert answer["text"] == "" and answer["error"].startswith("300 subwords, but the model")


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="no browser")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page(small_corpus, service, driver, width):  # noqa: F811
    """In a window of a width, in pixels."""
    [source, *_], (url, module), page = small_corpus.learned(), service, Reader(driver)
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(url)
    for sentence in (source, HOSTILE):
        driver.execute_script("document.getElementById('picture').replaceChildren()")
        [field] = page.find("#sentence")
        field.clear()
        field.send_keys(sentence)
        page.find("button")[0].click()
        page.wait(lambda: page.find("#picture img"))
        if sentence == source:
            expected = " ".join(module.model.translate([source])[0].split())
            assert page.text("#translation") == expected
        script = "const i = document.querySelector('#picture img'); return i.naturalWidth"
        assert driver.execute_script(script) > 100
    assert driver.title == "Translation, en to de"
    inside = "return document.documentElement.scrollWidth <= window.innerWidth"
    assert driver.execute_script(inside), "only the picture scrolls"
    assert not [e for e in driver.get_log("browser") if e["level"] == "SEVERE"]
