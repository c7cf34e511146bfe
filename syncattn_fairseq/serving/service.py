"""The answers of a service: questions about sentences, a page, and its health.

Whatever is wrong with a request is said in one line of JSON, ``{"error": "…"}``. What is wrong with
the service itself is said in one line of its log.
"""

from __future__ import annotations

import asyncio
import logging
import math
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ..base.errors import BadSentence, DataError, printable, shorten
from ..inference import Analysis, Model, Translation
from ..inference.drawing import draw_analysis
from ..inference.record import describe_record, make_record
from .counters import Counters
from .questions import DEFAULT, Asked, read_question

#: Seconds for a request to arrive, and for running requests when the service ends.
SECONDS_TO_ARRIVE, SECONDS_TO_END = 5, 5
#: The header that says when a client may try again.
AGAIN = {"retry-after": "1"}
#: The files of the page, with their types, by path.
PAGE = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """A service's limits on requests; requests beyond them are refused.

    Attributes:
        requests: the most requests that the model works on at a time.
        seconds: the most seconds that a request may take.
        size: the most bytes of a request.
    """

    requests: int = 64
    seconds: float = 30
    size: int = 100_000


def _translate(model: Model, asked: Asked, seconds: float) -> list[Translation]:
    return model.translate(asked.sentences, decoding=asked.decoding, warn=False, seconds=seconds)


def _answer_translate(model: Model, asked: Asked, seconds: float) -> Any:
    return [
        {
            "text": str(each),
            "score": each.score if math.isfinite(each.score) else None,
            "fault": model.describe_faults(each),
        }
        for each in _translate(model, asked, seconds)
    ]


def _analyse(model: Model, asked: Asked, seconds: float) -> list[Analysis]:
    translations = _translate(model, asked, seconds)
    return model.analyse(asked.sentences, translations, decoding=asked.decoding)


def _answer_analyse(model: Model, asked: Asked, seconds: float) -> Any:
    return [
        describe_record(make_record(each, model.describe_faults(each.translation)))
        for each in _analyse(model, asked, seconds)
    ]


def _answer_parse(model: Model, asked: Asked, seconds: float) -> Any:
    translations = _translate(model, asked, seconds)
    pairs = model.parse(asked.sentences, translations, decoding=asked.decoding)
    return [
        [side and {"words": side.sentence.words, "tree": side.tree} for side in sides]
        for sides in ((pair.source, pair.target) for pair in pairs)
    ]


def _answer_align(model: Model, asked: Asked, seconds: float) -> Any:
    translations = _translate(model, asked, seconds)
    return [
        {"source": each.source.words, "target": each.target.words, "links": each.links}
        for each in model.align(asked.sentences, translations, decoding=asked.decoding)
    ]


def _answer_draw(model: Model, asked: Asked, seconds: float) -> Any:
    if len(asked.sentences) > 1:
        raise BadSentence(2, "a picture shows one sentence; send a request for each sentence")
    [analysis] = _analyse(model, asked, seconds)
    try:
        return draw_analysis(analysis)
    except DataError as error:
        raise BadSentence(1, str(error)) from None


#: The function that answers each path, given a model, the question and the seconds left.
ANSWERS: dict[str, Callable[[Model, Asked, float], Any]] = {
    "/translate": _answer_translate,
    "/analyse": _answer_analyse,
    "/parse": _answer_parse,
    "/align": _answer_align,
    "/draw": _answer_draw,
}
#: The analysis that a model must offer for a path.
_NEEDS = {"/parse": "parses", "/align": "links"}


class Service:
    """The ASGI application that answers requests with a model.

    Args:
        model: the model; calls of several threads share its batches.
        limits: the limits above which requests are refused.

    Attributes:
        counters: counts of requests and sentences.
    """

    def __init__(self, model: Model, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self.counters = Counters()
        #: The requests that the model works on.
        self._jobs: set[Future[Any]] = set()
        self._pool = ThreadPoolExecutor(limits.requests, "model")
        #: The time limits of running requests, which end early if the service ends.
        self._clocks: set[asyncio.Timeout] = set()
        routes = [
            *(Route(path, self._answer, methods=["POST"]) for path in ANSWERS),
            *(Route(path, _show(name, kind)) for path, (name, kind) in PAGE.items()),
            Route("/health", self._tell_health),
            Route("/metrics", self._tell_metrics),
        ]
        self._paths = {route.path for route in routes}
        self._routes = Starlette(routes=routes, exception_handlers={HTTPException: self._refuse})
        self._routes.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and count it by its path and status."""

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                path = scope["path"] if scope["path"] in self._paths else "other"
                self.counters.requests[path, message["status"]] += 1
            await send(message)

        await self._routes(scope, receive, count)

    def close(self) -> None:
        """Shorten the time limits of running requests, since the service is ending."""
        end = asyncio.get_running_loop().time() + SECONDS_TO_END
        for clock in self._clocks:
            with suppress(RuntimeError):  # it has just ended
                clock.reschedule(min(end, clock.when() or end))

    @property
    def running(self) -> int:
        """The number of requests in progress in the model, including abandoned requests."""
        return len(self._jobs)

    # ---- answers

    async def _answer(self, request: Request) -> Response:
        began = monotonic()
        path = request.url.path
        try:
            body = await self._read_body(request)
            asked = read_question(body)
            need = _NEEDS.get(path)
            if need and need not in self.model.shows:
                raise DataError(f"the model has no {need} to show")
            found = await self._ask(path, asked, self.limits.seconds - (monotonic() - began))
            self.counters.sentences += len(asked.sentences)
            self.counters.seconds += monotonic() - began
        except ClientDisconnect:
            return Response(status_code=400)  # nobody gets it
        except DataError as error:
            raise HTTPException(400, str(error)) from None
        if path == "/draw":
            return Response(found, media_type="image/svg+xml")
        return JSONResponse(found)

    async def _read_body(self, request: Request) -> bytes:
        """Read the body of a request; `HTTPException` if it is too large, or too slow."""
        body = bytearray()
        clock = asyncio.timeout(min(SECONDS_TO_ARRIVE, self.limits.seconds))
        try:
            async with clock:
                self._clocks.add(clock)
                async for part in request.stream():
                    body += part
                    if len(body) > self.limits.size:
                        raise HTTPException(
                            413, f"the request has more than {self.limits.size} bytes"
                        )
        except TimeoutError:
            reason = f"the request did not arrive completely within {SECONDS_TO_ARRIVE} s"
            raise HTTPException(408, reason, {"connection": "close"}) from None
        finally:
            self._clocks.discard(clock)
        return bytes(body)

    async def _ask(self, path: str, asked: Asked, seconds: float) -> Any:
        """Let the model answer, in another thread.

        Raises:
            DataError: the request is wrong.
            HTTPException: there are too many requests, or it takes too long, or the model failed.
        """
        if self.running >= self.limits.requests:
            raise HTTPException(503, "busy; try again", AGAIN)
        job = self._pool.submit(ANSWERS[path], self.model, asked, seconds)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        clock = asyncio.timeout(seconds)
        try:
            async with clock:
                self._clocks.add(clock)
                return await asyncio.wrap_future(job)
        except TimeoutError:
            reason = "the request took too long; try again, with fewer or shorter sentences"
            raise HTTPException(503, reason, AGAIN) from None
        except BadSentence:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{last.filename}:{last.lineno}"
            logger.error(f"{path}: {type(error).__name__}: {shorten(error)} ({place})")
            raise HTTPException(500, "the model failed; the service's log says why") from None
        finally:
            self._clocks.discard(clock)

    async def _refuse(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        reason = error.detail
        if error.status_code == 404:
            reason = f"no such path; the paths are {', '.join(sorted(self._paths))}"
        elif error.status_code == 405:
            methods = " or ".join(sorted(Headers(error.headers)["allow"].split(", ")))
            reason = f"{request.method} does not work for this path; use {methods}"
        return JSONResponse({"error": printable(reason)}, error.status_code, error.headers)

    async def _tell_health(self, request: Request) -> Response:
        return JSONResponse(self.model.info(DEFAULT))

    async def _tell_metrics(self, request: Request) -> Response:
        return PlainTextResponse(self.counters.write(self.running))


def _show(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that answers with a file of the page."""
    content = Path(__file__).with_name("page").joinpath(name).read_bytes()

    async def show(request: Request) -> Response:
        return Response(content, media_type=kind)

    return show
