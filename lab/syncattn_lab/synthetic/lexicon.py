"""The bilingual word list of the built-in corpus, in ``lexicon.toml``.

Each of its tables pairs English with German one to one. A class of nouns or verbs has its own
syntactic use (persons are subjects, a creation verb in the past is a relative clause, ...), so that
the head of a word can be told from the words and their order alone.

- Noun: ``english[/irregular plural]=German.gender.plural``. Gender is ``m``, ``f``, ``n`` or ``w``
  (masculine of the weak declension); the plural is an ending, ``"`` for umlaut, ``-`` for none.
- Verb: ``english [past participle]: German [3sg past participle]``, the forms in brackets where the
  verb is irregular; ``|`` ends a separable prefix, ``+dat`` is for a dative object.
- Adjective: ``english=German`` in the form that takes endings; ``+`` when it is compared, ``"``
  when it is compared with umlaut.
- Modifiers, adverbs, names: ``english=German``, or one word that is the same in both.
"""

import tomllib
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.files import read_text_file

from .morphology import Adjective, Noun, Verb

_TABLES = tomllib.loads(read_text_file(Path(__file__).with_name("lexicon.toml")))


def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    return tuple((en, de or en) for en, _, de in (entry.partition("=") for entry in table.split()))


def _rows(name: str) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, _TABLES[name]))


NOUNS = {kind: tuple(map(Noun.parse, table.split())) for kind, table in _TABLES["nouns"].items()}
MODIFIERS = {kind: _pairs(table) for kind, table in _TABLES["modifiers"].items()}
VERBS = {
    frame: tuple(map(Verb.parse, table.split(";"))) for frame, table in _TABLES["verbs"].items()
}
ADJECTIVES = tuple(map(Adjective.parse, _TABLES["adjectives"].split()))
ADVERBS, SENTENCE_ADVERBS = _pairs(_TABLES["adverbs"]), _pairs(_TABLES["sentence_adverbs"])
NAMES, TOWNS = _pairs(_TABLES["names"]), _pairs(_TABLES["towns"])
DATES = (("on", "am", _pairs(_TABLES["weekdays"])), ("in", "im", _pairs(_TABLES["months"])))
_ONES, _TEENS, _TENS = (_pairs(_TABLES[name]) for name in ("ones", "teens", "tens"))
NUMERALS = (
    *_ONES[1:],
    *_TEENS,
    *((f"{ten}-{one}", f"{ein}und{zehn}") for ten, zehn in _TENS for one, ein in _ONES),
)

SINGULAR_DETERMINERS = _rows("singular_determiners")
PLURAL_DETERMINERS = _rows("plural_determiners")
DEFINITE = ("the", "this", "these", "my", "our")
PRONOUNS, MODALS = _rows("pronouns"), _rows("modals")
PLACE_PREPOSITIONS = _rows("place_prepositions")
GOAL_PREPOSITIONS = _rows("goal_prepositions")
INSTRUMENT_PREPOSITIONS = _rows("instrument_prepositions")
CONTRACTIONS = {
    ("in", "dem"): "im", ("in", "das"): "ins", ("zu", "dem"): "zum", ("zu", "der"): "zur",
}  # fmt: skip
