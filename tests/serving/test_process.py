"""syncattn-serve as a program, in an environment without PyTorch and fairseq; its bad arguments."""

import json
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import serve
from syncattn_fairseq.data import splitters
from tests.bare_environment import make_bare_environment
from tests.cli.errors import read_error
from tests.importing import in_a_process, run_program

for _name in ("ctranslate2", "uvicorn", "starlette"):
    pytest.importorskip(_name, reason="needs the extra serve")
from syncattn_fairseq.serving import server  # noqa: E402


def ask(url: str, body: Any) -> tuple[int, Any]:
    try:
        with urlopen(Request(url, json.dumps(body).encode()), timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())


def test_it_serves_without_torch_and_ends_in_time_even_if_the_model_works(small_corpus, tmp_path):
    names = ["ctranslate2", "starlette", "uvicorn"]
    python, environment = make_bare_environment(tmp_path / "venv", names)
    served = small_corpus.exported("ctranslate2")
    command = [python, *in_a_process("syncattn_fairseq.cli.serve")[1:], "--port=0"]
    with (tmp_path / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [*command, f"--path={served}", "--max-requests=5"],
            cwd=tmp_path,
            env={**environment, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        url, _, about = process.stdout.readline().partition(": ")
        assert about == f"{served}, en to de\n"
        [source] = small_corpus.learned()[:1]
        status, [found] = ask(f"{url}/translate", {"sentences": source})
        assert status == 200 and found["text"]
        long = {"sentences": [" ".join(small_corpus.lines("train.en")[:9])[:250]] * 100, "beam": 20}
        with ThreadPoolExecutor(5) as pool:
            asked = [pool.submit(ask, f"{url}/translate", long) for _ in range(5)]
            with urlopen(f"{url}/metrics") as answer:
                while "syncattn_running 5" not in answer.read().decode():
                    answer = urlopen(f"{url}/metrics")
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=10)
            assert {job.result()[0] for job in asked} <= {200, 503}
    finally:
        process.kill()
    assert process.returncode == 0 and rest.startswith("stopped after ")
    assert (tmp_path / "errors").read_text() == ""


def test_bad_arguments_are_one_line(small_corpus, capsys):
    pascal = str(small_corpus.checkpoint("transformer_pascal"))
    model = [f"--path={pascal}", f"--data-bin={small_corpus.data}"]
    model.append(f"--subwords={small_corpus.subwords}")
    said = read_error(capsys, serve.main([*model, "--port=0"]))
    assert "the model reads the parse of its source; name a parser" in said
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = read_error(capsys, serve.main(["--path=none", f"--port={port}"]))
        assert f"--port {port}: Address already in use; choose another" in said
    for arguments in (["--port=65536"], ["--port=x"], ["--max-seconds=0"]):
        with pytest.raises(SystemExit):
            serve.main(["--path=none", *arguments])
    assert "65536 is not between 0 and 65535" in capsys.readouterr().err


def test_what_is_not_installed_is_named(monkeypatch, capsys):
    monkeypatch.setattr("syncattn_fairseq.base.extras.find_spec", lambda name: None)
    said = read_error(capsys, serve.main(["--path=none"]))
    assert (
        "starlette is needed here and not installed; install it: "
        "pip install 'syncattn-fairseq[serve]'" in said
    )


def test_a_service_begins_only_with_what_finds_the_words_of_its_page(monkeypatch):
    """Or each request for words would fail."""
    monkeypatch.setattr("syncattn_fairseq.data.splitters.find_spec", lambda name: None)
    monkeypatch.setattr(server, "_share_heap", lambda: None)
    splitters._open_splitter.cache_clear()
    for schemes in (("raw:rjieba", "raw:uax29"), ("raw:uax29", "raw:rjieba")):
        source, target = (SimpleNamespace(scheme=scheme) for scheme in schemes)
        model = SimpleNamespace(source_segmenter=source, target_segmenter=target)
        with pytest.raises(DataError, match=r"^rjieba is needed .*'syncattn-fairseq\[chinese\]'$"):
            server.serve(model, None, None)


ARENAS = """
import ctypes, sys, threading
from syncattn_fairseq.serving import server
if sys.argv[1:]:
    server._share_heap()
libc, barrier = ctypes.CDLL(None), threading.Barrier(3)
def take():
    libc.malloc(5000)
    barrier.wait()
threads = [threading.Thread(target=take) for _ in range(3)]
[each.start() for each in threads]
[each.join() for each in threads]
libc.malloc_stats()
"""


def test_threads_share_a_heap():
    """Each would keep the memory of the largest batch that it has ever translated."""
    counts = [run_program(ARENAS, *words).stderr.count("Arena ") for words in ([], ["share"])]
    if counts == [0, 0]:
        pytest.skip("not glibc")
    assert counts[0] > counts[1] == 1
