"""The service, asked over HTTP: right, wrong, slow and broken requests, and its end."""

import asyncio
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from resource import RUSAGE_SELF, getrusage
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.inference import Decoding, Model
from syncattn_fairseq.inference.drawing import draw_analysis
from syncattn_fairseq.inference.record import make_record, write_record
from tests.checkpoints import Corpus

pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("starlette", reason="needs the extra serve")

from syncattn_fairseq.serving import Limits, Service, bind, server, service  # noqa: E402


class Served:
    """A service that runs in a thread."""

    def __init__(self, model: Any, limits: Limits) -> None:
        self.model = model
        self.service = Service(model, limits)
        self.server = server._Server(self.service)
        self.taken = bind("127.0.0.1", 0)
        self.port = self.taken.getsockname()[1]
        self.thread = threading.Thread(target=self.server.run, args=[[self.taken]], daemon=True)
        self.thread.start()
        self.wait(lambda: self.server.started or not self.thread.is_alive())

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def ask(self, path: str, body: Any = None, method: str = "POST") -> tuple[Any, bytes]:
        """Send a request; return the answer and its body."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, data)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def send(self, data: bytes) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        client.sendall(data)
        return client

    def exchange(self, data: bytes) -> bytes:
        """Send bytes, and return all that comes until the service closes the connection."""
        with self.send(data) as client:
            return read_all(client)

    def end(self) -> None:
        self.server.should_exit = True
        self.thread.join(timeout=60)
        assert not self.thread.is_alive()


def read_all(client: socket.socket) -> bytes:
    found = b""
    while part := client.recv(65536):
        found += part
    return found


@contextmanager
def serving(model: Any, **limits: Any) -> Iterator[Served]:
    served = Served(model, Limits(**limits))
    try:
        yield served
    finally:
        served.end()


@pytest.fixture(scope="module")
def exported(small_corpus: Corpus) -> Model:
    pytest.importorskip("ctranslate2")
    folder = small_corpus.exported("ctranslate2")
    return syncattn_fairseq.load(folder, device="cpu", threads=1)


@pytest.fixture(scope="module")
def served(exported: Model) -> Iterator[Served]:
    with serving(exported) as running:
        yield running


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that a client does is an error of the service."""
    caplog.set_level(logging.ERROR)
    yield
    assert not caplog.get_records("call")


class Slow:
    """A model whose translations wait for an event."""

    name, languages = "slow", ("en", "de")

    def __init__(self) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def translate(self, sentences: Any, **settings: Any) -> Any:
        self.begun.set()
        self.goes_on.wait(60)
        return []


def test_it_answers_as_the_model_does(small_corpus):
    model = small_corpus.load(small_corpus.trained())
    sources = small_corpus.learned()[:2]
    short = Decoding(beam=2, max_len=9, max_source=200, length_penalty=0.5, too_long="empty")
    translations = model.translate(sources, decoding=short)
    analyses = model.analyse(sources, translations)
    body = {"sentences": sources, "beam": 2, "max_len": 9, "length_penalty": 0.5}
    with serving(model) as running:
        found = {
            path: json.loads(running.ask(path, body)[1])
            for path in ("/translate", "/analyse", "/parse", "/align")
        }
        picture, svg = running.ask("/draw", {**body, "sentences": sources[0]})
        refused, said = running.ask("/draw", body)
        health, info = running.ask("/health", method="GET")
    assert found["/translate"] == [
        {"text": t, "score": pytest.approx(t.score), "fault": model.describe_faults(t)}
        for t in translations
    ]
    assert found["/analyse"] == [
        json.loads(write_record(make_record(each, model.describe_faults(each.translation))))
        for each in analyses
    ]
    assert found["/parse"][1][0] == {
        "words": sources[1].split(),
        "tree": analyses[1].source_parse.tree,
    }
    assert found["/align"][0]["links"] == [[*link] for link in analyses[0].alignment.links]
    assert picture.headers["content-type"] == "image/svg+xml"
    assert svg.decode() == draw_analysis(analyses[0])
    assert refused.status == 400 and b"a picture shows one sentence" in said
    assert json.loads(info) == model.info(service.DEFAULT) and health.status == 200
    assert json.loads(info)["shows"] == ["links", "parses"]


def test_hundreds_of_requests_at_once(small_corpus, served):
    """No error, no wrong answer, and memory stays as it is."""
    sources = small_corpus.learned()
    expected = [*map(str, served.model.translate(sources))]
    asked = [i % len(sources) for i in range(200)]

    def ask(index: int) -> tuple[int, str]:
        answer, body = served.ask("/translate", {"sentences": [sources[index]]})
        return answer.status, json.loads(body)[0]["text"]

    before = served.service.counters.sentences
    peaks = []
    for _ in range(3):  # the first one fills the pools of threads and of memory
        with ThreadPoolExecutor(60) as pool:
            assert [*pool.map(ask, asked)] == [(200, expected[index]) for index in asked]
        peaks.append(getrusage(RUSAGE_SELF).ru_maxrss)
    assert peaks[-1] - peaks[-2] < 50_000  # KB
    assert served.service.counters.sentences - before == 600


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/translate", b"{", 400, "the request is not valid JSON: "),
        ("/translate", {"sentences": ["a", "the \ud83d dog"]}, 400, "sentence 2: not UTF-8: half"),
        ("/align", {"sentences": ["the ▁dog"]}, 400, "sentence 1: the text is in subwords already"),
        ("/parse", {"sentences": ["a"]}, 400, "the model has no parses to show"),
        ("/draw", {"sentences": ["a", "b"]}, 400, "sentence 2: a picture shows one sentence"),
        ("/translate", b" " * 100_001, 413, "the request has more than 100000 bytes"),
        ("/health", b"", 405, "POST does not work for this path; use GET or HEAD"),
        ("/translate/", b"", 404, "no such path; the paths are /, /align, "),
        ("/%ff%00?x", b"", 404, "no such path"),
    ],
)
def test_one_line_says_what_is_wrong(served, path, body, status, reason):
    answer, said = served.ask(path, body)
    assert answer.status == status and said.count(b"\n") == 0
    assert json.loads(said)["error"].startswith(reason)
    check_headers(answer.headers)


def check_headers(headers: Any) -> None:
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_a_sentence_that_is_too_long_or_empty_is_told(served):
    _, body = served.ask("/translate", {"sentences": ["", "the " * 300]})
    empty, long = json.loads(body)
    assert empty == {"text": "", "score": None, "fault": ""}
    assert long["text"] == "" and long["fault"].startswith("300 subwords, but the model reads")
    _, body = served.ask("/draw", {"sentences": "the " * 300})
    assert body.startswith(b"<svg")


def test_the_page_and_its_parts(served):
    page, text = served.ask("/", method="GET")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    parts = re.findall(r'(?:src|href)="([^":]+)"', text.decode())
    assert parts == ["page.css", "page.js"]
    for part in parts:
        answer, _ = served.ask(f"/{part}", method="GET")
        assert answer.status == 200
        check_headers(answer.headers)


def test_numbers_for_whoever_watches(exported):
    with serving(exported) as running:
        for body in ({"sentences": ["the dog", "a cat"], "max_len": 2}, b"{"):
            running.ask("/translate", body)
        running.ask("/nowhere")
        running.exchange(b"nothing\r\n\r\n")
        answer, text = running.ask("/metrics", method="GET")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = text.decode().splitlines()
    seconds = lines.pop(8)
    assert re.fullmatch(r"syncattn_seconds_total \d+\.\d{3}", seconds)
    assert lines == [
        "# TYPE syncattn_requests_total counter",
        'syncattn_requests_total{path="",status="400"} 1',
        'syncattn_requests_total{path="/translate",status="200"} 1',
        'syncattn_requests_total{path="/translate",status="400"} 1',
        'syncattn_requests_total{path="other",status="404"} 1',
        "# TYPE syncattn_sentences_total counter",
        "syncattn_sentences_total 2",
        "# TYPE syncattn_seconds_total counter",
        "# TYPE syncattn_running gauge",
        "syncattn_running 0",
    ]


def test_no_more_requests_at_a_time_than_allowed():
    model = Slow()
    with serving(model, requests=1) as running, ThreadPoolExecutor(1) as pool:
        first = pool.submit(running.ask, "/translate", {"sentences": ["a"]})
        assert model.begun.wait(60)
        answer, said = running.ask("/translate", {"sentences": ["a"]})
        assert (answer.status, said) == (503, b'{"error":"busy; try again"}')
        assert answer.headers["retry-after"] == "1"
        model.goes_on.set()
        assert first.result()[0].status == 200
        running.wait(lambda: running.service.running == 0)
        assert running.ask("/translate", {"sentences": ["a"]})[0].status == 200


def test_no_request_takes_longer_than_allowed(exported):
    model = Slow()
    with serving(model, seconds=0.1) as running:
        answer, said = running.ask("/translate", {"sentences": ["a"]})
        assert answer.status == 503 and b"the request took too long" in said
        assert answer.headers["retry-after"] == "1" and running.service.running == 1
        model.goes_on.set()
        running.wait(lambda: running.service.running == 0)
    with serving(exported, seconds=1e-9) as running:  # whichever clock sees it first
        answer, _ = running.ask("/translate", {"sentences": ["a"]})
        assert answer.status in (408, 503)
    exported._batches.lock.acquire()  # of which the model's own clock knows
    try:
        with pytest.raises(TimeoutError):
            threading_result(
                lambda: service._translate(exported, service.Asked(["a"], Decoding()), 0.01)
            )
    finally:
        exported._batches.lock.release()


def threading_result(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_a_model_that_fails_is_one_line_of_the_log(caplog):
    def fail(*_: Any, **__: Any) -> None:
        raise DataError("/secret/model: broken\nin two lines")

    with serving(SimpleNamespace(translate=fail, name="x", languages=("a", "b"))) as running:
        answer, said = running.ask("/translate", {"sentences": ["a"]})
    assert answer.status == 500 and b"secret" not in said
    assert json.loads(said) == {"error": "the model failed; the service's log says why"}
    [record] = caplog.records
    line = server._OneLine().format(record)
    assert re.fullmatch(
        r"error: /translate: DataError: /secret/model: broken in two lines \(.*\.py:\d+\)", line
    )
    caplog.clear()


def test_the_log_has_a_line_for_any_error_of_python():
    try:
        raise ValueError("of\ntwo lines")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "", 1, "it failed\n", None, (ValueError, error, None)
        )
    assert server._OneLine().format(record) == "error: it failed : ValueError: of two lines"


# ---- clients that are slow, or broken


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long."""
    for module in (server, service):
        monkeypatch.setattr(module, "SECONDS_TO_ARRIVE", 0.1)


POST = b"POST /translate HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("beginning", [b"", b"POST /tran", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_request_that_never_comes_is_closed(quick, served, beginning):
    assert served.exchange(beginning) == b""


def test_a_body_that_never_ends_is_closed(quick, served):
    for body in (b"Content-Length: 9\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"):
        answer = served.exchange(POST + body)
        assert (
            answer.startswith(b"HTTP/1.1 408 ")
            and b"the request did not arrive completely within" in answer
        )


def test_an_answer_that_nobody_takes_is_thrown_away(quick):
    model: Any = SimpleNamespace(languages=("a", "b"), name="x")
    model.info = lambda decoding: {"long": "x" * 20_000_000}
    with serving(model) as running:
        client = running.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        running.wait(lambda: not running.server.server_state.connections)
        client.close()


@pytest.mark.parametrize(
    "request_",
    [
        b"nothing\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        POST + b"Content-Length: x\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nxx\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"x: y\r\n" * 20_000,
    ],
)
def test_what_is_not_http_is_refused(served, request_):
    answer = served.exchange(request_)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and b"content-security-policy" in head
    assert json.loads(body) == {"error": "not HTTP that can be read"}


def test_more_bytes_than_were_announced_end_the_connection(served):
    rest = b"Connection: close\r\nContent-Length: 2\r\n\r\n{}garbage"
    assert served.exchange(POST + rest).startswith(b"HTTP/1.1 400 ")


def test_nothing_follows_a_refusal_that_is_still_on_its_way():
    """A client that takes nothing keeps the connection open, and the model has an answer."""
    model = Slow()
    written: list[bytes] = []
    transport: Any = mock.Mock(write=written.append, get_extra_info=lambda name: None)

    async def run() -> None:
        running = server._Server(Service(model, Limits()))
        running.config.load()
        loop = asyncio.get_running_loop()
        client = server._Connection(running.config, running.server_state, {}, loop)
        client.connection_made(transport)
        body = b'{"sentences": ["a"]}'
        head = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        client.data_received(POST + head + body)
        await asyncio.to_thread(model.begun.wait, 60)
        client.data_received(b"garbage")
        model.goes_on.set()
        await asyncio.wait(running.server_state.tasks)
        client.connection_lost(None)

    asyncio.run(run())
    assert b"".join(written).startswith(b"HTTP/1.1 400 ")
    assert b"".join(written).count(b"HTTP/1.1") == 1 and transport.close.called


def test_clients_that_go_away_leave_nothing(exported):
    body = b'{"sentences": ["the dog"]}'
    whole = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with serving(exported) as running:
        for size in (0, 9, len(whole) - 3, len(whole)):
            running.send(whole[:size]).close()
        running.wait(lambda: not running.server.server_state.connections)
        running.wait(lambda: not running.server.server_state.tasks)
        running.wait(lambda: running.service.running == 0)
        assert running.ask("/translate", {"sentences": ["the dog"]})[0].status == 200


def test_no_more_connections_than_files_can_be_open(served, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    served.wait(lambda: not served.server.server_state.connections)
    with served.send(b"GET "):
        served.wait(lambda: len(served.server.server_state.connections) == 1)
        answer = b""
        with suppress(ConnectionResetError):
            answer = served.exchange(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer == b""


# ---- the end


def test_what_runs_at_the_end_is_told_so(monkeypatch, capfd):
    monkeypatch.setattr(service, "SECONDS_TO_END", 0.1)
    model = Slow()
    running = Served(model, Limits())
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(running.ask, "/translate", {"sentences": ["a"]})
        arriving = pool.submit(running.exchange, POST + b"Content-Length: 9\r\n\r\n{")
        assert model.begun.wait(60)
        running.wait(lambda: len(running.service._clocks) == 2)
        running.end()
        assert asked.result()[0].status == 503
        assert arriving.result().startswith(b"HTTP/1.1 408 ")
    assert running.service.running == 1
    model.goes_on.set()
    out = capfd.readouterr().out.splitlines()
    assert out == [f"http://127.0.0.1:{running.port}: slow, en to de", "stopped after 2 requests"]


def test_a_port_that_is_taken_or_an_address_of_others_is_refused():
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DataError, match=f"^--host 127.0.0.1 --port {port}: Address already in"):
            bind("127.0.0.1", port)
    for host in ("192.0.2.1", "no.invalid", "a" * 64, "x\0"):
        with pytest.raises(DataError, match=f"^--host {host} --port 0: "):
            bind(host, 0)
    with bind("::1", 0) as taken:
        assert taken.getsockname()[0] == "::1"
