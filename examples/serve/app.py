"""A translation service: /translate, /parse, /align, /draw, /health, and a page to type in.

pip install "syncattn-fairseq[serve]" syncattn-lab
MODEL=FOLDER uvicorn --app-dir examples/serve app:app
Requests are JSON, {"sentences": ["The dog sees a cat."]}. An export for CTranslate2 has no parses.
"""

import json
import os
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

import syncattn_fairseq
from syncattn_fairseq.inference import Decoding
from syncattn_fairseq.inference.drawing import draw_analysis

MOST_SENTENCES, MOST_BYTES = 100, 50_000
CODE = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src blob: data:"
POLICY = {"content-security-policy": f"{CODE}; style-src 'unsafe-inline'"}
model = syncattn_fairseq.load(os.environ["MODEL"], os.environ.get("DATA_BIN"))
decoding = Decoding(max_source=200, max_len=300, too_long="empty")

ANSWERS = {
    "/translate": lambda sentences: [
        {"text": each, "score": each.score if each else 0, "cut": each.cut, "error": each.too_long}
        for each in model.translate(sentences, decoding=decoding, warn=False)
    ],
    "/parse": lambda sentences: [
        [side and {"words": side.sentence.words, "heads": side.tree} for side in sides]
        for sides in (
            (pair.source, pair.target) for pair in model.parse(sentences, decoding=decoding)
        )
    ],
    "/align": lambda sentences: [
        {"source": each.source.words, "target": each.target.words, "links": each.links}
        for each in model.align(sentences, decoding=decoding)
    ],
    "/draw": lambda sentences: draw_analysis(model.analyse(sentences[:1])[0]),
}


def _list_sides(pair):
    return pair.source, pair.target


async def _answer(request):
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES} bytes")
        sentences = json.loads(body)["sentences"]
        if not isinstance(sentences, list) or not 0 < len(sentences) <= MOST_SENTENCES:
            raise ValueError(f"sentences: give a list of 1 to {MOST_SENTENCES}")
        found = await run_in_threadpool(ANSWERS[request.url.path], sentences)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return JSONResponse({"error": str(error)}, 400)
    is_picture = request.url.path == "/draw"
    return Response(found, media_type="image/svg+xml") if is_picture else JSONResponse(found)


def _show(name):
    path = Path(__file__).with_name(name or "page.html")
    return lambda request: FileResponse(path, headers=POLICY)


app = Starlette(
    routes=[
        *(Route(path, _answer, methods=["POST"]) for path in ANSWERS),
        *(Route(f"/{name}", _show(name)) for name in ("", "page.js")),
        Route("/health", lambda request: JSONResponse(model.info(decoding))),
    ]
)
