"""Read the body of a request: sentences, and settings of the search."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from ..base.errors import DataError, shorten, suggest
from ..inference import Decoding
from ..inference.decoding import MOST_PENALTY

#: The most sentences of a request, subwords of a source and of a translation, and hypotheses.
MOST_SENTENCES, MOST_SOURCE, MOST_LEN, MOST_BEAM = 100, 200, 300, 20

#: The settings of requests that give none.
DEFAULT = Decoding(max_source=MOST_SOURCE, max_len=MOST_LEN, too_long="empty")

#: The settings that a request may give, as :class:`.Decoding` calls them; the first two are counts,
#: with the largest that is allowed.
_COUNTS = {"beam": MOST_BEAM, "max_len": MOST_LEN}
_KEYS = ("sentences", *_COUNTS, "length_penalty")


@dataclass(frozen=True)
class Asked:
    """The content of a request: source sentences, and settings of the search.

    Attributes:
        sentences: the sources.
        decoding: the settings of the search.
    """

    sentences: list[str]
    decoding: Decoding


def read_question(body: bytes) -> Asked:
    """Parse the body of a request, and check its sentences and settings.

    Args:
        body: JSON, an object with ``sentences``, one or a list, and perhaps ``beam``, ``max_len``
            and ``length_penalty``.

    Raises:
        DataError: the body is not such an object, or a value is not allowed.
    """
    asked = _read_json(body)
    if not isinstance(asked, dict):
        raise DataError('expected a JSON object, such as {"sentences": ["The dog sees a cat."]}')
    for key in asked:
        if key not in _KEYS:
            raise DataError(
                f"unknown key {shorten(repr(key), 40)}{suggest(key, _KEYS)}; the keys are "
                f"{', '.join(_KEYS)}"
            )
    sentences = asked.get("sentences")
    if isinstance(sentences, str):
        sentences = [sentences]
    if not isinstance(sentences, list) or not 0 < len(sentences) <= MOST_SENTENCES:
        raise DataError(f"sentences: give a text, or a list of 1 to {MOST_SENTENCES} texts")
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, str):
            raise DataError(f"sentence {number}: expected a text in quotation marks")
    return Asked(sentences, _read_settings(asked))


def _read_json(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise DataError("the request is not UTF-8") from None
    except RecursionError:
        raise DataError("the request is not valid JSON: nested too deeply") from None
    except ValueError as error:
        raise DataError(f"the request is not valid JSON: {shorten(error)}") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number in JSON")


def _read_settings(asked: dict[str, Any]) -> Decoding:
    settings = {key: value for key, value in asked.items() if key != "sentences"}
    for key, most in _COUNTS.items():
        value = settings.get(key, 1)
        if type(value) is not int or not 1 <= value <= most:
            raise DataError(f"{key}: give a whole number from 1 to {most}")
    penalty = settings.get("length_penalty", 1)
    if type(penalty) not in (int, float) or not -MOST_PENALTY <= penalty <= MOST_PENALTY:
        raise DataError(f"length_penalty: give a number from {-MOST_PENALTY} to {MOST_PENALTY}")
    return replace(DEFAULT, **settings)
